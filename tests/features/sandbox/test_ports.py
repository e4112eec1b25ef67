import asyncio
import shlex
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from agent_tui.features.sandbox import gate_process
from agent_tui.features.sandbox.ports import WallPorts, listening_ports
from agent_tui.tools.job_table import BackgroundCommand, JobTable
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.processes.shell import ShellCommand, ShellOrder
from tests.support.network_gate import gate_folder, in_wall, loopback_gate
from tests.support.patience import PATIENCE_S
from tests.support.sandbox import needs_bwrap


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def bound(address: str) -> socket.socket:
    """A socket with a port on which nobody listens at another address of the loopback."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    while True:
        one = socket.socket(family)
        one.bind((address, 0))
        if one.getsockname()[1] not in listening_ports(psutil.Process().pid):
            return one
        one.close()


def test_listening_ports_are_those_that_the_loopback_meets():
    with bound("127.0.0.1") as near, bound("127.0.0.2") as far, bound("::1") as six:
        ports = [one.getsockname()[1] for one in (near, far, six)]
        for one in (near, far, six):
            one.listen()
        assert listening_ports(psutil.Process().pid) & set(ports) == {ports[0], ports[2]}
    assert listening_ports(2**22 + 1) == set()


@asynccontextmanager
async def serving_job(
    tmp_path: Path, port: int
) -> AsyncGenerator[tuple[JobTable, BackgroundCommand, WallPorts], None]:
    """A job in a plain wall that serves on `port` until there is a file ``stop``."""
    gate, jobs = loopback_gate(), JobTable()
    server = f"{sys.executable} -m http.server --bind 127.0.0.1 --directory {tmp_path} {port}"
    waiting = f"until [ -e {tmp_path}/stop ]; do sleep 0.05; done"
    script = f"{server} & served=$!; {waiting}; kill $served; sleep 600"
    (tmp_path / "page").write_text("from inside")
    async with gate_folder(gate) as folder:
        command = shlex.join(in_wall(gate, folder, script, tmp_path))
        environ = {"PATH": "/usr/bin:/bin"}
        order = ShellOrder(f"exec {command}", tmp_path, environ, tmp_path / "out")
        keeper = ProcessKeeper()
        job = jobs.add(ShellCommand(keeper, order, lambda _text, _skipped=0: None))
        ports = WallPorts(folder, await _inside(), gate.port)
        try:
            yield jobs, job, ports
        finally:
            ports.close()
            await jobs.leave()
            keeper.close()


async def _inside() -> int:
    """The gate's inner end, as it is known out here."""
    while True:
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if gate_process.__file__ in process.cmdline() and process.name() != "bwrap":
                    return process.pid
        await asyncio.sleep(0.01)


async def _until_reached(jobs: JobTable, job: BackgroundCommand, ports: WallPorts) -> None:
    while not job.reached_at:
        await ports.follow(jobs)
        await asyncio.sleep(0.05)


async def fetched(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /page HTTP/1.0\r\n\r\n")
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@needs_bwrap
@pytest.mark.thorough
async def test_a_server_of_a_job_is_met_on_the_same_port_outside_until_it_ends(tmp_path: Path):
    port = free_port()
    async with serving_job(tmp_path, port) as (jobs, job, ports):
        await _until_reached(jobs, job, ports)
        assert job.state.endswith(f" s; listens at http://127.0.0.1:{port}")
        assert (await fetched(port)).endswith(b"from inside")
        assert [c.laddr.ip for c in psutil.Process().net_connections() if c.laddr.port == port][
            :1
        ] == ["127.0.0.1"]
        (tmp_path / "stop").touch()
        while job.reached_at:
            await asyncio.sleep(0.05)
        with pytest.raises(ConnectionRefusedError):
            await fetched(port)


@needs_bwrap
@pytest.mark.thorough
async def test_a_port_that_is_taken_outside_is_said_to_be_so(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with serving_job(tmp_path, port) as (jobs, job, ports):
            await _until_reached(jobs, job, ports)
            assert f"port {port}, which is taken outside the sandbox" in job.state


@needs_bwrap
@pytest.mark.thorough
async def test_no_port_leads_where_a_command_puts_something_else_in_place_of_the_way_back(
    tmp_path: Path,
):
    port = free_port()
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1))
        writer.close()

    outside = await asyncio.start_unix_server(hear, tmp_path / "docker.sock")
    async with serving_job(tmp_path, port) as (jobs, job, ports):
        await _until_reached(jobs, job, ports)
        (back := ports._folder / "back").unlink()
        back.symlink_to(tmp_path / "docker.sock")
        assert await fetched(port) == b""
    outside.close()
    assert heard == []
