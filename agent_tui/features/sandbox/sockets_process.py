"""Lists the unix sockets that processes inside a wall have bound to files, from outside.

``python -I -S sockets_process.py PID`` prints the device and inode of each such file, a line each.
Only a single-threaded process may enter the user namespace of another, so this one is started for
it. The kernel answers with the files themselves (``sock_diag(7)``, ``linux/unix_diag.h``): their
names may have changed since, and commands can bind any name.
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Iterator

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_NS_GET_USERNS = 0xB701
_SOCK_DIAG, _BY_FAMILY, _ERROR, _DONE = 4, 20, 2, 3
_REQUEST_ALL = 0x301
_SHOW_FILE, _FILE = 2, 1
_ANY = 0xFFFFFFFF
_HEADER, _REQUEST = struct.Struct("=IHHII"), struct.Struct("=BBHIIIII")
_SOCKET, _ATTRIBUTE, _WHERE = struct.Struct("=BBBxIII"), struct.Struct("=HH"), struct.Struct("=II")
_READ_BYTES = 65_536


def main() -> None:
    """Print what the process inside, which the command line names by its id, has around it."""
    network = os.open(f"/proc/{int(sys.argv[1])}/ns/net", os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    for handle, kind in (
        (fcntl.ioctl(network, _NS_GET_USERNS), _CLONE_NEWUSER),
        (network, _CLONE_NEWNET),
    ):
        if libc.setns(handle, kind) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), "namespace")
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        request = _REQUEST.pack(socket.AF_UNIX, 0, 0, _ANY, 0, _SHOW_FILE, _ANY, _ANY)
        size = _HEADER.size + len(request)
        kernel.send(_HEADER.pack(size, _BY_FAMILY, _REQUEST_ALL, 0, 0) + request)
        for device, inode in _files(kernel):
            sys.stdout.write(f"{device >> 20}:{device & 0xFFFFF} {inode}\n")


def _files(kernel: socket.socket) -> Iterator[tuple[int, int]]:
    """The kernel's device number and the lower half of the inode of each file.

    Raises:
        OSError: The kernel does not say.
    """
    while True:
        answer = kernel.recv(_READ_BYTES)
        while answer:
            size, kind, *_ = _HEADER.unpack_from(answer)
            message, answer = answer[_HEADER.size : size], answer[_aligned(size) :]
            if kind == _DONE:
                return
            if kind == _ERROR:
                number = -struct.unpack_from("=i", message)[0]
                raise OSError(number, os.strerror(number))
            rest = message[_SOCKET.size :]
            while rest:
                size, kind = _ATTRIBUTE.unpack_from(rest)
                if kind == _FILE:
                    inode, device = _WHERE.unpack_from(rest, _ATTRIBUTE.size)
                    yield device, inode
                rest = rest[_aligned(size) :]


def _aligned(size: int) -> int:
    return (size + 3) & ~3


if __name__ == "__main__":
    main()
