"""Who changed a file, and when nobody but the user can have."""

import itertools
import os
import shutil
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.sandbox.approved_state import APPROVED, describe_asked
from agent_tui.features.sandbox.folder_copies import FolderCopies
from agent_tui.features.sandbox.known_versions import KnownVersions
from tests.support.sandbox import needs_bwrap
from tests.support.watched_folder import WatchedFolder

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="uses git")

_TWO_BRANCHES = """
git init -q -b main .; mkdir .vscode; echo 1 > .vscode/a; git add .; git commit -qm a
git switch -qc other; echo 2 > .vscode/a; git commit -qam b; git switch -q main
"""
_USERS = "echo mine > AGENTS.md; mkdir -p .zed; echo 1 > .zed/settings.json"


@pytest.fixture
def place(tmp_path: Path) -> WatchedFolder:
    """A folder in the wall."""
    return _place(tmp_path, has_mounts=True)


@pytest.fixture
def open_place(tmp_path: Path) -> WatchedFolder:
    """A folder in a wall that cannot hold files in it."""
    return _place(tmp_path, has_mounts=False)


def _place(tmp_path: Path, *, has_mounts: bool) -> WatchedFolder:
    folders = [tmp_path / name for name in ("proj", "own", "home")]
    for folder in folders:
        folder.mkdir()
    return WatchedFolder(*folders, has_mounts=has_mounts)


async def _begin_job(place: WatchedFolder) -> None:
    await place.watch.note()
    await place.watch.hold(is_over=False)


async def _approve(place: WatchedFolder, command: str) -> None:
    for held in (await place.run(command)).held:
        await place.watch.decide(held, True)
    await place.watch.find_held()


@needs_bwrap
async def test_after_a_change_in_a_copied_folder_the_users_commits_are_theirs(
    place: WatchedFolder,
):
    place.outside(_TWO_BRANCHES)
    assert (await place.run("git switch -q other")).held == ()
    place.outside("git switch -qc mine; echo mine > AGENTS.md; git add .; git commit -qm c")
    place.outside("git switch -q main")
    assert (await place.run("git switch -q mine")).held == ()
    assert place.text("AGENTS.md") == "mine\n"


@needs_bwrap
@pytest.mark.parametrize("is_held", [True, False])
async def test_after_a_change_in_a_copied_folder_other_programs_hold_nothing_of_the_users(
    place: WatchedFolder, is_held: bool
):
    place.outside(_TWO_BRANCHES)
    await place.run("echo 3 > .vscode/a" if is_held else "git switch -q other")
    place.outside(_USERS)
    place.watch = place.watch_again()  # the first one idles, or was killed
    assert (await place.run("true")).held == ()
    assert place.text("AGENTS.md") == "mine\n"


@needs_bwrap
async def test_what_is_held_from_a_copied_folder_is_held_once(place: WatchedFolder):
    place.outside(_TWO_BRANCHES)
    settled = await place.run("echo 3 > .vscode/a; echo 3 > .vscode/b; head -c 21M /dev/zero > c")
    assert [held.path.name for held in settled.held] == ["a", "b"]
    (held,) = (await place.run("head -c 21M /dev/zero > .vscode/c")).held
    assert held.path.name == ".vscode"


@needs_bwrap
async def test_what_is_written_to_a_copy_again_and_again_is_held_once(
    place: WatchedFolder, monkeypatch: pytest.MonkeyPatch
):
    place.outside(_TWO_BRANCHES)
    await place.watch.note()
    place.inside("echo 3 > .vscode/a")
    file = dict(place.watch.covers.copies)[place.root / ".vscode"] / "a"
    settle, contents = FolderCopies.settle, itertools.count(4)

    def write_after(copies: FolderCopies) -> None:  # as a job does
        settle(copies)
        file.write_text(f"{next(contents)}\n")

    with monkeypatch.context() as patch:
        patch.setattr(FolderCopies, "settle", write_after)
        (held,) = (await place.watch.hold()).held
    assert held.files[0][0] == place.root / ".vscode/a"
    assert place.text(".vscode/a") == file.read_text() == "1\n"
    assert len((await place.run("echo 3 > .vscode/a")).held) == 1


@needs_bwrap
async def test_a_change_in_a_copied_folder_that_could_not_be_judged_is_judged_later(
    place: WatchedFolder, monkeypatch: pytest.MonkeyPatch
):
    async def fail(*_: object, **__: object) -> None:
        raise OSError("no space")

    place.outside(_TWO_BRANCHES)
    await place.watch.note()
    place.inside("git switch -q other")
    with monkeypatch.context() as patch:
        patch.setattr(KnownVersions, "note", fail)
        with pytest.raises(ToolError, match="no space"):
            await place.watch.hold()
    assert place.text(".vscode/a") == "1\n"
    await place.run("true")
    assert place.text(".vscode/a") == "2\n"


