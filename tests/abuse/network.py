"""Tries every way out. TCP_PORT, TCP6_PORT, UDP_PORT and ABSTRACT name live listeners of the host, SOCKET_PATH one by path."""
import os
import socket
import time


def attempt(name, action):
    begin = time.time()
    try:
        action()
    except OSError:
        print("held", name)
    else:
        print("BREACH", name)
    if time.time() - begin > 2:
        print("SLOW", name)


def connect(family, kind, address, payload=None):
    def action():
        with socket.socket(family, kind) as sock:
            sock.settimeout(3)
            sock.connect(address)
            if payload is not None:
                sock.send(payload)
                sock.recv(16)
    return action


env = os.environ
attempt("TCP", connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(env["TCP_PORT"]))))
if env.get("TCP6_PORT"):
    attempt("TCP over IPv6", connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", int(env["TCP6_PORT"]))))
attempt("UDP", connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(env["UDP_PORT"])), b"ping"))
attempt("abstract socket", connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + env["ABSTRACT"]))
attempt("socket by path", connect(socket.AF_UNIX, socket.SOCK_STREAM, env["SOCKET_PATH"]))
if env.get("JAILED"):
    attempt("documentation address", connect(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80)))
    attempt("metadata address", connect(socket.AF_INET, socket.SOCK_STREAM, ("169.254.169.254", 80)))
    attempt("name lookup", lambda: socket.getaddrinfo("example.org", 80))
    for name, family, kind, protocol in (
        ("netlink", socket.AF_NETLINK, socket.SOCK_RAW, 0),
        ("packet", socket.AF_PACKET, socket.SOCK_RAW, 0),
        ("vsock", socket.AF_VSOCK, socket.SOCK_STREAM, 0),
        ("kernel crypto", socket.AF_ALG, socket.SOCK_SEQPACKET, 0),
        ("bluetooth", 31, socket.SOCK_RAW, 0),
        ("raw", socket.AF_INET, socket.SOCK_RAW, 1),
    ):
        attempt(name, lambda: socket.socket(family, kind, protocol).close())
left, right = socket.socketpair()
left.send(b"x")
print("allowed: socket pair" if right.recv(1) == b"x" else "refused")
