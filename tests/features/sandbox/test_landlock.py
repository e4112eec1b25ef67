import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import psutil
import pytest

from agent_tui.features.sandbox.backends import (
    keep_pythons,
    landlock_argv,
    landlock_environ,
    link_home,
    list_grants,
)
from agent_tui.features.sandbox.plan import SandboxPlan
from agent_tui.tools.processes.keeper import Confinement, ProcessKeeper
from tests.support.patience import PATIENCE_S
from tests.support.processes import alive, gone, nap
from tests.support.sandbox import needs_landlock


@pytest.fixture
def plan(tmp_path: Path) -> SandboxPlan:
    """A workspace with notes, and a home folder with a toolchain and a key."""
    for name in ("home/tool", "home/notes", "work", "stand-in", "scratch", "gate"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("home/key", "home/tool/program", "home/tool/key", "work/notes"):
        (tmp_path / name).write_text("decoy\n")
    return SandboxPlan(
        workspace=tmp_path / "work",
        writable=(tmp_path / "work",),
        readable=(tmp_path / "home/tool", Path(sys.prefix), Path(sys.base_prefix)),
        hidden=(tmp_path / "home/tool/key",),
        read_only=(),
        home=tmp_path / "home",
        home_stand_in=tmp_path / "stand-in",
        scratch=tmp_path / "scratch",
        gate=tmp_path / "gate",
    )


def run(plan: SandboxPlan, words: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*landlock_argv(plan), *words], cwd=plan.workspace, capture_output=True, text=True
    )


def script(plan: SandboxPlan, text: str) -> "subprocess.CompletedProcess[str]":
    return run(plan, [sys.executable, "-I", "-S", "-c", text])


def test_of_a_folder_with_something_hidden_only_the_rest_is_granted(plan: SandboxPlan):
    access = dict(list_grants(plan))
    assert access[plan.home / "tool/program"] == "read"
    assert not {plan.home, plan.home / "key", plan.home / "tool", plan.home / "tool/key"} & {
        *access
    }
    assert not {Path("/"), Path("/tmp"), Path("/dev"), Path("/run"), *plan.home.parents} & {*access}
    assert access[Path("/usr")] == "read"
    assert access[Path("/dev/null")] == "use"
    assert access[plan.workspace] == "write"


def test_in_plan_mode_the_working_folders_are_only_read(plan: SandboxPlan):
    access = dict(list_grants(replace(plan, is_read_only=True)))
    assert access[plan.workspace] == "read"
    assert access[plan.scratch] == "write"


def test_no_folder_is_granted_in_which_programs_outside_open_sockets(plan: SandboxPlan):
    assert plan.gate not in dict(list_grants(plan))


def test_java_and_uv_find_the_stand_in_for_home_by_what_they_read(plan: SandboxPlan):
    given = {"MAVEN_OPTS": "-Xmx1g"}
    kept = plan.scratch / "python"
    without = landlock_environ(keep_pythons(plan, kept), given)
    assert without["HOME"] == str(plan.home_stand_in)
    assert without["UV_PYTHON_INSTALL_DIR"] == str(kept)
    assert without["MAVEN_OPTS"] == f"-Duser.home={plan.home_stand_in} -Xmx1g"
    users = plan.home / ".local/share/uv/python"
    users.mkdir(parents=True)
    shown = keep_pythons(replace(plan, readable=(*plan.readable, users)), kept)
    assert landlock_environ(shown, given)["UV_PYTHON_INSTALL_DIR"] == str(users)
    assert kept not in dict(list_grants(shown))
    spaced = replace(plan, home_stand_in=plan.scratch / "a b")
    assert "GRADLE_OPTS" not in landlock_environ(spaced, given)
    assert "UV_PYTHON_INSTALL_DIR" not in landlock_environ(plan, given)


def test_the_stand_in_for_home_leads_to_what_exists_of_it(plan: SandboxPlan):
    (plan.home / "tools/one/bin").mkdir(parents=True)
    more = (plan.home / "tools/one", plan.home / "tools/one/bin", plan.home / "tool")
    (plan.home_stand_in / "tool").write_text("made before\n")
    link_home(replace(plan, readable=more))
    assert (plan.home_stand_in / "tools/one").readlink() == plan.home / "tools/one"
    assert (plan.home_stand_in / "tool").read_text() == "made before\n"


def test_a_cache_in_which_something_is_shown_stands_in_nobodys_way(plan: SandboxPlan):
    shown, own = plan.home / ".cache/uv/archive/x", plan.scratch / "own"
    shown.mkdir(parents=True)
    own.mkdir()
    link_home(replace(plan, readable=(shown,), caches=((plan.home / ".cache/uv", own),)))
    assert (plan.home_stand_in / ".cache/uv/archive/x").readlink() == shown
    assert list(own.iterdir()) == []