async def test_what_the_user_commits_during_a_question_is_theirs(open_place: WatchedFolder):
    open_place.outside("git init -q; git commit -q --allow-empty -m a")
    (held,) = (await open_place.run("echo x > .envrc")).held
    open_place.outside(
        "git switch -qc mine; echo mine > AGENTS.md; git add .; git commit -qm b; git switch -q -"
    )
    await open_place.watch.decide(held, True)
    await open_place.watch.find_held()
    assert (await open_place.run("git switch -q mine")).held == ()


async def test_after_the_last_decision_other_programs_hold_nothing_of_the_users(
    open_place: WatchedFolder,
):
    await _approve(open_place, "echo x > .envrc")
    open_place.outside(_USERS)
    open_place.watch = open_place.watch_again()
    assert (await open_place.run("true")).held == ()


@pytest.mark.parametrize("is_killed", [True, False])
async def test_what_changes_while_another_program_has_only_a_job_is_asked_about_and_stays(
    open_place: WatchedFolder, is_killed: bool
):
    open_place.outside("git init -q; echo team > CLAUDE.md")
    await open_place.run("true")
    await _begin_job(open_place)
    open_place.outside(f"{_USERS}; echo mine > CLAUDE.md; git remote add up ../up")
    if is_killed:  # its lock is held by nobody
        (state,) = (open_place.own / "running").glob("*.state")
        state.rename(state.with_name("killed.state"))
    open_place.watch = open_place.watch_again()
    settled = await open_place.run("true")
    assert {held.path.name for held in settled.held if held.is_in_place} == {
        "AGENTS.md",
        ".zed",
        "CLAUDE.md",
        "config",
    }
    assert len(settled.held) == 4
    assert open_place.text("CLAUDE.md") == "mine\n"


async def test_what_changes_while_another_program_has_a_command_is_held(
    open_place: WatchedFolder,
):
    await _begin_job(open_place)
    await open_place.watch.note()
    open_place.inside("echo 1 > .envrc")
    (held,) = await open_place.watch_again().recover()
    assert not held.is_in_place


async def test_the_next_session_says_what_is_still_in_question(open_place: WatchedFolder):
    state = open_place.own / APPROVED
    assert describe_asked(state) == ""
    await _begin_job(open_place)
    open_place.outside("echo 1 > .envrc")
    (held,) = (await open_place.run("true")).held
    assert held.is_in_place
    await open_place.watch.close()
    assert f"in another session: {open_place.root}/.envrc." in describe_asked(state)
    open_place.watch = open_place.watch_again()
    (held,) = (await open_place.run("true")).held
    await open_place.watch.decide(held, True)
    assert describe_asked(state) == ""


_WITHDRAWALS = [
    ("echo mine > AGENTS.md", False),
    ("echo mine > AGENTS.md", True),
    ("rm AGENTS.md", False),  # what is deleted while a job runs comes back
]


@pytest.mark.parametrize(("word", "is_job"), _WITHDRAWALS)
async def test_what_the_user_changes_or_deletes_after_a_yes_withdraws_it(
    open_place: WatchedFolder, word: str, is_job: bool
):
    open_place.outside("git init -q; git commit -q --allow-empty -m a")
    await _approve(open_place, "echo theirs > AGENTS.md")
    await open_place.run("true")
    if is_job:
        await _begin_job(open_place)
    open_place.outside(word)
    await _approve(open_place, "true")
    (held,) = (await open_place.run("echo theirs > AGENTS.md")).held
    assert not held.is_in_place
    assert open_place.text("AGENTS.md") == ("mine\n" if "mine" in word else "")


async def test_a_folder_that_the_user_deletes_after_a_yes_does_not_come_back(
    open_place: WatchedFolder,
):
    open_place.outside("git init -q; git commit -q --allow-empty -m a")
    await _approve(open_place, "mkdir .vscode; echo 1 > .vscode/tasks.json")
    open_place.outside("rm -r .vscode")
    await open_place.run("true")
    assert (await open_place.run("mkdir .vscode; echo 1 > .vscode/tasks.json")).held


async def test_a_yes_takes_the_place_of_what_was_there_before(open_place: WatchedFolder):
    open_place.outside("git init -q; echo a > AGENTS.md")
    await open_place.run("true")
    await _approve(open_place, "echo b > AGENTS.md")
    (held,) = (await open_place.run("echo a > AGENTS.md")).held
    assert open_place.text("AGENTS.md") == "b\n"
    await open_place.watch.decide(held, True)
    assert (await open_place.run("echo b > AGENTS.md")).held


