import os
import subprocess
from pathlib import Path

import pytest

from agent_tui.features.sandbox.folders import StandIns
from agent_tui.features.sandbox.kept_home import KeptHome, take_kept_home
from agent_tui.features.sandbox.sandbox import Sandbox
from tests.support.sandbox import make_sandbox, needs_landlock, run_inside


def taken(stand_ins: StandIns, work: Path) -> KeptHome:
    kept = stand_ins.kept_home(work)
    assert kept is not None
    return kept


def finished(stand_ins: StandIns, kept: KeptHome, target: Path) -> Path:
    """The stand-in of a wall with a link to `target`, in its place."""
    fresh = stand_ins.of_wall().home_stand_in
    (fresh / "tools").mkdir()
    (fresh / "tools/link").symlink_to(target)
    return kept.move_in(fresh)


def test_the_next_conversation_has_it_at_the_same_path_and_takes_nothing_over(tmp_path: Path):
    tool = tmp_path / "tool"
    tool.touch()
    work = tmp_path / "work"
    work.mkdir()
    stand_ins = StandIns(tmp_path / "walls")
    kept = taken(stand_ins, work)
    home = finished(stand_ins, kept, tool)
    (kept.pythons / "3.13").mkdir()
    (home / ".npmrc").write_text("planted")
    (home / "closed/below").mkdir(parents=True)
    (home / "closed/below/x").touch()
    (home / "closed").chmod(0)
    (home / "evil").symlink_to("/etc")
    assert "closed" in stand_ins.strays(tmp_path)
    stand_ins.remove()
    assert sorted(path.name for path in home.iterdir()) == ["evil", "tools"]
    assert (home / "tools/link").samefile(tool)
    again = StandIns(tmp_path / "walls")
    assert finished(again, taken(again, work), tool) == home
    assert [path.name for path in home.iterdir()] == ["tools"]
    assert (kept.pythons / "3.13").is_dir()
    again.remove()


def test_two_programs_in_a_folder_have_one_each_and_other_folders_others(tmp_path: Path):
    work, other = tmp_path / "work", tmp_path / "other"
    for folder in (work, other):
        folder.mkdir()
    programs = [StandIns(tmp_path / "walls") for _ in range(2)]
    homes = [finished(each, taken(each, work), tmp_path) for each in programs]
    homes.append(finished(programs[0], taken(programs[0], other), tmp_path))
    assert len(set(homes)) == 3
    programs[1].remove()
    assert all((home / "tools/link").samefile(tmp_path) for home in homes)
    assert taken(programs[1], work).home == homes[1]
    for each in programs:
        each.remove()


def test_the_place_of_a_deleted_folder_is_removed_unless_its_disk_is_missing(tmp_path: Path):
    parent = tmp_path / "homes"
    places: list[Path] = []
    for name in ("gone", "disk/missing", "there"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        kept = take_kept_home(parent, folder)
        assert kept is not None
        kept.leave()
        places.append(kept.folder)
    (tmp_path / "gone").rmdir()
    (tmp_path / "disk/missing").rmdir()
    (tmp_path / "disk").rmdir()
    (parent / "junk").write_text("x")
    kept = take_kept_home(parent, tmp_path / "there")
    assert kept is not None
    assert [place.exists() for place in places] == [False, True, True]
    kept.leave()


def test_on_a_disk_without_locks_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "agent_tui.features.sandbox.kept_home.lock_descriptor", lambda _handle: False
    )
    assert take_kept_home(tmp_path, tmp_path) is None
    assert take_kept_home(Path(os.devnull), tmp_path) is None


def sandbox_of(tmp_path: Path) -> Sandbox:
    return make_sandbox(tmp_path, environ={"PATH": str(tmp_path)})


@needs_landlock
async def test_what_a_command_links_through_its_home_works_afterwards_and_in_the_next(
    tmp_path: Path,
):
    work, tools = tmp_path / "work", tmp_path / "home/.local/bin"
    work.mkdir()
    tools.mkdir(parents=True)
    (tools / "tool").write_text("#!/bin/sh\necho works\n")
    (tools / "tool").chmod(0o755)
    first = sandbox_of(tmp_path)
    await run_inside(first, work, "ln -s ~/.local/bin/tool tool; touch ~/left; echo $HOME > home")
    await first.close_walls()
    assert subprocess.check_output([work / "tool"]) == b"works\n"
    second = sandbox_of(tmp_path)
    _, printed = await run_inside(second, work, "./tool; echo $HOME; ls ~/left")
    await second.close_walls()
    assert printed.splitlines()[:2] == ["works", (work / "home").read_text().strip()]
    assert "No such file" in printed


@needs_landlock
async def test_in_plan_mode_commands_write_in_no_home_that_others_have(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    sandbox = sandbox_of(tmp_path)
    for is_read_only in (False, True):
        await sandbox.keeper(work, is_read_only=is_read_only)
    homes = {
        sandbox.environ(work, {}, is_read_only=is_read_only)["HOME"]
        for is_read_only in (False, True)
    }
    assert len(homes) == 2
    await sandbox.close_walls()
