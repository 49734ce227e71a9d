//! The machine's network, and the sockets of its services.

use super::attempt::{Attempt, bash, python};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    bash("connect to a server of the machine", r#"exec 3<>"/dev/tcp/127.0.0.1/$PORT""#).also_at_host(),
    python(
        "connect to it by IPv6",
        r"
import socket
socket.create_connection(('::1', int(E['PORT6'])), 5)",
    )
    .where_there()
    .also_at_host(),
    python(
        "connect to it by an address of all",
        r"
import socket
socket.create_connection(('0.0.0.0', int(E['PORT'])), 5)",
    )
    .also_at_host(),
    python(
        "send a packet and get an answer",
        r"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
s.sendto(b'hello', ('127.0.0.1', int(E['UDP'])))
check(s.recv(100) == b'hello')",
    )
    .also_at_host(),
    python(
        "ask a name server",
        r"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
s.sendto(b'\x01\x02\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06secret\x07example\x00\x00\x01\x00\x01',
         ('127.0.0.1', int(E['UDP'])))
check(s.recv(100)[:2] == b'\x01\x02')",
    )
    .also_at_host(),
    python(
        "connect to a Unix socket by its path",
        r"
import socket
socket.socket(socket.AF_UNIX).connect(E['SOCKET'])",
    )
    .also_at_host(),
    python(
        "send to a Unix socket by its path",
        r"
import socket
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', E['DATAGRAM'])",
    )
    .also_at_host(),
    python(
        "connect to an abstract Unix socket",
        r"
import socket
socket.socket(socket.AF_UNIX).connect('\0' + E['ABSTRACT'])",
    )
    .also_at_host(),
    python(
        "with network: connect to a Unix socket by its path",
        r"
import socket
socket.socket(socket.AF_UNIX).connect(E['SOCKET'])",
    )
    .with_network(),
    python(
        "with network: connect to an abstract Unix socket",
        r"
import socket
socket.socket(socket.AF_UNIX).connect('\0' + E['ABSTRACT'])",
    )
    .with_network(),
    python(
        "open a raw socket",
        r"
import socket
socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    )
    .bare_as_root()
    .also_at_host(),
    python(
        "with network: open a raw socket",
        r"
import socket
socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    )
    .bare_as_root()
    .also_at_host()
    .with_network(),
    python(
        "with network: listen to all packets",
        r"
import socket
socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)",
    )
    .bare_as_root()
    .also_at_host()
    .with_network(),
    // The loopback device is set to what it is: up.
    python("change a network device", SET_DEVICE).bare_as_root().also_at_host(),
    python("with network: change a network device", SET_DEVICE).bare_as_root().also_at_host().with_network(),
    python(
        "open a socket to the machine's host",
        r"
import socket
socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
    )
    .where_there()
    .also_at_host(),
    python(
        "with network: open a socket to the machine's host",
        r"
import socket
socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
    )
    .where_there()
    .also_at_host()
    .with_network(),
    python(
        "open a socket to the kernel's cryptography",
        r"
import socket
socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET, 0)",
    )
    .where_there()
    .also_at_host(),
    python(
        "listen for the kernel's events",
        r"
import socket
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)
s.bind((0, 1))",
    )
    .bare_as_root()
    .also_at_host(),
    python(
        "work around the filter by io_uring",
        r"
p = (ctypes.c_char * 120)()
call('io_uring_setup', 4, ctypes.byref(p))",
    )
    .where_there()
    .also_at_host(),
];

const SET_DEVICE: &str = r"
import socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.settimeout(2)
body = struct.pack('=BxHiII', 0, 0, socket.if_nametoindex('lo'), 1, 1)
s.send(struct.pack('=IHHII', 16 + len(body), 16, 5, 1, 0) + body)
error = struct.unpack('=i', s.recv(4096)[16:20])[0]
check(error == 0, os.strerror(-error))";
