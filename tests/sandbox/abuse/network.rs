//! Group B: the network. Listeners of the host stand open, and nobody reaches them.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::attempts::attempt;
use super::rows::Rows;
use crate::sandbox::support::Bench;

#[tokio::test(flavor = "multi_thread")]
async fn b8_b9_b10_b11_b12_there_is_no_way_out_by_network() {
    let bench = Bench::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp6 = TcpListener::bind("[::1]:0").ok();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp_port, udp_port) = (
        tcp.local_addr().unwrap().port().to_string(),
        udp.local_addr().unwrap().port().to_string(),
    );
    let tcp6_port = tcp6
        .as_ref()
        .map(|listener| listener.local_addr().unwrap().port().to_string());
    let echo = udp.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 16];
        while let Ok((n, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..n], from);
        }
    });
    let name = format!("clade-test-{}", std::process::id());
    let _abstract_listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let path = bench.root.path().join("s");
    let _path_listener = UnixListener::bind(&path).unwrap();
    let path = path.display().to_string();
    let env = [
        ("TCP_PORT", tcp_port.as_str()),
        ("TCP6_PORT", tcp6_port.as_deref().unwrap_or_default()),
        ("UDP_PORT", udp_port.as_str()),
        ("ABSTRACT", name.as_str()),
        ("SOCKET_PATH", path.as_str()),
    ];
    let mut rows = Rows::default();
    attempt(&bench, "network.py", &env, &mut rows).await;
    rows.check();
}
