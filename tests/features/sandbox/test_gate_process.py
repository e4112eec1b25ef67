import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from agent_tui.features.sandbox import gate_process
from agent_tui.features.sandbox.proxy import NetworkGate, Wanted
from tests.features.sandbox.test_proxy import Echo
from tests.support.loopback import LoopbackServer
from tests.support.network_gate import gate_folder, get, in_wall, loopback_gate, open_gate
from tests.support.sandbox import needs_bwrap

_PATIENCE_S = 120
"""For what takes a moment, unless the machine is busy."""


async def _allow(_wanted: Wanted) -> str:
    return ""


async def _through(gate: NetworkGate, *sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    for piece in sent:
        writer.write(piece)
        await writer.drain()
    writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), _PATIENCE_S)
    writer.close()
    return answer


async def _comes_to_rest(process: psutil.Process) -> None:
    """Return once it has used no processor for half a second; what spins never does that."""
    unchanged, spent = 0, process.cpu_times()
    async with asyncio.timeout(_PATIENCE_S):
        while unchanged < 5:
            await asyncio.sleep(0.1)
            before, spent = spent, process.cpu_times()
            unchanged = unchanged + 1 if spent == before else 0


async def _mirror(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer all that comes once its end has come: only a half-close gets an answer."""
    writer.write(await reader.read())
    await writer.drain()
    writer.close()


async def test_many_connections_with_much_on_them_are_relayed_whole():
    gate = loopback_gate()
    gate.decide = _allow
    server = await asyncio.start_server(_mirror, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    bodies = [os.urandom(1) * (200_000 + number) for number in range(40)]
    async with open_gate(gate):
        opening = f"CONNECT a.test:{port} HTTP/1.1\r\n\r\n".encode()
        answers = await asyncio.gather(*(_through(gate, opening, body) for body in bodies))
    server.close()
    assert [answer.partition(b"\r\n\r\n")[2] for answer in answers] == bodies


async def test_outside_reaches_a_port_inside_and_a_port_where_nobody_listens_ends_at_once():
    gate = loopback_gate()
    server = await asyncio.start_server(_mirror, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with open_gate(gate) as folder:

        async def back(line: bytes) -> bytes:
            reader, writer = await asyncio.open_unix_connection(folder / "back")
            writer.write(line + b"what")
            writer.write_eof()
            try:
                return await asyncio.wait_for(reader.read(), _PATIENCE_S)
            except ConnectionResetError:
                return b""
            finally:
                writer.close()

        assert await back(f"{port}\n".encode()) == b"what"
        for line in (b"1\n", b"x\n", b"99999\n", b"123456\n"):
            assert await back(line) == b""
    server.close()


async def test_a_peer_that_does_not_read_stops_the_other_and_costs_no_time(tmp_path: Path):
    gate = loopback_gate()
    gate.decide = _allow
    held = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await held.wait()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with open_gate(gate):
        _, writer = await asyncio.open_connection("127.0.0.1", gate.port)
        writer.write(f"CONNECT a.test:{port} HTTP/1.1\r\n\r\n".encode() + b"x" * 50_000_000)
        (process,) = [
            child
            for child in psutil.Process().children(recursive=True)
            if gate_process.__file__ in child.cmdline()
        ]
        await _comes_to_rest(process)
        assert process.memory_info().rss < 60_000_000
        held.set()
        writer.transport.abort()
    server.close()


async def test_it_ends_with_the_process_that_started_it(tmp_path: Path):
    words = [sys.executable, "-I", "-S", gate_process.__file__, str(tmp_path), "0"]
    code = f"import subprocess, time; print(subprocess.Popen({words}).pid); time.sleep(600)"
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-uc", code, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    lines = [await parent.stdout.readline() for _ in range(2)]
    (pid,) = (int(line) for line in lines if line.strip().isdigit())
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        await asyncio.sleep(0.01)


@needs_bwrap
@pytest.mark.parametrize("is_allowed", [True, False])
async def test_a_command_in_a_wall_reaches_what_is_allowed_through_the_gate_alone(
    is_allowed: bool,
):
    gate = loopback_gate()
    if is_allowed:
        gate.decide = _allow
    with LoopbackServer(Echo) as server:
        direct = f"bash -c 'echo x >/dev/tcp/127.0.0.1/{server.port}' 2>&1"
        async with gate_folder(gate) as folder:
            script = f"{get(f'http://a.test:{server.port}/x')}; {direct}"
            process = await asyncio.create_subprocess_exec(
                *in_wall(gate, folder, script),
                env={**os.environ, **gate.environ()},
                stdout=asyncio.subprocess.PIPE,
            )
            printed = (await process.communicate())[0].decode()
    assert ("GET /x HTTP/1.0" in printed) == is_allowed
    assert ("403 agent-tui's sandbox: network access to" in printed) != is_allowed
    assert "Connection refused" in printed
