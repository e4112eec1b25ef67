import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.errors import WorktreeError
from agent_tui.features.helpers.worktrees import WorkLeft, Worktrees
from agent_tui.tools.git.places import git_place
from agent_tui.tools.git.worktree_records import (
    Worktree,
    WorktreeRecords,
    project_folders_elsewhere,
)
from tests.support.tool_calls import KEEPER

ENVIRON = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "LC_ALL": "C",
}
WHO = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


def git(cwd: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=cwd, env=ENVIRON | WHO, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One commit on main, with an ignored folder."""
    folder = tmp_path.resolve() / "shop"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main", "--template=")
    (folder / "a.txt").write_text("one\n")
    (folder / ".gitignore").write_text("build/\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


@pytest.fixture
def trees(tmp_path: Path) -> Worktrees:
    return Worktrees(KEEPER, ENVIRON, WorktreeRecords(tmp_path.resolve() / "data" / "worktrees"))


async def made(trees: Worktrees, repository: Path, name: str = "fix") -> Worktree:
    """A new worktree that nobody uses any more."""
    worktree, lock = await trees.create(repository, name)
    lock.release()
    return worktree


def commit(worktree: Worktree, name: str = "new.txt") -> None:
    (worktree.path / name).write_text("new\n")
    git(worktree.path, "add", name)
    git(worktree.path, "commit", "-qm", name)


async def test_a_worktree_has_its_own_folder_and_branch_beside_the_repository(
    repository: Path, trees: Worktrees
):
    worktree, lock = await trees.create(repository, "fix/login")
    assert worktree.path == repository.parent / "shop.worktrees" / "fix-login"
    assert (worktree.path / "a.txt").read_text() == "one\n"
    assert git(worktree.path, "symbolic-ref", "--short", "HEAD") == "fix/login"
    assert (worktree.base, worktree.owns_branch, worktree.state) == ("main", True, "in use")
    assert lock.is_held
    lock.release()


async def test_commits_of_a_worktree_go_where_the_sandbox_lets_commands_write(
    repository: Path, trees: Worktrees
):
    place = git_place((await made(trees, repository)).path)
    assert place is not None
    assert place.folder == repository / ".git"


async def test_a_folder_of_the_user_s_choice_holds_the_worktrees(
    repository: Path, trees: Worktrees, tmp_path: Path
):
    elsewhere = Worktrees(KEEPER, ENVIRON, trees.records, tmp_path.resolve() / "all")
    worktree = await made(elsewhere, repository)
    assert worktree.path.parent.parent == tmp_path.resolve() / "all"


async def test_a_worktree_in_use_is_refused_and_a_left_one_is_opened_again(
    repository: Path, trees: Worktrees
):
    worktree, lock = await trees.create(repository, "fix")
    commit(worktree)
    with pytest.raises(WorktreeError, match="in use: another part of this program"):
        await trees.create(repository, "fix")
    lock.release()
    assert (await trees.take_away(worktree)).commits == 1
    again = await made(trees, repository)
    assert (again.path / "new.txt").exists()


async def test_without_work_the_worktree_and_its_branch_are_removed(
    repository: Path, trees: Worktrees
):
    worktree = await made(trees, repository)
    assert await trees.take_away(worktree) == WorkLeft(tip=worktree.start)
    assert not worktree.path.parent.exists()
    assert git(repository, "branch", "--format=%(refname:short)") == "main"


IGNORED = "build/\n.env\n*.db\n*.pyc\nnode_modules\nenv/\ncache/\n"
TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({".env": "KEY=2\n"}, "1 ignored file (.env)"),
        ({".env": "KEY=1\n"}, ""),  # as in the main worktree
        ({"build/out": "x", "sub/a.db": "x"}, "2 ignored files (build/, sub/a.db)"),
        ({f"{n}.db": "x" for n in range(7)}, "(0.db, 1.db, 2.db, 3.db, 4.db, ...)"),
        ({"cache/CACHEDIR.TAG": TAG, "cache/x": "x"}, ""),
        ({"cache/CACHEDIR.TAG": "mine\n"}, "1 ignored file (cache/)"),
        ({"env/pyvenv.cfg": "", "env/lib/x.py": "x"}, ""),
        ({"node_modules/x/.env": "x", "sub/__pycache__/a.pyc": "x"}, ""),
        ({"-> build": "../shop"}, ""),
    ],
)
async def test_ignored_files_stay_unless_they_are_elsewhere_or_made_again(
    repository: Path, trees: Worktrees, files: dict[str, str], said: str
):
    (repository / ".gitignore").write_text(IGNORED)
    (repository / ".env").write_text("KEY=1\n")
    git(repository, "commit", "-qam", "two")
    worktree = await made(trees, repository)
    for name, content in files.items():
        place = worktree.path / name.removeprefix("-> ")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(content) if name.startswith("-> ") else place.write_text(content)
    if "-> build" in files:
        git(repository, "config", "core.excludesFile", str(repository / "excluded"))
        (repository / "excluded").write_text("build\n")
    left = await trees.take_away(worktree)
    assert said in str(left)
    assert worktree.path.exists() == left.is_any == bool(said)


async def test_ignored_files_in_a_worktree_whose_creation_was_killed_stay(
    repository: Path, trees: Worktrees
):
    worktree = await made(trees, repository)
    trees.records.store(worktree, "creating")
    (worktree.path / "build").mkdir()
    (worktree.path / "build" / "out").write_text("x")
    ((_, left),) = await trees.clean_up(repository, lambda _: False)
    assert left.ignored == ("build/",)
    assert (worktree.path / "build" / "out").exists()


async def test_merged_commits_are_no_work_left(repository: Path, trees: Worktrees):
    worktree = await made(trees, repository)
    commit(worktree)
    git(repository, "merge", "-q", "fix")
    assert not (await trees.take_away(worktree)).is_any
    assert not worktree.path.exists()


@pytest.mark.parametrize("work", ["changed", "untracked", "staged", "deleted", "nested", "stray"])
async def test_work_that_is_not_committed_and_merged_stays(
    repository: Path, trees: Worktrees, work: str
):
    worktree = await made(trees, repository)
    top = worktree.path
    match work:
        case "changed":
            (top / "a.txt").write_text("two\n")
        case "untracked":
            (top / "b.txt").write_text("two\n")
        case "staged":
            (top / "b.txt").write_text("two\n")
            git(top, "add", "b.txt")
        case "deleted":
            (top / "a.txt").unlink()
        case "nested":
            (top / "other").mkdir()
            git(top / "other", "init", "-q", "--template=")
        case _:  # a commit on no branch
            git(top, "checkout", "-q", "--detach")
            commit(worktree)
    left = await trees.take_away(worktree)
    assert left.is_any
    assert top.exists()
    assert "fix" in git(repository, "branch", "--format=%(refname:short)")
    assert not (await trees.clean_up(repository, lambda _: False))
    assert top.exists()


async def test_a_branch_with_commits_survives_the_loss_of_its_folder(
    repository: Path, trees: Worktrees
):
    worktree = await made(trees, repository)
    commit(worktree)
    git(repository, "worktree", "remove", str(worktree.path))
    assert (await trees.take_away(worktree)).commits == 1
    again = await made(trees, repository)
    assert (again.path / "new.txt").exists()
    assert again.owns_branch


async def test_a_branch_that_existed_before_stays(repository: Path, trees: Worktrees):
    git(repository, "branch", "mine")
    worktree = await made(trees, repository, "mine")
    commit(worktree)
    left = await trees.take_away(worktree)
    assert (left.is_any, left.branch) == (False, "it existed before")
    assert not worktree.path.exists()
    assert git(repository, "log", "-1", "--format=%s", "mine") == "new.txt"


async def test_why_a_branch_stays_is_said(repository: Path, trees: Worktrees, tmp_path: Path):
    worktree = await made(trees, repository)
    git(worktree.path, "switch", "-q", "--detach")
    git(repository, "switch", "-q", "fix")
    left = await trees.take_away(worktree)
    assert (left.is_any, left.branch) == (False, f"it is checked out in {repository}")
    assert not worktree.path.exists()
    assert git(repository, "symbolic-ref", "--short", "HEAD") == "fix"


async def test_a_branch_made_later_under_the_same_name_is_the_user_s(
    repository: Path, trees: Worktrees
):
    await trees.take_away(await made(trees, repository))
    git(repository, "branch", "fix")
    await trees.take_away(await made(trees, repository))
    assert "fix" in git(repository, "branch", "--format=%(refname:short)")


async def test_what_a_killed_program_left_is_removed_if_it_holds_no_work(
    repository: Path, trees: Worktrees
):
    empty, full = await made(trees, repository, "empty"), await made(trees, repository, "full")
    (full.path / "b.txt").write_text("two\n")
    settled = dict(await trees.clean_up(repository, lambda _: False))
    assert {worktree.name: left.is_any for worktree, left in settled.items()} == {
        "empty": False,
        "full": True,
    }
    assert (empty.path.exists(), full.path.exists()) == (False, True)
    assert await trees.clean_up(repository, lambda _: False) == []


async def test_a_worktree_in_use_is_not_cleaned_up(repository: Path, trees: Worktrees):
    worktree, lock = await trees.create(repository, "fix")
    assert await trees.clean_up(repository, lambda _: False) == []
    assert worktree.path.exists()
    lock.release()


@pytest.mark.parametrize("has_folder", [True, False])
async def test_creation_that_was_killed_is_undone(
    repository: Path, trees: Worktrees, has_folder: bool
):
    worktree = await made(trees, repository)
    trees.records.store(worktree, "creating")
    if has_folder:
        (worktree.path / "a.txt").unlink()  # git was still writing the files
    else:
        git(repository, "worktree", "remove", str(worktree.path))
    await trees.clean_up(repository, lambda _: False)
    assert not worktree.path.exists()
    assert git(repository, "branch", "--format=%(refname:short)") == "main"
    assert (await made(trees, repository)).owns_branch


@pytest.mark.parametrize(
    ("set_up", "said"),
    [
        ("rm -rf .git", "in no git repository"),
        ("rm -rf .git; git init -q -b main", "has no commit yet"),
        ("git checkout -q --detach", "HEAD is detached at"),
        ("mv .git bare.git; cd bare.git; git config core.bare true; cd ..; cp -r bare.git/* .; "
         "rm -rf bare.git", "is a bare repository"),
        ("touch .gitmodules", "has submodules"),
        ("git switch -q -c fix", "The branch fix is checked out in"),
        ("git branch fix/deep", "Git did not create the worktree"),
        ("mkdir -p ../shop.worktrees/fix", "already exists"),
        ("mv .git ../apart; echo gitdir: ../apart > .git", "apart from its files"),
    ],
)  # fmt: skip
async def test_why_no_worktree_can_be_created_is_said(
    repository: Path, trees: Worktrees, set_up: str, said: str
):
    environ = ENVIRON | WHO
    subprocess.run(["/bin/bash", "-ec", set_up], cwd=repository, env=environ, check=True)
    with pytest.raises(WorktreeError, match=said):
        await trees.create(repository, "fix")
    assert not (repository.parent / "shop.worktrees" / "fix" / ".git").exists()


@pytest.mark.parametrize("name", ["", "-b", "a b", "..", "a..b", "HEAD", "a/", "/a", "\x1b[2J"])
async def test_a_name_that_is_no_branch_is_refused(repository: Path, trees: Worktrees, name: str):
    with pytest.raises(WorktreeError, match="cannot be the name of a branch"):
        await trees.create(repository, name)


async def test_a_submodule_is_refused(repository: Path, trees: Worktrees, tmp_path: Path):
    outer = tmp_path.resolve() / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main", "--template=")
    allowed = ("-c", "protocol.file.allow=always")
    git(outer, *allowed, "submodule", "--quiet", "add", str(repository), "sub")
    with pytest.raises(WorktreeError, match="is a submodule"):
        await trees.create(outer / "sub", "fix")


async def test_a_machine_without_git_says_so(repository: Path, tmp_path: Path):
    records = WorktreeRecords(tmp_path / "data")
    with pytest.raises(WorktreeError, match="Git is not installed"):
        await Worktrees(KEEPER, {"PATH": str(tmp_path)}, records).create(repository, "fix")


async def test_hooks_of_the_repository_do_not_run(repository: Path, trees: Worktrees):
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    worktree = await made(trees, repository)
    assert not (worktree.path / "ran").exists()


async def test_a_record_counts_only_while_git_agrees(repository: Path, trees: Worktrees):
    worktree = await made(trees, repository)
    sub = worktree.path / "sub"
    sub.mkdir()
    assert trees.records.home_of(sub) == repository / "sub"
    assert trees.records.home_of(repository) is None
    (worktree.path / ".git").write_text(f"gitdir: {repository.parent}/elsewhere\n")
    assert trees.records.home_of(sub) is None


async def test_a_project_includes_worktrees_that_were_removed(repository: Path, trees: Worktrees):
    gone, there = await made(trees, repository, "gone"), await made(trees, repository, "there")
    await trees.take_away(gone)
    found = project_folders_elsewhere(trees.records, repository)
    assert set(found) == {gone.path, there.path}
    assert set(project_folders_elsewhere(trees.records, there.path)) == {gone.path, repository}
    assert project_folders_elsewhere(trees.records, repository.parent) == ()


@given(
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from(["", "git is gone"]),
    st.lists(st.text(min_size=1), max_size=7),
)
def test_what_is_left_is_said_whenever_there_is_any(
    files: int, commits: int, why: str, ignored: list[str]
):
    left = WorkLeft(files, commits, why=why, ignored=tuple(ignored))
    assert left.is_any == (str(left) != "no work")


def test_broken_records_are_skipped(tmp_path: Path):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text('{"name": 1}')
    assert list(WorktreeRecords(tmp_path).all()) == []


async def test_a_worktree_in_which_somebody_works_is_left_alone(repository: Path, trees: Worktrees):
    worktree = await made(trees, repository)
    assert await trees.clean_up(repository, lambda one: one == worktree) == []
    assert worktree.path.exists()


async def test_a_branch_that_is_checked_out_is_never_deleted(repository: Path, trees: Worktrees):
    worktree = await made(trees, repository)
    (worktree.path / "b.txt").write_text("two\n")
    git(worktree.path, "add", ".")
    git(worktree.path, "commit", "-qm", "two")
    git(repository, "worktree", "remove", str(worktree.path))
    git(repository, "switch", "-q", "fix")
    await trees.clean_up(repository, lambda _: False)
    await trees.drop_branch(worktree, git(repository, "rev-parse", "HEAD"))
    assert git(repository, "log", "-1", "--format=%s", "fix") == "two"


@pytest.mark.parametrize("has_index", [True, False])
async def test_work_in_a_worktree_whose_creation_was_killed_is_kept(
    repository: Path, trees: Worktrees, has_index: bool
):
    worktree = await made(trees, repository)
    trees.records.store(worktree, "creating")
    (worktree.path / "new.txt").write_text("by hand\n")
    if not has_index:
        (worktree.path / git(worktree.path, "rev-parse", "--git-path", "index")).unlink()
    ((_, left),) = await trees.clean_up(repository, lambda _: False)
    assert left.uncommitted == 1
    assert (worktree.path / "new.txt").exists()


async def test_worktrees_of_the_users_own_are_not_forgotten(repository: Path, trees: Worktrees):
    own = repository.with_name("usb")
    git(repository, "worktree", "add", "-q", "--detach", str(own))
    own.rename(own.with_name("unmounted"))
    worktree = await made(trees, repository)
    trees.records.store(worktree, "creating")
    await trees.clean_up(repository, lambda _: False)
    assert not worktree.path.exists()
    assert str(own) in git(repository, "worktree", "list", "--porcelain")


async def test_a_worktree_with_a_submodule_stays(repository: Path, trees: Worktrees):
    worktree = await made(trees, repository)
    inner = worktree.path / "inner"
    inner.mkdir()
    git(inner, "init", "-q", "--template=")
    git(inner, "commit", "-q", "--allow-empty", "-m", "x")
    git(worktree.path, "-c", "advice.addEmbeddedRepo=false", "add", "inner")
    git(worktree.path, "commit", "-qm", "inner")
    (inner / "work").write_text("only here\n")
    git(repository, "merge", "-q", "fix")
    left = await trees.take_away(worktree)
    assert str(left) == "it has a submodule"
    assert (inner / "work").exists()


async def test_a_worktree_that_needs_a_filter_of_the_repository_is_refused(
    repository: Path, trees: Worktrees
):
    git(repository, "config", "filter.x.smudge", "cat")
    (repository / ".git/info").mkdir()
    (repository / ".git/info/attributes").write_text("a.txt filter=x\n")
    with pytest.raises(WorktreeError, match="only filters that your own git settings define"):
        await trees.create(repository, "fix", runs_filters=True)
    assert git(repository, "branch", "--format=%(refname:short)") == "main"
    assert not trees.path_of(repository, "fix").exists()


async def test_no_filter_of_the_user_runs_where_commands_wrote(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    settings, mark = tmp_path / "gitconfig", tmp_path / "mark"
    settings.write_text(f'[filter "x"]\n\tclean = pwd >> {mark}; cat\n\tsmudge = cat\n')
    monkeypatch.setitem(ENVIRON, "GIT_CONFIG_GLOBAL", str(settings))
    trees = Worktrees(KEEPER, ENVIRON, WorktreeRecords(tmp_path / "data"))
    (repository / ".git/info").mkdir()
    (repository / ".git/info/attributes").write_text("*.txt filter=x\n")
    worktree, lock = await trees.create(repository, "fix", runs_filters=True)
    lock.release()
    mark.unlink(missing_ok=True)
    (worktree.path / "a.txt").write_text("two\n")
    assert (await trees.take_away(worktree)).uncommitted == 1
    (worktree.path / "a.txt").write_text("one\n")
    assert not (await trees.take_away(worktree)).is_any
    assert not mark.exists()


async def test_a_large_file_is_no_work_unless_its_content_has_changed(
    repository: Path, trees: Worktrees
):
    content = b"large\n"
    digest = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize 6\n"
    (repository / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (repository / "a.bin").write_text(pointer)
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "large")
    worktree = await made(trees, repository)
    (worktree.path / "a.bin").write_bytes(b"LARGE\n")
    assert (await trees.take_away(worktree)).uncommitted == 1
    (worktree.path / "a.bin").write_bytes(content)
    assert not (await trees.take_away(worktree)).is_any
    assert not worktree.path.exists()
