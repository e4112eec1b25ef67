"""What commands delete of what programs outside read."""

import shutil
from pathlib import Path

import pytest

from tests.support.sandbox import needs_bwrap
from tests.support.watched_folder import WatchedFolder

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="uses git")

_COMMITTED = (
    "git init -q -b main; git commit -q --allow-empty -m none; git branch none;"
    "mkdir -p .claude p; echo deny > .claude/settings.json; echo rule > p/AGENTS.md;"
    "git add .; git commit -qm one"
)


@pytest.fixture
def place(tmp_path: Path) -> WatchedFolder:
    """A repository in a wall without mounts."""
    folders = [tmp_path / name for name in ("proj", "own", "home")]
    for folder in folders:
        folder.mkdir()
    place = WatchedFolder(*folders, has_mounts=False)
    place.outside(_COMMITTED)
    return place


def _is_whole(place: WatchedFolder) -> bool:
    return (place.text(".claude/settings.json"), place.text("p/AGENTS.md")) == ("deny\n", "rule\n")


@pytest.mark.parametrize(
    "command",
    [
        "rm -r .claude p",
        "rm p/AGENTS.md .claude/*; mkdir -p p/AGENTS.md/x .claude/settings.json",
        "git rm -qr .claude p; git commit -qm gone",
        "mv .claude old; mv p/AGENTS.md p/x; git checkout -q --orphan new",
        "git rm -q --cached p/AGENTS.md .claude/settings.json; rm -r p/AGENTS.md .claude",
    ],
)
async def test_what_a_command_deletes_is_back(place: WatchedFolder, command: str):
    settled = await place.run(command)
    assert _is_whole(place)
    told = [*settled.notice.split(), *(str(held.path) for held in settled.held)]
    assert str(place.root / "p/AGENTS.md") in told
    assert (await place.run("true")).held == ()


async def test_what_no_commit_has_is_back(place: WatchedFolder):
    place.outside("echo mine > .envrc")
    await place.run("rm .envrc")
    assert place.text(".envrc") == "mine\n"


async def test_what_the_user_deletes_between_commands_stays_away(place: WatchedFolder):
    await place.run("true")
    place.outside("rm -r .claude p")
    assert (await place.run("true")).notice == ""
    assert not (place.root / ".claude").exists()


@pytest.mark.parametrize(
    "command",
    [
        "git switch -q none",
        "git merge -q gone",
        "git rebase -q gone",
        "git switch -q gone; git commit -q --allow-empty -m more",
    ],
)
async def test_what_the_users_commits_delete_stays_away(place: WatchedFolder, command: str):
    place.outside(
        "git switch -qc gone; git rm -qr .claude p; git commit -qm gone; git switch -q main;"
        "echo > x; git add x; git commit -qm x"
    )
    settled = await place.run(command)
    assert (settled.held, settled.notice) == ((), "")
    assert not (place.root / ".claude").exists()


async def test_a_work_tree_or_repository_that_is_removed_as_a_whole_stays_away(
    place: WatchedFolder,
):
    place.outside("git worktree add -q ../proj/wt; git init -q in; echo > in/AGENTS.md")
    settled = await place.run("git worktree remove wt; rm -r in")
    assert (settled.held, settled.notice) == ((), "")
    assert not (place.root / "wt").exists()
    assert not (place.root / "in").exists()


@pytest.mark.parametrize("makes", ["git init -q sub", "git init -q --bare sub"])
async def test_what_is_the_users_in_a_folder_that_a_command_makes_a_repository_is_back(
    place: WatchedFolder, makes: str
):
    place.outside("mkdir -p sub/.claude; echo mine > sub/CLAUDE.md; echo deny > sub/.claude/x")
    await place.run(makes)
    await place.run("rm sub/CLAUDE.md")
    await place.run("rm -r sub")
    assert (place.text("sub/CLAUDE.md"), place.text("sub/.claude/x")) == ("mine\n", "deny\n")


async def test_a_file_that_a_job_names_like_one_of_gits_makes_no_folder_a_repository(
    place: WatchedFolder,
):
    await place.watch.note()
    await place.watch.hold(is_over=False)
    place.inside("touch .claude/HEAD")
    assert [held.path.name for held in (await place.run("true")).held] == ["HEAD"]
    await place.run("rm -r .claude")
    assert _is_whole(place)


async def test_what_the_user_keeps_in_a_repository_of_a_commands_is_back(place: WatchedFolder):
    await place.run("git worktree add -q wt")
    place.outside("echo mine > wt/CLAUDE.md; echo mine > wt/p/AGENTS.md")
    await place.run("true")
    await place.run("rm -r wt")
    assert place.text("wt/CLAUDE.md") == place.text("wt/p/AGENTS.md") == "mine\n"
    assert place.text("wt/.claude/settings.json") == ""


async def test_a_git_file_of_a_commands_makes_no_folder_of_the_users_one_of_gits(
    place: WatchedFolder,
):
    await place.run("mkdir x; echo gitdir: ../p > x/.git; rm p/AGENTS.md")
    assert _is_whole(place)
    await place.run("rm p/AGENTS.md")
    assert _is_whole(place)