async def test_what_a_tool_writes_takes_the_place_of_a_yes(open_place: WatchedFolder):
    open_place.outside("git init -q; git commit -q --allow-empty -m a")
    await _approve(open_place, "echo b > AGENTS.md")
    path = open_place.root / "AGENTS.md"
    path.write_text("c\n")
    await open_place.watch.accept({path: b"c\n"})
    assert (await open_place.run("echo b > AGENTS.md")).held


async def test_what_a_command_takes_away_it_may_bring_back(open_place: WatchedFolder):
    open_place.outside("git init -q; git commit -q --allow-empty -m a; echo a > AGENTS.md")
    await open_place.run("mv AGENTS.md kept")
    assert (await open_place.run("mv kept AGENTS.md")).held == ()


_HOOKS = "git init -q; git config core.hooksPath .githooks; mkdir .githooks; echo 1 > a; git add a"


async def test_a_yes_to_a_file_that_cannot_run_is_none_to_one_that_can(
    open_place: WatchedFolder,
):
    open_place.outside(f"{_HOOKS}; git commit -qm a")
    await _approve(open_place, "echo x > .githooks/pre-push; chmod 644 .githooks/pre-push")
    assert (await open_place.run("chmod 755 .githooks/pre-push")).held
    assert (open_place.root / ".githooks/pre-push").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("is_later", [True, False])
async def test_a_version_of_the_users_commits_has_its_kind(
    open_place: WatchedFolder, is_later: bool
):
    commit = "echo x > .githooks/h; printf ../a > .githooks/l; git add .; git commit -qm b"
    open_place.outside(f"{_HOOKS}; git commit -qm a")
    if is_later:
        await open_place.run("true")
    open_place.outside(f"git switch -qc b; {commit}; git switch -q -")
    for change in ("chmod 755 .githooks/h", "ln -sf ../a .githooks/l"):
        assert (await open_place.run(f"git switch -q b; {change}")).held
        open_place.outside("git checkout -q .; git switch -q -")
    assert (await open_place.run("git switch -q b")).held == ()


async def test_git_brings_a_change_of_the_mode_alone(open_place: WatchedFolder):
    hook = "echo x > .githooks/pre-push; git add .; git commit -qm a"
    open_place.outside(
        f"{_HOOKS}; {hook}; git switch -qc b; chmod +x .githooks/*; git commit -qam b;"
        "git switch -q -"
    )
    settled = await open_place.run("git switch -q b")
    assert (settled.held, settled.brought) == ((), ())
    assert (open_place.root / ".githooks/pre-push").stat().st_mode & 0o100


async def test_once_nothing_will_run_no_working_file_is_open(place: WatchedFolder):
    def find_open() -> set[str]:
        handles = (each.path for each in os.scandir("/proc/self/fd"))
        targets = map(os.path.realpath, handles)
        return {target for target in targets if Path(target).is_relative_to(place.root)}

    place.outside("git init -q; echo 1 > mise.toml")
    await place.watch.note()
    assert {str(place.root), str(place.root / "mise.toml")} <= find_open()
    await place.watch.hold()
    await place.watch.close()
    assert find_open() == set()


@pytest.mark.thorough
@pytest.mark.parametrize("is_linked", [True, False])
async def test_a_yes_that_the_user_takes_back_elsewhere_in_the_repository_ends_everywhere(
    tmp_path: Path, is_linked: bool
):
    base = _place(tmp_path, has_mounts=False)
    base.outside(
        "git init -q -b main; mkdir sub; echo a > sub/AGENTS.md; git add .; git commit -qm a;"
        "git worktree add -q --detach ../tree"
    )
    shared, top = tmp_path / "repositories", tmp_path / "tree" if is_linked else base.root
    inner = WatchedFolder(base.root / "sub", tmp_path / "inner", base.home, False, shared)
    outer = WatchedFolder(top, tmp_path / "outer", base.home, False, shared)
    await _approve(inner, "echo theirs > AGENTS.md")
    assert (await outer.run("echo theirs > sub/AGENTS.md")).held == ()
    await outer.run("true")
    outer.outside("echo mine > sub/AGENTS.md")
    await outer.run("git checkout -q sub/AGENTS.md")
    await _begin_job(outer)  # so the other conversation does not see what the user did
    await inner.run("git checkout -q AGENTS.md")
    settled = await inner.run("echo theirs > AGENTS.md")
    assert [held.path.name for held in settled.held] == ["AGENTS.md"]
    await inner.watch.decide(settled.held[0], True)
    assert (await outer.run("echo theirs > sub/AGENTS.md")).held == ()
