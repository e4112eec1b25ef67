"""Each link and folder on the way to a followed file is followed like the file."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support.rows import each_row
from tests.support.sandbox import needs_bwrap
from tests.support.watched_folder import WatchedFolder

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="uses git")

_HOOK = "ln -s ../../tools/hk/pc .git/hooks/pre-commit"
_TOOLS = "mkdir -p tools/hk fixtures/hk; echo mine > tools/hk/pc; echo evil > fixtures/hk/pc"
_COMMIT = "git add -A; git commit -qm 1 --no-verify"
_CHANGES = {
    "file that becomes a link": (
        f"{_TOOLS}; {_HOOK}; {_COMMIT}",
        "rm tools/hk/pc; ln -s ../../fixtures/hk/pc tools/hk/pc",
        {"tools/hk/pc"},
        ".git/hooks/pre-commit",
    ),
    "file that becomes a link to what each process has of its own": (
        f"{_TOOLS}; {_HOOK}; {_COMMIT}",
        "rm tools/hk/pc; ln -s /proc/self/cwd/fixtures/hk/pc tools/hk/pc",
        {"tools/hk/pc"},
        ".git/hooks/pre-commit",
    ),
    "folder that becomes a link": (
        f"{_TOOLS}; {_HOOK}; {_COMMIT}",
        "mv tools old; ln -s fixtures tools",
        {"tools"},
        ".git/hooks/pre-commit",
    ),
    "folder that becomes a link out of the project": (
        f"{_TOOLS}; mkdir -p ../x/hk; echo evil > ../x/hk/pc; {_HOOK}; {_COMMIT}",
        "mv tools old; ln -s ../x tools",
        {"tools"},
        ".git/hooks/pre-commit",
    ),
    "folder on two ways": (
        f"{_TOOLS}; mkdir .idea; ln -s ../tools/hk/pc .idea/x; {_HOOK}; {_COMMIT}",
        "mv tools old; ln -s fixtures tools",
        {"tools"},
        ".idea/x",
    ),
    "link in the middle": (
        "mkdir docs; echo mine > docs/a; echo evil > evil; ln -s docs/cur AGENTS.md;"
        f"ln -s a docs/cur; {_COMMIT}",
        "ln -sfn ../evil docs/cur",
        {"docs/cur"},
        "AGENTS.md",
    ),
    "link in the middle, to a file of the user's in no commit": (
        "mkdir docs; echo mine > docs/a; ln -s docs/cur AGENTS.md;"
        f"ln -s a docs/cur; {_COMMIT}; echo evil > evil",
        "ln -sfn ../evil docs/cur",
        {"docs/cur"},
        "AGENTS.md",
    ),
    "two links in the middle": (
        "echo mine > a; echo evil > evil; ln -s x AGENTS.md; ln -s y x; ln -s ./z y; ln -s a z",
        "ln -sfn evil z; rm y; ln -s ../proj/z y",
        {"y", "z"},
        "AGENTS.md",
    ),
    "link to a folder in the middle": (
        f"{_TOOLS}; ln -s tools cur; ln -s ../../cur/hk/pc .git/hooks/pre-commit; {_COMMIT}",
        "ln -sfn fixtures cur",
        {"cur"},
        ".git/hooks/pre-commit",
    ),
    "link that becomes a folder": (
        f"{_TOOLS}; ln -s tools cur; ln -s ../../cur/hk/pc .git/hooks/pre-commit; {_COMMIT}",
        "rm cur; mkdir -p cur/hk; echo evil > cur/hk/pc",
        {"cur/hk/pc"},
        ".git/hooks/pre-commit",
    ),
    "link that becomes a file": (
        f"echo mine > a; ln -s x AGENTS.md; ln -s a x; {_COMMIT}",
        "rm x; echo evil > x",
        {"x"},
        "AGENTS.md",
    ),
    "file that one link leads to and one to its folder": (
        f"mkdir conf; echo mine > conf/a; ln -s conf/a .envrc; ln -s conf .zed; {_COMMIT}",
        "echo evil > conf/a",
        {"conf/a"},
        ".envrc",
    ),
    "link in a folder that a link leads to": (
        f"mkdir conf; echo mine > mine; ln -s ../mine conf/x; ln -s conf .zed; {_COMMIT}",
        "echo evil > mine",
        {"mine"},
        ".zed/x",
    ),
    "link to a link that a name in a folder is": (
        "mkdir d; echo mine > d/a; ln -s a d/b; echo evil > evil; ln -s d .zed;"
        f"ln -s d/b AGENTS.md; {_COMMIT}",
        "ln -sf ../evil d/b",
        {"d/b"},
        "AGENTS.md",
    ),
    "way out of the project and back": (
        f"{_TOOLS}; ln -s ../proj/tools ../home/x; ln -s ../home/x/hk/pc AGENTS.md; {_COMMIT}",
        "mv tools old; ln -s fixtures tools",
        {"tools"},
        "AGENTS.md",
    ),
    "folder to what the home folder links to": (
        f"{_TOOLS}; ln -s ../proj/tools/hk/pc ../home/.bashrc; {_COMMIT}",
        "mv tools old; ln -s fixtures tools",
        {"tools"},
        "../home/.bashrc",
    ),
    "hooks folder that becomes a link": (
        f"{_TOOLS}; git config core.hooksPath tools/hk; {_COMMIT}",
        "mv tools/hk tools/old; ln -s ../fixtures/hk tools/hk",
        {"tools/hk"},
        "tools/hk/pc",
    ),
    "folder to a hooks folder": (
        f"{_TOOLS}; git config core.hooksPath tools/hk; {_COMMIT}",
        "mv tools old; ln -s fixtures tools",
        {"tools"},
        "tools/hk/pc",
    ),
    "folder to a hooks folder of the user's own settings": (
        f"{_TOOLS}; git config --global core.hooksPath tools/hk; {_COMMIT}",
        "mv tools old; ln -s fixtures tools",
        {"tools"},
        "tools/hk/pc",
    ),
    "link to a hooks folder that is not there": (
        f"{_TOOLS}; ln -s impl cur; git config core.hooksPath cur/hk; {_COMMIT}",
        "ln -sfn fixtures cur",
        {"cur"},
        "cur/hk/pc",
    ),
    "included settings that become a link": (
        f"git config -f mine a.b c; cp mine team; git config include.path ../team; {_COMMIT};"
        "git config -f evil a.b bad",
        "ln -sf evil team",
        {"team"},
        "team",
    ),
    "settings that the user's own include": (
        f"mkdir d e; git config -f mine a.b c; cp mine d/x; {_COMMIT};"
        "git config --global include.path ../proj/d/x; git config -f e/x a.b bad",
        "mv d old; ln -s e d",
        {"d"},
        "d/x",
    ),
}
"""What the user has, a command, what of it is held, and a file that is the user's afterwards."""