@needs_landlock
def test_inside_the_workspace_is_written_and_home_is_not_read(plan: SandboxPlan):
    done = run(plan, ["/bin/sh", "-c", f"cat notes > copy; cd {plan.home}; cat tool/program key"])
    assert (plan.workspace / "copy").read_text() == "decoy\n"
    assert done.stdout == "decoy\n"
    assert "key: Permission denied" in done.stderr
    shut = replace(plan, is_read_only=True)
    refused = script(shut, f"open('{plan.workspace}/x', 'w')")
    assert "PermissionError" in refused.stderr
    assert not (plan.workspace / "x").exists()


@needs_landlock
def test_the_programs_exit_code_is_the_launchers(plan: SandboxPlan):
    assert run(plan, ["/bin/sh", "-c", "exit 7"]).returncode == 7
    assert run(plan, ["/bin/sh", "-c", "kill -9 $$"]).returncode == 128 + 9
    nothing = run(plan, ["/nowhere/program"])
    assert nothing.returncode == 125
    assert "No such file" in nothing.stderr


@needs_landlock
def test_sockets_reach_this_machine_only(plan: SandboxPlan):
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepting = threading.Thread(target=lambda: server.accept()[0].close())
        accepting.start()
        words = f"""
import errno, socket
for kind in ((2, 1), (10, 1), (2, 1 | socket.SOCK_NONBLOCK, 6)):
    made = socket.socket(*kind)
    print(made.getsockopt(1, 25, 16).rstrip(bytes(1)), made.get_inheritable())
    try:
        made.setsockopt(1, 25, b"")
    except OSError as error:
        print(errno.errorcode[error.errno])
socket.create_connection({server.getsockname()!r}, 1).close()
for kind in ((1, 1), (2, 2), (2, 3, 1), (2, 1, 262)):
    try:
        print(socket.socket(*kind))
    except OSError as error:
        print(errno.errorcode[error.errno])
one, other = socket.socketpair()
one.send(b"x")
print(other.recv(1))
"""
        done = script(plan, words)
        accepting.join()
    tied = ["b'lo' False", "EPERM"] * 3
    others = ["EPERM", "EPROTONOSUPPORT", "EPROTONOSUPPORT", "EPROTONOSUPPORT", "b'x'"]
    assert done.stdout.splitlines() == [*tied, *others], done.stderr


@needs_landlock
def test_what_the_program_leaves_behind_is_ended(plan: SandboxPlan):
    words = """
import os, time
reading, writing = os.pipe()
if not os.fork():
    os.setsid()
    if not os.fork():
        os.write(writing, str(os.getpid()).encode())
        time.sleep(60)
    os._exit(0)
print(os.read(reading, 20).decode())
"""
    left = int(script(plan, words).stdout)
    assert not Path(f"/proc/{left}").exists()


_ROLES: Sequence[str] = ("inner guardian", "inner keeper", "launcher", "guardian", "keeper")
_ENDS_TOGETHER = {"inner guardian", "launcher", "guardian", "keeper"}
"""Without these, nothing is left that could end the commands, and the program does not wait for
them: ``SECURITY.md`` says so."""


@needs_landlock
@pytest.mark.thorough
@pytest.mark.parametrize(
    "killed",
    [
        pytest.param(roles, id=", ".join(roles))
        for count in range(1, len(_ROLES) + 1)
        for roles in combinations(_ROLES, count)
    ],
)
async def test_commands_end_with_whatever_of_the_sandbox_is_killed(
    plan: SandboxPlan, killed: Sequence[str]
):
    outside = ProcessKeeper()
    keeper = ProcessKeeper(confinement=Confinement(landlock_argv(plan), outside))
    one = nap(73_500)
    script = f"trap '' TERM HUP; (setsid setsid {one} &); setsid {one} & echo $$; wait"
    words = ["/bin/sh", "-c", script]
    async with keeper.child_group(words, cwd=plan.workspace, environ=dict(os.environ)) as child:
        said = child.read_until_gone()
        around = psutil.Process(int(await anext(said))).parents()
        roles = dict(zip(_ROLES, around, strict=False))
        assert around[len(roles)].pid == os.getpid()
        for role in killed:
            with suppress(psutil.NoSuchProcess):  # it ended with another
                roles[role].kill()
        async with asyncio.timeout(PATIENCE_S):
            async for _ in said:
                pass
    if _ENDS_TOGETHER.issubset(killed):
        for pid in alive(one):
            psutil.Process(pid).kill()
    assert await asyncio.to_thread(gone, one)
    keeper.close()
    outside.close()


@needs_landlock
def test_what_the_program_leaves_behind_does_not_outrun_the_launcher(plan: SandboxPlan):
    words = """
import os, time
for _ in range(30):
    if os.fork() == 0:
        for _ in range(2_000):
            if os.fork():
                os._exit(0)
            os.setsid()
            time.sleep(0.002)
        open("outran", "w")
        os._exit(0)
"""
    assert script(plan, words).returncode == 0
    assert not (plan.workspace / "outran").exists()
