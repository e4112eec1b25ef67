import os
import socket
from pathlib import Path

import pytest

from agent_tui.features.sandbox.home import sockets_of_others
from tests.support.sandbox import make_sandbox, needs_bwrap, run_inside


def serve(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    made.listen()
    return made


def test_named_sockets_are_found_but_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "gate").mkdir()
    monkeypatch.chdir(tmp_path)
    with serve(tmp_path / "bus"), serve(tmp_path / "gate/proxy"), serve(Path("relative")):
        found = sockets_of_others(tmp_path / "gate")
    assert [path for path in found if path.is_relative_to(tmp_path)] == [tmp_path / "bus"]
    assert tmp_path / "bus" not in sockets_of_others(tmp_path / "gate")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another's folder")
def test_what_only_a_capability_reaches_needs_no_cover(tmp_path: Path):
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    with serve(folder / "bus"):
        assert folder / "bus" in sockets_of_others(tmp_path / "gate")
        os.chown(folder, 65534, 65534)
        assert folder / "bus" not in sockets_of_others(tmp_path / "gate")


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
