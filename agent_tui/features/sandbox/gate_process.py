"""The end of the network gate inside the wall: ``python -I -S gate_process.py FOLDER PORT``.

Commands connect to ``127.0.0.1:PORT``, and are connected to the socket ``proxy`` in FOLDER, where
the program listens outside. In the other direction, the program connects to ``back`` in FOLDER,
names a port in a line, and is connected to the server on that port of the loopback inside. Nothing
is decided here: commands inside may end this process, and with it only their own sandbox.
"""

import ctypes
import os
import resource
import selectors
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

READY = b"ready\n"
"""Printed once connections are accepted."""

MOST_DIGITS = 5
_READ_BYTES = 65_536
_MOST_WAITING = 262_144
"""Bytes held for a peer that does not read; then reading from the other side pauses."""

_BACKLOG = 128
_MOST_RELAYS = 400
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_LOOPBACK = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


class End:
    """One of the two sockets of a relay, and the bytes waiting to be sent to it."""

    __slots__ = ("has_ended", "is_told", "link", "other", "waiting")

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.link = connection
        self.waiting = bytearray()
        self.has_ended = False
        self.is_told = False
        self.other: End = self

    @property
    def wanted(self) -> int:
        """The events to wait for."""
        reads = not self.has_ended and len(self.other.waiting) < _MOST_WAITING
        return selectors.EVENT_READ * reads | selectors.EVENT_WRITE * bool(self.waiting)

    def read(self) -> None:
        """Read what has arrived; a broken connection counts as ended."""
        try:
            chunk = self.link.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self.other.waiting += chunk
        self.has_ended = not chunk

    def write(self) -> None:
        """Send waiting bytes, and the end of the stream. Raises OSError if the connection broke."""
        with suppress(BlockingIOError):
            while self.waiting:
                del self.waiting[: self.link.send(self.waiting)]
        if self.other.has_ended and not self.waiting and not self.is_told:
            self.is_told = True
            with suppress(OSError):
                self.link.shutdown(socket.SHUT_WR)


class Named:
    """A connection from outside that has not named its port yet."""

    __slots__ = ("line", "link")

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.link = connection
        self.line = bytearray()

    def port(self) -> int | None:
        """The port, once it is named; 0 if it is invalid."""
        with suppress(BlockingIOError):
            while len(self.line) <= MOST_DIGITS:
                byte = self.link.recv(1)  # what follows the line is not ours
                if byte == b"\n":
                    return int(self.line) if self.line.isdigit() else 0
                if not byte:
                    return 0
                self.line += byte
            return 0
        return None


class GateProcess:
    """Relays in a single thread, so that many connections cost little."""

    def __init__(self, port: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._relays = 0
        most_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most_relays = min(_MOST_RELAYS, max((most_files - 32) // 2, 1))
        near = socket.socket(socket.AF_INET)
        near.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        back = socket.socket(socket.AF_UNIX)
        with suppress(FileNotFoundError):
            Path("back").unlink()
        self._listeners = (near, back)
        for listener, address in ((near, ("127.0.0.1", port)), (back, "back")):
            listener.bind(address)  # the file comes last: once it exists, both listen
            listener.setblocking(False)
            listener.listen(_BACKLOG)
        self._near = near
        self._is_listening = False
        self._listen()

    def run(self) -> None:
        """Relay until the process is killed."""
        while True:
            for key, events in self._selector.select():
                match key.data:
                    case End() as end if end.link.fileno() == key.fd:  # not just now closed
                        self._relay(end, events)
                    case Named() as named:
                        self._name(named)
                    case socket.socket() as listener:
                        self._accept(listener)
                    case _:
                        pass

    def _listen(self) -> None:
        """Accept connections while there is room for them; others wait."""
        has_room = self._relays < self._most_relays
        if has_room and not self._is_listening:
            for listener in self._listeners:
                self._selector.register(listener, selectors.EVENT_READ, listener)
        elif self._is_listening and not has_room:
            for listener in self._listeners:
                self._selector.unregister(listener)
        self._is_listening = has_room

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        self._relays += 1
        if listener is not self._near:
            named = Named(connection)
            self._selector.register(connection, selectors.EVENT_READ, named)
        else:
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect("proxy")
            except OSError:
                connection.close()
                far.close()
                self._relays -= 1
            else:
                self._join(End(connection), End(far))
        self._listen()

    def _name(self, named: Named) -> None:
        """Connect a connection from outside to the port that it names."""
        try:
            port = named.port()
        except OSError:
            port = 0
        if port is None:
            return
        self._selector.unregister(named.link)
        far = _connect(port)
        if far is None:
            named.link.close()
            self._relays -= 1
            self._listen()
        else:
            self._join(End(named.link), far)

    def _join(self, one: End, other: End) -> None:
        one.other, other.other = other, one
        for end in (one, other):
            self._selector.register(end.link, end.wanted, end)

    def _relay(self, end: End, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                end.read()
            end.write()
            end.other.write()
        except OSError:
            self._close(end)
            return
        if end.is_told and end.other.is_told:
            self._close(end)
            return
        for each in (end, end.other):
            self._wait_for(each)

    def _wait_for(self, end: End) -> None:
        is_known = end.link.fileno() in self._selector.get_map()
        if end.wanted and is_known:
            self._selector.modify(end.link, end.wanted, end)
        elif end.wanted:
            self._selector.register(end.link, end.wanted, end)
        elif is_known:  # otherwise a broken connection would wake us again and again
            self._selector.unregister(end.link)

    def _close(self, end: End) -> None:
        for each in (end, end.other):
            with suppress(KeyError, ValueError):
                self._selector.unregister(each.link)
            each.link.close()
        self._relays -= 1
        self._listen()


def _connect(port: int) -> End | None:
    """A connection to `port` on the loopback; None if it fails."""
    for family, address in _LOOPBACK if port else ():
        far = socket.socket(family)
        try:
            far.settimeout(1)  # the loopback answers at once, unless a queue there is full
            far.connect((address, port))
        except (OSError, OverflowError):
            far.close()
        else:
            return End(far)
    return None


def _end_with_parent() -> None:
    """On Linux, have the kernel end this process with its parent."""
    parent = os.getppid()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit()


def _close_memory() -> None:
    """On Linux, keep commands from writing into this process: what it starts would be no command's.

    They have none of their own yet when it starts.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def main() -> None:
    """Listen, report readiness, and relay."""
    _end_with_parent()
    _close_memory()
    folder, port = sys.argv[1:]
    os.chdir(folder)  # socket paths are limited to 107 bytes
    process = GateProcess(int(port))
    os.write(1, READY)
    process.run()


if __name__ == "__main__":
    main()
