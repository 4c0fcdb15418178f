"""Cases B8 to B12: every way out. TCP_PORT, TCP6_PORT and UDP_PORT are live listeners of the host, ABSTRACT and SOCKET_PATH too."""
import os
import socket
import time

env = os.environ
jailed = bool(env.get("JAILED"))


def attempt(case, name, action):
    begin = time.time()
    try:
        action()
    except OSError:
        # Nobody waits for a network that is not there.
        print("held" if time.time() - begin < 2 else "slow", case, name)
    else:
        print("BREACH", case, name)


def connect(family, kind, address, payload=None):
    def action():
        with socket.socket(family, kind) as sock:
            sock.settimeout(3)
            sock.connect(address)
            if payload is not None:
                sock.send(payload)
                sock.recv(16)
    return action


attempt("B8", "TCP to the host", connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(env["TCP_PORT"]))))
if env["TCP6_PORT"]:
    attempt("B8", "TCP by IPv6", connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", int(env["TCP6_PORT"]))))
else:
    print("unseen B8 TCP by IPv6")
attempt("B8", "UDP to the host", connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(env["UDP_PORT"])), b"ping"))
if jailed:
    attempt("B9", "names of the Internet", lambda: socket.getaddrinfo("example.org", 80))
attempt("B10", "abstract socket of the host", connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + env["ABSTRACT"]))
attempt("B10", "socket of the host by its path", connect(socket.AF_UNIX, socket.SOCK_STREAM, env["SOCKET_PATH"]))
for name, family, kind, protocol, is_safe in (
    ("socket for netlink", socket.AF_NETLINK, socket.SOCK_RAW, 0, True),
    ("socket for packets", socket.AF_PACKET, socket.SOCK_RAW, 0, False),
    ("socket for packets", socket.AF_INET, socket.SOCK_RAW, 1, False),
    ("socket for virtual machines", socket.AF_VSOCK, socket.SOCK_STREAM, 0, False),
    ("socket for ciphers of the kernel", socket.AF_ALG, socket.SOCK_SEQPACKET, 0, False),
    ("socket for bluetooth", 31, socket.SOCK_RAW, 0, False),
):
    if jailed or is_safe:
        attempt("B11", name, lambda: socket.socket(family, kind, protocol).close())
if jailed:
    attempt("B12", "address of a cloud's metadata", connect(socket.AF_INET, socket.SOCK_STREAM, ("169.254.169.254", 80)))
    attempt("B12", "address that nobody has", connect(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80)))
left, right = socket.socketpair()
left.send(b"x")
print("allowed" if right.recv(1) == b"x" else "refused", "B10 pair of sockets of its own")
