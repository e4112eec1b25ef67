"""Makes servers of jobs inside a wall reachable outside, on the same loopback port."""

import asyncio
import os
import re
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from agent_tui.features.sandbox.proxy import Relays, both_ways, pump
from agent_tui.tools.job_table import JobTable

_LOOK_EVERY_S = 1.0
_MOST_PORTS = 32
_MOST_TABLE_BYTES = 1_000_000
_LISTENS: Final = re.compile(rb"^ *\d+: (?P<address>[0-9A-F]+):(?P<port>[0-9A-F]{4}) \S+ 0A ", re.M)
"""A line of ``/proc/PID/net/tcp`` for a socket in the state ``TCP_LISTEN``."""

_MET_ON_LOOPBACK: Final = frozenset(
    (
        *(b"0" * 8, b"0" * 32),  # any address
        *(b"0100007F", b"0" * 16 + b"FFFF00000100007F", b"0" * 24 + b"01000000"),
    )
)
"""Addresses in the form of that table on little-endian machines."""


def listening_ports(pid: int) -> set[int]:
    """The ports with a server on the loopback in the network of the process `pid`.

    Args:
        pid: The process id as seen outside. The table is the kernel's, not the process's.
    """
    found: set[int] = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError), Path(f"/proc/{pid}/net/{name}").open("rb") as table:
            for line in _LISTENS.finditer(table.read(_MOST_TABLE_BYTES)):
                if line["address"] in _MET_ON_LOOPBACK:
                    found.add(int(line["port"], 16))
    return found


class WallPorts:
    """Listens on 127.0.0.1 on the ports of one wall, while its jobs run.

    Args:
        folder: The folder of the gate's sockets.
        pid: A process inside, by its id outside.
        ours: The port of the gate itself, which is not exposed.
    """

    def __init__(self, folder: Path, pid: int, ours: int) -> None:
        self._folder = folder
        self._pid = pid
        self._ours = ours
        self._servers: dict[int, asyncio.Server] = {}
        self._taken: set[int] = set()
        self._owners: dict[int, str] = {}
        self._relays = Relays()
        self._following: asyncio.Task[None] | None = None

    async def follow(self, jobs: JobTable) -> None:
        """Check now, and from now on each second while any of `jobs` runs."""
        await self._look(jobs)
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._follow(jobs))

    def close(self) -> None:
        """Stop listening, and end the connections."""
        if self._following is not None:
            self._following.cancel()
        self._close()

    async def _follow(self, jobs: JobTable) -> None:
        try:
            while jobs.running:
                await asyncio.sleep(_LOOK_EVERY_S)
                await self._look(jobs)
        finally:
            self._close()

    def _close(self) -> None:
        for server in self._servers.values():
            server.close()
        self._relays.close()
        self._servers.clear()
        self._taken.clear()
        self._owners.clear()

    async def _look(self, jobs: JobTable) -> None:
        """Open new ports, close old ones, and note the job of each.

        If several jobs run, a port is attributed to the newest one at that time.
        """
        running = jobs.running
        found = await asyncio.to_thread(listening_ports, self._pid) if running else set[int]()
        found.discard(self._ours)
        for port in self._servers.keys() - found:
            self._servers.pop(port).close()
        self._taken &= found
        new = sorted(found - self._servers.keys() - self._taken)
        for port in new[: _MOST_PORTS - len(self._servers)]:
            try:
                self._servers[port] = await asyncio.start_server(
                    lambda reader, writer: self._relays.add(self._relay(reader, writer)),
                    *("127.0.0.1", port),
                )
            except OSError:
                self._taken.add(port)
            self._owners[port] = running[-1].id
        for job in running:
            ports = [port for port in sorted(found) if self._owners.get(port) == job.id]
            job.reached_at = ", ".join(map(self._address, ports))

    def _address(self, port: int) -> str:
        if port in self._servers:
            return f"http://127.0.0.1:{port}"
        return f"port {port}, which is taken outside the sandbox, so the user cannot reach it"

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client outside with the same port inside."""
        port: int = writer.get_extra_info("sockname")[1]
        try:
            with ExitStack() as handles:
                way = _way_back(self._folder, handles)
                far_reader, far_writer = await asyncio.open_unix_connection(way)
            try:
                far_writer.write(b"%d\n" % port)
                there = pump(reader, far_writer, _count_nothing)
                await both_ways(there, pump(far_reader, writer, _count_nothing))
            finally:
                far_writer.close()
        except OSError:
            pass  # the server is gone; the browser sees the end
        finally:
            writer.close()


def _way_back(folder: Path, handles: ExitStack) -> str:
    """A path to the socket ``back``, which commands inside may have replaced.

    It is valid as long as `handles`, and leads only to a socket in `folder`.

    Raises:
        OSError: There is none.
    """
    handle = os.open(folder / "back", os.O_PATH | os.O_NOFOLLOW)
    handles.callback(os.close, handle)
    if not stat.S_ISSOCK(os.fstat(handle).st_mode):
        raise OSError("no socket")
    return f"/proc/self/fd/{handle}"


def _count_nothing(_size: int) -> None:
    pass
