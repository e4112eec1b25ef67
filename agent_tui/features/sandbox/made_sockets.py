"""Which TCP sockets belong to one wall, where the loopback inside is the machine's.

Commands cannot create such sockets; the launcher outside creates them (`landlock_launcher`) and
notes the inode of each. Another user, another program and another wall have other inodes, and the
kernel says which inode is at the other end of a connection.
"""

import os
import re
import struct
from collections import deque
from contextlib import suppress
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from agent_tui.features.sandbox.landlock_launcher import INODE

_MOST_KNOWN: Final = 20_000
"""Of more sockets, those made last may connect."""

_READ_BYTES: Final = 65_536
_LOOKS: Final = 3
"""The kernel's table can lack a line if it changes while it is read."""

_MAPPED: Final = "0000000000000000FFFF0000"
"""How an IPv6 address begins in that table that stands for one of IPv4."""


class MadeSockets:
    """The sockets that the launcher of one wall has created.

    Attributes:
        notes: What the launcher writes to; close it with `close_notes` once that has started.
    """

    def __init__(self) -> None:
        self._reading, self.notes = os.pipe()
        os.set_blocking(self._reading, False)
        self._inodes: deque[int] = deque(maxlen=_MOST_KNOWN)
        self._unread = b""

    def fileno(self) -> int:
        """The descriptor that can be read when there are new notes."""
        return self._reading

    def close_notes(self) -> None:
        """Close our copy of what the launcher writes to."""
        os.close(self.notes)

    def close(self) -> None:
        """Forget all sockets."""
        os.close(self._reading)
        self._inodes.clear()

    def read(self) -> None:
        """Read the launcher's notes."""
        with suppress(BlockingIOError):
            while chunk := os.read(self._reading, _READ_BYTES):
                self._unread += chunk
                whole = len(self._unread) - len(self._unread) % INODE.size
                self._inodes.extend(each[0] for each in INODE.iter_unpack(self._unread[:whole]))
                self._unread = self._unread[whole:]

    def has(self, inode: int) -> bool:
        """Whether the socket with `inode` is one of them."""
        self.read()
        return inode in self._inodes


def inode_of_peer(peer: tuple[str, int], ours: tuple[str, int]) -> int:
    """The inode of the socket at the other end of a connection of this machine; 0 if unknown.

    Args:
        peer: The IPv4 address and the port of that end.
        ours: Those of our end.
    """
    ends = rf"{_in_table(peer)} {_in_table(ours)}"
    line = re.compile(rf"^ *\d+: {ends} (?:\S+ +){{4}}(?P<uid>\d+) +\d+ (?P<inode>\d+) ", re.M)
    for _ in range(_LOOKS):
        for name in ("tcp", "tcp6"):
            with suppress(OSError):
                table = Path(f"/proc/self/net/{name}").read_text()
                if (found := line.search(table)) is not None:
                    return int(found["inode"])
    return 0


def _in_table(end: tuple[str, int]) -> str:
    """A pattern for `end` in ``/proc/net/tcp`` and ``tcp6``."""
    (number,) = struct.unpack("=I", IPv4Address(end[0]).packed)
    return f"(?:{_MAPPED})?{number:08X}:{end[1]:04X}"