async def test_what_the_user_keeps_where_their_repository_was_is_back(place: WatchedFolder):
    place.outside("git init -q in; echo mine > in/AGENTS.md; mkdir -p e/.git; cp in/AGENTS.md e")
    await place.run("true")
    place.outside("rm -r in/.git")
    await place.run("rm -r in e")
    assert place.text("in/AGENTS.md") == place.text("e/AGENTS.md") == "mine\n"


async def test_whose_a_repository_is_is_known_where_another_program_was_killed(
    place: WatchedFolder,
):
    place.outside(
        "git init -q in; echo mine | tee in/AGENTS.md > CLAUDE.md; mkdir s; cp CLAUDE.md s"
    )
    await place.watch.note()
    place.inside("git init -q s; mkdir .git/rebase-merge; echo 1 > .git/rebase-merge/msgnum")
    place.watch = place.watch_again()
    await place.watch.recover()
    await place.run("rm -r .git/rebase-merge")
    settled = await place.run("rm -r in")
    assert (settled.held, settled.notice) == ((), "")
    await place.run("rm -r s")
    assert (place.text("in/AGENTS.md"), place.text("s/CLAUDE.md")) == ("", "mine\n")


async def test_a_repository_or_work_tree_that_commands_made_stays_away(place: WatchedFolder):
    await place.run("git worktree add -q wt; git clone -q . in; git init -q --bare b")
    await place.run("git -C in config user.name Ada")
    settled = await place.run("git worktree remove wt; rm -rf in/.git; rm -r b")
    assert (settled.held, settled.notice) == ((), "")
    settled = await place.run("rm -r in")
    assert (settled.held, settled.notice) == ((), "")
    assert not [name for name in ("wt", "in", "b") if (place.root / name).exists()]


async def test_what_a_job_deletes_is_back(place: WatchedFolder):
    await place.watch.note()
    await place.watch.hold(is_over=False)
    place.inside("rm -r .claude")
    await place.watch.end_job()
    assert _is_whole(place)


async def test_what_changed_unasked_since_a_job_began_is_back(place: WatchedFolder):
    place.outside(
        "git switch -qc other; echo later > p/AGENTS.md; git commit -qam b; git switch -q main"
    )
    await place.run("true")
    await place.watch.note()
    await place.watch.hold(is_over=False)
    assert (await place.run("git switch -q other")).held == ()
    await place.run("rm p/AGENTS.md .git/HEAD")
    assert place.text("p/AGENTS.md") == "later\n"
    assert place.text(".git/HEAD") == "ref: refs/heads/other\n"


async def test_what_another_conversation_takes_back_does_not_come_back(tmp_path: Path):
    for name in ("proj/sub", "own", "own2", "home"):
        (tmp_path / name).mkdir(parents=True)
    around, inside = (
        WatchedFolder(tmp_path / root, tmp_path / own, tmp_path / "home", has_mounts=False)
        for root, own in (("proj", "own"), ("proj/sub", "own2"))
    )
    around.repositories = inside.repositories = tmp_path / "repositories"
    around.watch, inside.watch = around.watch_again(), inside.watch_again()
    await inside.watch.note()
    inside.inside("echo evil > AGENTS.md")
    await around.watch.note()
    assert len((await inside.watch.hold()).held) == 1
    assert (await around.watch.hold()).notice == ""
    assert inside.text("AGENTS.md") == ""


async def test_what_is_not_in_a_folder_that_the_user_put_in_place_is_not_for_commands_to_bring(
    place: WatchedFolder,
):
    place.outside("echo mine > .envrc; cp -a . ../new; rm ../new/.envrc; echo mine > notes.md")
    place.outside("mv notes.md AGENTS.md; cp AGENTS.md ../new")
    await place.run("true")
    await place.watch.note()
    place.root.rename(place.root.with_name("old"))
    place.root.with_name("new").rename(place.root)
    settled = await place.watch.hold()
    assert (settled.held, place.text(".envrc")) == ((), "")
    (held,) = (await place.run("echo mine > .envrc")).held
    assert held.path.name == ".envrc"


@needs_bwrap
async def test_what_a_command_deletes_in_a_copy_is_not_deleted_outside(place: WatchedFolder):
    place.has_mounts = True
    place.watch = place.watch_again()
    await place.run("rm -r .claude/*")
    assert _is_whole(place)
    await place.run("git switch -q none")
    assert not (place.root / ".claude/settings.json").exists()


@pytest.mark.parametrize("put", ["ln -s old p; ln -s d .claude", "echo > p; echo > .claude"])
async def test_what_takes_the_place_of_a_folder_with_such_files_is_held(
    place: WatchedFolder, put: str
):
    settled = await place.run(f"mv p old; mv .claude d; rm d/*; {put}")
    assert {"p", ".claude"} <= place.held(settled).keys()
    assert _is_whole(place)
    assert (await place.run("true")).held == ()


async def test_a_deleted_link_into_a_folder_that_builds_fill_stays_away(place: WatchedFolder):
    place.outside("ln -s node_modules/x vendor")
    settled = await place.run("rm vendor; rm p/AGENTS.md")
    assert "vendor" not in settled.notice
    assert _is_whole(place)
    assert not (place.root / "vendor").is_symlink()