def _place(folder: Path, setup: str, *, has_mounts: bool) -> WatchedFolder:
    folders = [folder / name for name in ("proj", "own", "home")]
    for each in folders:
        each.mkdir(parents=True)
    place = WatchedFolder(*folders, has_mounts=has_mounts)
    place.outside(f"git init -q -b main; {setup}")
    place.watch = place.watch_again()
    return place


def _links(place: WatchedFolder) -> dict[Path, str]:
    links = (path for path in place.root.rglob("*") if path.is_symlink())
    return {path: os.readlink(path) for path in links}  # noqa: PTH115 - the exact text


def _others(place: WatchedFolder) -> set[Path]:
    """What the user has for something else, and a command turns links to."""
    files = (path for path in place.root.rglob("*") if ".git" not in path.parts)
    return {path for path in files if path.is_file() and "evil" in path.read_text()}


@pytest.mark.parametrize("is_job", [False, True])
@each_row("name", _CHANGES)
async def test_a_way_that_a_command_changes_is_held_and_put_back(
    tmp_path: Path, name: str, is_job: bool
):
    setup, command, held, file = _CHANGES[name]
    place = _place(tmp_path / name, setup, has_mounts=False)
    assert (await place.run("true")).held == ()
    mine, links, others = place.text(file), _links(place), _others(place)
    if is_job:
        await place.watch.note()
        await place.watch.hold(is_over=False)
        place.inside(command)
        settled = await place.run("true")
        assert all(each.is_in_place for each in settled.held)
        await place.refuse(settled)
    else:
        settled = await place.run(command)
    assert sorted(place.held(settled)) == sorted(held)
    assert len(settled.held) == len(held)
    assert place.text(file) == mine
    assert _links(place) == links
    assert others <= _others(place)
    assert (await place.run("true")).held == ()


