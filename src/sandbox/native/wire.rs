//! Messages between the server, the launcher, supervisors and init processes: JSON, with descriptors beside it.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair, sockopt,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Most descriptors in one message.
pub(super) const MAX_DESCRIPTORS: usize = 200;
const PACKET_BYTES: usize = 256 << 10;
const MAX_FRAME_BYTES: u32 = 1 << 30;

/// A pair of connected sockets that keep message borders.
pub(super) fn packet_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// A received packet.
pub(super) struct Packet {
    /// Its text.
    pub(super) bytes: Vec<u8>,
    /// The descriptors beside it.
    pub(super) descriptors: Vec<OwnedFd>,
    /// Process that sent it, as seen from here; only where the receiver asked for it.
    pub(super) sender: Option<i32>,
}

impl Packet {
    /// The message.
    pub(super) fn parse<T: DeserializeOwned>(&self) -> io::Result<T> {
        serde_json::from_slice(&self.bytes).map_err(io::Error::other)
    }
}

/// Asks the kernel to tell the sender of each packet.
pub(super) fn want_sender(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_socket_passcred(socket, true)?)
}

/// Sends one message with descriptors.
pub(super) fn send_packet(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message).map_err(io::Error::other)?;
    send_packet_bytes(socket, &bytes, descriptors)
}

fn send_packet_bytes(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other(format!(
            "{} descriptors do not fit into one message",
            descriptors.len()
        )));
    }
    loop {
        match sendmsg(&socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            result => return result.map(drop).map_err(io::Error::from),
        }
    }
}

/// Receives one message; `None` when the other side is gone.
pub(super) fn receive_packet(socket: impl AsFd) -> io::Result<Option<Packet>> {
    let mut buffer = vec![0; PACKET_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS), ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(
            &socket,
            &mut [IoSliceMut::new(&mut buffer)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            result => break result?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let (mut descriptors, mut sender) = (Vec::new(), None);
    for message in ancillary.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(fds) => descriptors.extend(fds),
            RecvAncillaryMessage::ScmCredentials(credentials) => sender = Some(credentials.pid.as_raw_nonzero().get()),
            _ => {}
        }
    }
    buffer.truncate(received.bytes);
    Ok(Some(Packet {
        bytes: buffer,
        descriptors,
        sender,
    }))
}

/// Writes one frame to a stream: its length, then its bytes.
pub(super) fn write_frame(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_le_bytes())?;
    stream.write_all(bytes)
}

/// Writes one message as a frame.
pub(super) fn write_message(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    write_frame(stream, &serde_json::to_vec(message).map_err(io::Error::other)?)
}

/// Reads one message; `None` when the stream ended.
pub(super) fn read_message<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let mut bytes = vec![0; frame_length(length)?];
    stream.read_exact(&mut bytes)?;
    serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other)
}

/// Length of the frame that follows, checked.
pub(super) fn frame_length(bytes: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(bytes);
    if length > MAX_FRAME_BYTES {
        return Err(io::Error::other(format!("a frame of {length} bytes is too large")));
    }
    Ok(length as usize)
}
