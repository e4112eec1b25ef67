"""A network gate with both of its ends, without a wall between them, or beside one."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from agent_tui.features.sandbox import gate_process
from agent_tui.features.sandbox.gate_process import READY
from agent_tui.features.sandbox.home import own_program
from agent_tui.features.sandbox.proxy import NetworkGate
from agent_tui.features.sandbox.proxy_request import Target

ASK_PROXY = Path(__file__).with_name("ask_proxy.sh")
"""Prints what the proxy of the environment answers for a URL."""


def loopback_gate(proxy_for: Callable[[Target], str] = lambda _target: "") -> NetworkGate:
    """A gate for which every name below ``.test`` leads to 127.0.0.1, and which may go there."""

    def resolve(host: str, _port: int) -> list[str]:
        if not host.endswith((".test", "127.0.0.1")) and not proxy_for(Target(host, 80)):
            raise OSError("no such name")
        return ["127.0.0.1"]

    return NetworkGate(may_be_private=True, resolve=resolve, proxy_for=proxy_for)


@asynccontextmanager
async def gate_folder(gate: NetworkGate) -> AsyncGenerator[Path, None]:
    """A short folder in which `gate` listens."""
    folder = Path(tempfile.mkdtemp(prefix="gate-", dir="/tmp"))
    try:
        await gate.serve(folder)
        yield folder
    finally:
        gate.close()
        shutil.rmtree(folder)


@asynccontextmanager
async def open_gate(gate: NetworkGate, *prefix: str) -> AsyncGenerator[Path, None]:
    """Both ends of `gate`; the inner one is started behind the words of `prefix`."""
    async with gate_folder(gate) as folder:
        words = [sys.executable, "-I", "-S", gate_process.__file__, os.fspath(folder)]
        process = await asyncio.create_subprocess_exec(
            *prefix, *words, str(gate.port), stdout=asyncio.subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            assert await process.stdout.readline() == READY
            yield folder
        finally:
            process.kill()
            await process.wait()


def in_wall(gate: NetworkGate, folder: Path, script: str, *shared: Path) -> list[str]:
    """The words that run `script` in a plain wall with the inner end of `gate`.

    That end is ready before the script begins, and ends with it.
    """
    inner = f"{sys.executable} -I -S {gate_process.__file__} {folder} {gate.port} >/dev/null"
    ready = f"until [ -S {folder}/back ]; do sleep 0.01; done"
    wall = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev"]
    wall += ["--proc", "/proc", "--tmpfs", "/tmp"]
    for path in (*own_program(), Path(__file__).parent):
        wall += ["--ro-bind", str(path), str(path)]
    for path in (folder, *shared):
        wall += ["--bind", str(path), str(path)]
    return [*wall, "/bin/sh", "-c", f"{inner} & {ready}; {script}; kill $!"]


def get(url: str) -> str:
    """A shell command that prints what is answered for `url` by the proxy of its environment."""
    return f"bash {ASK_PROXY} {url}"