async def test_a_folder_with_other_files_in_the_place_of_a_link_stays(tmp_path: Path):
    setup = f"{_TOOLS}; ln -s tools cur; ln -s ../../cur/hk/pc .git/hooks/pre-commit"
    place = _place(tmp_path, setup, has_mounts=False)
    settled = await place.run("rm cur; mkdir -p cur/hk; mv fixtures/hk/pc cur/hk; echo x > cur/x")
    assert set(place.held(settled)) == {"cur/hk/pc"}
    assert place.text(".git/hooks/pre-commit") == ""
    assert place.text("cur/x") == "x\n"
    await place.watch.decide(settled.held[0], True)
    assert place.text(".git/hooks/pre-commit") == "evil\n"
    assert (await place.run("true")).held == ()


@needs_bwrap
async def test_a_link_that_git_replaced_by_a_folder_does_not_come_back(tmp_path: Path):
    place = _place(
        tmp_path,
        f"mkdir conf; echo 1 > conf/a; ln -s conf .zed; {_COMMIT}; git switch -qc other;"
        f"rm .zed; mkdir .zed; echo 2 > .zed/a; {_COMMIT}; git switch -q main",
        has_mounts=False,
    )
    await place.watch.note()
    await place.watch.hold(is_over=False)
    assert place.held(await place.run("git switch -q other")) == {}
    settled = await place.run("echo evil > .zed/a")
    assert place.held(settled).keys() == {".zed/a"}
    assert place.text(".zed/a") == "2\n"


_BRANCHES = {
    "link in the middle": (
        "mkdir docs; ln -s docs/cur AGENTS.md; echo 1 > docs/a; ln -s a docs/cur",
        "echo 2 > docs/b; ln -sfn b docs/cur",
        "AGENTS.md",
    ),
    "file that one branch has as a link": (
        "mkdir docs; ln -s docs/cur AGENTS.md; echo 1 > docs/cur",
        "echo 2 > docs/b; ln -sfn b docs/cur",
        "AGENTS.md",
    ),
    "folder that one branch has as a link": (
        "mkdir -p tools/hk .idea; echo 1 > tools/hk/pc; ln -s ../tools/hk/pc .idea/x",
        "git rm -rq tools; mkdir -p impl/hk; echo 2 > impl/hk/pc; ln -s impl tools",
        ".idea/x",
    ),
    "folder that one branch has as a link, to a hook": (
        f"{_HOOK}; mkdir -p tools/hk; echo 1 > tools/hk/pc",
        "git rm -rq tools; mkdir -p impl/hk; echo 2 > impl/hk/pc; ln -s impl tools",
        ".git/hooks/pre-commit",
    ),
    "hooks folder that one branch has as a link": (
        "git config core.hooksPath tools; mkdir tools; echo 1 > tools/pc",
        "git rm -rq tools; mkdir impl; echo 2 > impl/pc; ln -s impl tools",
        "tools/pc",
    ),
}
"""What is on the main branch, how another one differs, and a file that has two versions."""


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
@each_row("name", _BRANCHES)
async def test_git_brings_the_way_of_the_users_commits(tmp_path: Path, name: str, has_mounts: bool):
    main, other, file = _BRANCHES[name]
    if has_mounts and file == "tools/pc":
        return  # a folder that is a copy inside cannot become a link
    place = _place(
        tmp_path / name,
        f"echo 1 > file; {main}; {_COMMIT}; git switch -qc other; {other}; {_COMMIT};"
        "git switch -q main",
        has_mounts=has_mounts,
    )
    for command, text in (
        ("git switch -q other", "2\n"),
        ("git switch -q main", "1\n"),
        ("git merge -q other", "2\n"),
        ("git switch -q --detach other~1 && git rebase -q other", "2\n"),
        ("git switch -q --detach other~1; echo 2 > file; git stash -q; git stash pop -q", "1\n"),
        ("git pull -q . other", "2\n"),
    ):
        settled = await place.run(command)
        assert place.held(settled) == {}, (command, place.printed)
        assert place.text(file) == text, (command, place.printed)
        place.outside('test -z "$(git status --porcelain | grep -v " M file")"')
