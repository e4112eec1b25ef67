"""Work trees that git's settings name: they are watched whether or not a ``.git`` is there."""

import shutil
from pathlib import Path

import pytest

from agent_tui.tools.git.named_files import is_followed
from agent_tui.tools.git.places import work_trees_of
from tests.support.watched_folder import WatchedFolder

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="uses git")

_HOOK = "mkdir -p {0}/hk; echo evil > {0}/hk/pre-commit; chmod +x {0}/hk/pre-commit"
_SUBMODULE = (
    "git init -q lib; cd lib; git commit -q --allow-empty -m lib; cd ..;"
    "git -c protocol.file.allow=always submodule --quiet add ./lib s; git commit -qm one;"
    "git -C s config core.hooksPath hk; git config core.hooksPath none"
)


@pytest.fixture
def place(tmp_path: Path) -> WatchedFolder:
    """A repository in a wall without mounts, and a folder of the user's beside it."""
    folders = [tmp_path / name for name in ("proj", "own", "home", "docs")]
    for folder in folders:
        folder.mkdir()
    place = WatchedFolder(*folders[:3], has_mounts=False)
    place.outside("git init -q; echo a > a; git add a; git commit -qm one")
    return place


@pytest.mark.parametrize("settings", ["config", "config.worktree"])
async def test_no_command_moves_the_work_tree_of_a_repository(place: WatchedFolder, settings: str):
    place.outside("git config extensions.worktreeConfig true")
    settled = await place.run(
        f"mkdir sub; echo 'gitdir: ../.git' > sub/.git; cd sub; git status --short;"
        f"git config -f ../.git/{settings} core.worktree ../sub"
    )
    assert f".git/{settings}" in place.held(settled)
    assert "worktree = " not in place.text(f".git/{settings}")


@pytest.mark.parametrize("tree", ["s", "other"])
async def test_hooks_in_a_submodules_work_tree_are_held_without_its_entry(
    place: WatchedFolder, tree: str
):
    place.outside(_SUBMODULE)
    if tree == "other":
        moved = await place.run(
            "mkdir other; echo 'gitdir: ../.git/modules/s' > other/.git;"
            "git config -f .git/modules/s/config core.worktree ../../../other"
        )
        assert place.held(moved) == {}
    await place.run(f"rm -r {tree}")
    settled = await place.run(_HOOK.format(tree))
    assert any(name.startswith(f"{tree}/hk") for name in place.held(settled))
    assert not (place.root / tree / "hk/pre-commit").exists()
    assert is_followed(place.root / tree / "hk/pre-commit", place.home)


async def test_programs_and_the_users_hooks_are_held_in_a_submodule_without_its_entry(
    place: WatchedFolder,
):
    place.outside(
        f"{_SUBMODULE}; git config --unset core.hooksPath; git -C s config --unset core.hooksPath;"
        "git -C s config filter.f.clean 'python3 tools/clean.py';"
        "git config --global core.hooksPath hk; git config --global alias.x '!tools/x.sh'"
    )
    await place.run("rm -r s; mkdir s")
    settled = await place.run(f"{_HOOK.format('s')}; mkdir s/tools; echo > s/tools/clean.py")
    assert {"s/hk", "s/tools/clean.py"} <= {
        str(Path(name)).removesuffix("/pre-commit") for name in place.held(settled)
    }
    assert "s/tools/x.sh" in place.held(await place.run("mkdir -p s/tools; echo > s/tools/x.sh"))


async def test_hooks_in_a_linked_work_tree_are_held_without_its_entry(place: WatchedFolder):
    place.outside("git config core.hooksPath hk; git worktree add -q wt")
    await place.run("rm -r wt")
    settled = await place.run(_HOOK.format("wt"))
    assert any(name.startswith("wt/hk") for name in place.held(settled))


async def test_no_link_takes_the_place_of_a_work_tree_that_settings_name(place: WatchedFolder):
    place.outside(f"{_SUBMODULE}; git -C s config --unset core.hooksPath")
    await place.run("rm -r s")
    settled = await place.run("ln -s ../docs s")
    assert place.held(settled) == {"s": "git would write elsewhere"}
    assert not (place.root / "s").is_symlink()


async def test_no_link_takes_the_place_of_a_linked_work_tree(place: WatchedFolder):
    place.outside("git worktree add -q wt; sleep 0.1")
    place.watch = place.watch_again()
    await place.run("true")
    settled = await place.run("rm -r wt; ln -s ../docs wt")
    assert place.held(settled) == {".git/worktrees/wt/gitdir": "git would write elsewhere"}
    place.outside("git worktree repair 2>&1; test ! -e ../docs/.git")


async def test_a_repository_in_a_moved_submodule_is_found(place: WatchedFolder):
    place.outside(_SUBMODULE)
    settled = await place.run("git mv s s2; git -C s2 status --short")
    assert place.held(settled) == {}
    trees = dict(work_trees_of(place.root / ".git"))[place.root / ".git/modules/s"]
    assert {tree.resolve() for tree in trees} == {place.root / "s2"}


@pytest.mark.parametrize("path", ["s", "other"])
async def test_hooks_are_held_where_git_would_check_a_submodule_out(
    place: WatchedFolder, path: str
):
    place.outside(_SUBMODULE)
    await place.run(
        "git submodule --quiet deinit -f s; sed -i 's/.*path.*/[submodule.s]path=other/' .gitm*"
        if path == "other"
        else "git config -f .git/modules/s/config --unset core.worktree; rm -r s"
    )
    settled = await place.run(_HOOK.format(path))
    assert any(name.startswith(f"{path}/hk") for name in place.held(settled))
