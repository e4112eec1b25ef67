"""Ways out of the sandbox, tried inside it, each against what `promises` says of it.

All probes of a wall and a user run in one process, in a few seconds. They make, read and reach
nothing but decoys.
"""

import asyncio
import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.sandbox import gate_process
from agent_tui.features.sandbox.plan import Backend
from agent_tui.features.sandbox.wall import WallParts
from tests.support.escapes import probes, promises, world
from tests.support.network_gate import loopback_gate
from tests.support.patience import PATIENCE_S
from tests.support.sandbox import (
    landlock_abi,
    make_sandbox,
    needs_bwrap,
    needs_landlock,
    run_inside,
)
from tests.support.users import User, can_run, run_module, system_folders, users

BACKENDS = pytest.mark.parametrize(
    "backend",
    [
        pytest.param("bubblewrap", marks=needs_bwrap),
        pytest.param("landlock", marks=needs_landlock),
    ],
)
_ROOT_IS_SAFE_FROM = {"slow_process"}
"""What the kernel itself keeps a command without capabilities from doing to root's programs."""


def run_probes(backend: Backend, user: User, folder: Path) -> dict[str, dict[str, str | bool]]:
    """What each probe got, and whether it left a trace."""
    if os.geteuid() == 0:
        shutil.copyfile("/usr/bin/python3", folder / "setuid-python")
        (folder / "setuid-python").chmod(0o4755)
    return json.loads(run_module(user, world.__name__, backend, str(folder)))["probes"]


def expected_traces(backend: Backend, user: User) -> dict[str, bool]:
    """By probe, whether it leaves a trace; without those that depend on the kernel's age."""
    version = landlock_abi() if backend == "landlock" else 0
    return {
        name: topic.promise(backend) != "held"
        and not (user.uid == 0 and name in _ROOT_IS_SAFE_FROM)
        for topic in promises.TOPICS
        for name in topic.probes
        if backend != "landlock" or version >= topic.since
    }


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(
            user, id=user.name, marks=pytest.mark.thorough if user.name == "nobody" else ()
        )
        for user in users()
    ],
)
@BACKENDS
def test_a_way_out_is_open_only_where_the_table_says_so(backend: Backend, user: User):
    if not can_run(user, world.__name__):
        pytest.skip(f"{user.name} cannot run the program from here")
    expected = expected_traces(backend, user)
    with system_folders(user) as roots:  # a wall replaces /tmp
        found = run_probes(backend, user, roots[0])
    unlike = {
        name: got["said"] or "(a trace)"
        for name, got in found.items()
        if name in expected and got["trace"] != expected[name]
    }
    assert unlike == {}
    assert len(found) >= 60
    assert not {name: got["said"] for name, got in found.items() if "too slow" in str(got["said"])}


def test_each_probe_belongs_to_one_topic():
    listed = [name for topic in promises.TOPICS for name in topic.probes]
    assert sorted(listed) == sorted(probes.names())


def test_the_table_in_the_security_page_is_that_of_the_probes():
    page = promises.SECURITY.read_text("utf-8")
    assert page == promises.with_table(page), "run: python -m tests.support.escapes.promises"


_STOPS_ALL_OF_OURS = """
import os, signal
parents = {}
for name in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{name}/stat") as file:
            parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        pass
keeper = parents[os.getppid()]
ours = [keeper]
for each in ours:
    ours += [pid for pid, parent in parents.items() if parent == each and pid != os.getpid()]
for pid in (*ours[1:], keeper):
    os.kill(pid, signal.{signal})
"""
"""Signals the keeper of the sandbox, and all processes below it but itself."""


@BACKENDS
@pytest.mark.parametrize("signal", ["SIGSTOP", "SIGKILL"])
async def test_no_signal_of_a_command_keeps_later_ones_from_running_and_reaching_the_network(
    backend: Backend, signal: str, tmp_path: Path
):
    work, programs = tmp_path / "work", tmp_path / "bin"
    for folder in (work, programs):
        folder.mkdir()
    (programs / "true").symlink_to("/usr/bin/true")
    path = os.defpath if backend == "bubblewrap" else str(programs)
    gate = loopback_gate()
    parts = WallParts(gate=gate, gate_program=Path(gate_process.__file__))
    sandbox = make_sandbox(tmp_path, parts=parts, environ={"PATH": path})
    (work / "hostile.py").write_text(_STOPS_ALL_OF_OURS.replace("{signal}", signal))
    asking = f"{sys.executable} -I -S {work}/ask.py"
    (work / "ask.py").write_text(_ASKS_THE_GATE)
    try:
        assert sandbox.state(work).backend == backend
        with suppress(ToolError):
            async with asyncio.timeout(PATIENCE_S):
                await run_inside(sandbox, work, f"exec {sys.executable} -I -S hostile.py")
        async with asyncio.timeout(PATIENCE_S):
            try:
                said = (await run_inside(sandbox, work, asking))[1]
            except ToolError:  # a killed keeper: the text says to run the command again
                said = (await run_inside(sandbox, work, asking))[1]
    finally:
        await sandbox.close_walls()
    assert said == "HTTP/1.1 403 \n"


_ASKS_THE_GATE = """
import os, socket, urllib.parse
gate = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
with socket.create_connection((gate.hostname, gate.port), 5) as link:
    link.sendall(b"CONNECT a.test:443 HTTP/1.1\\r\\n\\r\\n")
    print(link.recv(13).decode())
"""


_ENDS_ITS_KEEPER = """
import os, signal, time
guardian = os.getppid()
fields = open(f"/proc/{guardian}/stat").read().rpartition(")")[2].split()
if not os.fork():
    os.setsid()
    for handle in range(3):
        os.close(handle)
    for process in (guardian, int(fields[1])):
        os.kill(process, signal.SIGKILL)
    time.sleep(0.4)
    open("lived-on", "w")
time.sleep(60)
"""


@BACKENDS
async def test_a_command_that_ends_its_keeper_ends_with_the_wall(backend: Backend, tmp_path: Path):
    work, programs = tmp_path / "work", tmp_path / "bin"
    for folder in (work, programs):
        folder.mkdir()
    (programs / "true").symlink_to("/usr/bin/true")
    path = os.defpath if backend == "bubblewrap" else str(programs)
    sandbox = make_sandbox(tmp_path, environ={"PATH": path})
    (tmp_path / "home/key").write_text("decoy")
    (work / "hostile.py").write_text(_ENDS_ITS_KEEPER)
    try:
        assert sandbox.state(work).backend == backend
        words = f"exec {sys.executable} -I -S hostile.py"
        assert (await run_inside(sandbox, work, words))[0] != 0
        await asyncio.sleep(0.6)
        assert not (work / "lived-on").exists()
        said = (await run_inside(sandbox, work, f"echo up; cat {tmp_path}/home/key"))[1]
    finally:
        await sandbox.close_walls()
    assert said.startswith("up\n")
    assert "decoy" not in said
