import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from agent_tui.features.sandbox.named_sockets import find_sockets_of_others
from agent_tui.features.sandbox.project_walk import ProjectWalk
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.sandbox import make_sandbox, needs_bwrap, run_inside, watching

_CONNECT = f"""{sys.executable} -c '
import os, socket
for folder, _, names in os.walk("."):
    for name in names:
        try:
            socket.socket(socket.AF_UNIX).connect(os.path.join(folder, name))
            print("reached", ascii(os.path.join(folder, name)))
        except OSError:
            pass
'"""

_SERVE = f"""{sys.executable} -c '
import os, signal, socket
made = [socket.socket(socket.AF_UNIX) for _ in range(3)]
for each, name in zip(made, ("relative", os.path.abspath("whole"), "first")):
    each.bind(name)
    each.listen()
os.rename("first", "renamed")
os.close(os.open("ready", os.O_CREAT))
signal.pause()
'"""


def serve(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    made.listen()
    return made


def find_here(gate: Path, seen: tuple[Path, ...] = ()) -> tuple[Path, ...]:
    """The sockets of others for a wall that has bound none, as its processes are not there."""
    found = find_sockets_of_others(seen, gate, 0, ProcessKeeper())
    return tuple(path for path in found if path.is_relative_to(gate.parent))


def test_named_sockets_are_found_but_ours(tmp_path: Path):
    (tmp_path / "gate").mkdir()
    with serve(tmp_path / "bus"), serve(tmp_path / "gate/proxy"):
        assert find_here(tmp_path / "gate") == (tmp_path / "bus",)
    assert find_here(tmp_path / "gate") == ()


def test_a_socket_that_was_renamed_in_its_folder_is_found(tmp_path: Path):
    with serve(tmp_path / "new"):
        (tmp_path / "new").rename(tmp_path / "bus")
        assert find_here(tmp_path / "gate") == (tmp_path / "bus",)


@pytest.mark.thorough
def test_a_socket_that_nobody_serves_any_more_needs_no_cover(tmp_path: Path):
    path = tmp_path / "bus"
    with serve(path):
        assert find_here(tmp_path / "gate", (path,)) == (path,)
    assert path.is_socket()
    assert find_here(tmp_path / "gate", (path,)) == ()


@pytest.mark.thorough
def test_the_look_whether_a_socket_is_served_is_not_seen_by_its_program(tmp_path: Path):
    path = tmp_path / "bus"
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_UNIX, kind) as made:
            made.bind(str(path))
            if kind != socket.SOCK_DGRAM:
                made.listen()
            assert find_here(tmp_path / "gate") == (path,)
            made.setblocking(False)
            with pytest.raises(BlockingIOError):
                made.recv(1) if kind == socket.SOCK_DGRAM else made.accept()
        path.unlink()


def test_a_walk_sees_each_socket_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    places = [tmp_path / name for name in ("a", ".venv/b/c", "new\nline")]
    for place in places:
        place.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    walk = ProjectWalk((tmp_path,))
    sockets = [serve(place / "bus") for place in places]
    try:
        assert walk.look().sockets == [
            *sorted(place / "bus" for place in places if ".venv" not in place.parts),
            tmp_path / ".venv/b/c/bus",
        ]
        (tmp_path / "a/bus").rename(tmp_path / "moved")
        assert set(walk.look().sockets) == {tmp_path / "moved", *(p / "bus" for p in places[1:])}
    finally:
        for each in sockets:
            each.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may connect whatever the mode is")
def test_a_socket_without_rights_which_a_command_could_give_it_is_found(tmp_path: Path):
    path = tmp_path / "bus"
    with serve(path):
        for mode in (0, 0o400):
            path.chmod(mode)
            assert find_here(tmp_path / "gate", (path,)) == (path,)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another's folder")
def test_what_only_a_capability_reaches_needs_no_cover(tmp_path: Path):
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    with serve(folder / "bus"):
        assert find_here(tmp_path / "gate") == (folder / "bus",)
        os.chown(folder, 65534, 65534)
        assert find_here(tmp_path / "gate") == ()


@needs_bwrap
async def test_a_socket_in_the_workspace_that_comes_later_is_covered(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    sandbox = make_sandbox(tmp_path)
    try:
        assert (await run_inside(sandbox, work, "test ! -e bus"))[0] == 0
        with serve(work / "bus"):
            assert (await run_inside(sandbox, work, "test -S bus"))[0] == 1
        (work / "bus").unlink()
        assert (await run_inside(sandbox, work, "touch bus"))[0] == 0
    finally:
        await sandbox.close_walls()


@needs_bwrap
@pytest.mark.thorough
async def test_no_command_reaches_a_programs_socket_whatever_became_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    work = tmp_path / "work"
    (work / "around").mkdir(parents=True)
    (work / "other").mkdir()
    monkeypatch.chdir(work)
    sandbox = make_sandbox(tmp_path, parts=watching(tmp_path / "own"))
    handle = os.open("other", os.O_PATH)
    names = ("plain", work / "a", work / "b", work / "around/c", work / "new\nline")
    sockets = [serve(Path(name)) for name in (*names, f"/proc/self/fd/{handle}/d")]
    (work / "a").rename("renamed")
    (work / "linked").hardlink_to("b")
    (work / "b").unlink()
    (work / "around").rename("moved")
    watch = sandbox.watch(work)
    assert watch is not None
    try:
        await watch.note()
        assert (await run_inside(sandbox, work, _CONNECT)) == (0, "")
        await watch.hold()
    finally:
        os.close(handle)
        for each in sockets:
            each.close()
        await sandbox.close_walls()


@needs_bwrap
@pytest.mark.thorough
async def test_commands_reach_what_another_command_serves(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    sandbox = make_sandbox(tmp_path, parts=watching(tmp_path / "own"))
    watch = sandbox.watch(work)
    assert watch is not None
    try:
        await watch.note()
        keeper = await sandbox.keeper(work)
        words = ["/bin/sh", "-c", _SERVE]
        async with keeper.child_group(words, cwd=work, environ={}):
            while not (work / "ready").exists():
                await asyncio.sleep(0.01)
            await watch.note()
            reached = await run_inside(sandbox, work, _CONNECT)
        assert sorted(reached[1].split()[1::2]) == ["'./relative'", "'./renamed'", "'./whole'"]
        await watch.hold()
        await watch.hold()
    finally:
        await sandbox.close_walls()
