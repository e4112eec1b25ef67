"""Staging and taking back with a real git: kinds, modes, renames, line ends."""

import subprocess
from pathlib import Path

import pytest

from agent_tui.errors import AgentTuiError
from agent_tui.features.review.actions import ReviewActions
from agent_tui.features.review.sources import ReviewLoader
from agent_tui.features.review.view import count_words
from agent_tui.permissions.trust import FolderTrust, TrustFile
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.features.review.test_sources import git, keeper, stage
from tests.support.renamed_filters import RenamedFilters
from tests.support.runtime import Stage

__all__ = ["keeper", "stage"]

FILES = {"gone": b"", "bin": b"\0\1", "run.sh": b"#!\n", "linked": b"text\n", "old": b"1\n2\n"}


@pytest.fixture
def folder(stage: Stage) -> Path:
    place = stage.workspace
    git(place, "init", "-q", "-b", "main")
    git(place, "config", "core.autocrlf", "false")
    for name, content in FILES.items():
        (place / name).write_bytes(content)
    (place / "link").symlink_to("old")
    (place / "tool").write_text("#!\n")
    (place / "tool").chmod(0o755)
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    return place


def index(folder: Path) -> str:
    return git(folder, "diff", "--cached", "--raw", "--no-renames")


async def test_whole_files_are_staged_as_git_does(
    stage: Stage, keeper: ProcessKeeper, folder: Path
):
    (folder / "gone").unlink()
    (folder / "come").touch()
    (folder / "bin").write_bytes(b"\0\2")
    (folder / "run.sh").chmod(0o755)
    (folder / "tool").chmod(0o644)
    (folder / "linked").unlink()
    (folder / "linked").symlink_to("old")
    (folder / "old").rename(folder / "renamed")
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    changes = (await loader.load("git")).changes
    assert [(one.name, one.kind or one.note) for one in changes] == [
        ("bin", "binary"),
        ("come", "new file"),
        ("gone", "deleted"),
        ("linked", "now a link"),
        ("renamed", "renamed from old"),
        ("run.sh", "now executable"),
        ("tool", "no longer executable"),
    ]
    for change in changes:
        assert await actions.stage(change) == "staged"
    here = index(folder)
    git(folder, "add", "-A")
    assert here == index(folder)
    assert (await loader.load("git")).in_index["bin", ""] == "staged"
    for change in changes:
        assert await actions.stage(change) == "unstaged"
    assert index(folder) == ""
    await runtime.aclose()


async def test_a_link_is_staged_as_one(stage: Stage, keeper: ProcessKeeper, folder: Path):
    (folder / "linked").unlink()
    (folder / "linked").symlink_to("old")
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    (change,) = (await loader.load("git")).changes
    assert await actions.stage(change, change.hunks[0]) == "staged"
    assert git(folder, "ls-files", "-s", "linked").startswith("120000 ")
    await runtime.aclose()


async def test_a_hunk_keeps_mode_and_line_ends(stage: Stage, keeper: ProcessKeeper, folder: Path):
    git(folder, "config", "core.autocrlf", "true")
    lines = [f"{n}\r\n".encode() for n in range(30)]
    (folder / "tool").write_bytes(b"".join(lines))
    git(folder, "commit", "-qam", "lines")
    changed = [b"0!\r\n", *lines[1:-1], b"29!\r\n"]
    (folder / "tool").write_bytes(b"".join(changed))
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    (change,) = (await loader.load("git")).changes
    assert change.counts == (2, 2)
    first = change.hunks[0]
    assert await actions.stage(change, first) == "staged"
    expected = b"".join([b"0!\r\n", *lines[1:]]).replace(b"\r", b"").decode()
    assert git(folder, "show", ":tool") == expected
    assert git(folder, "ls-files", "-s", "tool").startswith("100755 ")
    assert (await loader.load("git")).in_index["tool", first.key] == "staged"
    assert await actions.stage(change, first) == "unstaged"
    assert index(folder) == ""
    await actions.take_back(change, change.hunks)
    assert (folder / "tool").read_bytes() == b"".join(lines)
    await runtime.aclose()


async def test_a_hunk_of_a_file_that_a_filter_replaces_is_not_staged_alone(
    stage: Stage, keeper: ProcessKeeper, folder: Path
):
    users = str(stage.folder / ".gitconfig")
    git(folder, "config", "--file", users, "filter.up.clean", "tr a-z A-Z")
    (folder / ".git/info/attributes").write_text("run.sh filter=up\n")
    (folder / "run.sh").write_text("#!\nmore\n")
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    (change,) = (await loader.load("git")).changes
    with pytest.raises(AgentTuiError, match="Git converts this file"):
        await actions.stage(change, change.hunks[0])
    assert index(folder) == ""
    assert await actions.stage(change) == "staged"
    assert git(folder, "show", ":run.sh") == "#!\nMORE\n"
    await runtime.aclose()


async def test_a_file_with_a_filter_of_the_repository_is_not_staged(
    stage: Stage, keeper: ProcessKeeper, folder: Path
):
    git(folder, "config", "filter.up.clean", "tr a-z A-Z")
    (folder / ".git/info/attributes").write_text("run.sh filter=up\n")
    (folder / "run.sh").write_text("#!\nmore\n")
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    (change,) = (await loader.load("git")).changes
    for hunk in (None, change.hunks[0]):
        with pytest.raises(AgentTuiError, match="only filters that your own git settings define"):
            await actions.stage(change, hunk)
    assert git(folder, "show", ":run.sh") == "#!\n"
    await runtime.aclose()


async def test_no_filter_runs_whose_name_changes_during_a_review(
    stage: Stage, keeper: ProcessKeeper, folder: Path
):
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a")
    (folder / "old").write_bytes(b"1\r\n3\r\n")  # so that the stored lines are checked out
    filters = RenamedFilters(folder, stage.folder / "bin")
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    (change,) = (await loader.load("git")).changes
    await actions.unstage(change)
    for _ in ("staged", "unstaged", "staged"):
        await actions.stage(change)
    await actions.unstage(change)
    await actions.stage(change, change.hunks[0])
    draft = await actions.prepare_commit()
    runtime.services.trust = FolderTrust(TrustFile(stage.folder / "none.json"))
    message = stage.folder / "message"
    message.write_text("second\n")
    (folder / "run.sh").write_text("!#\n")
    argv = actions.commit_argv(draft.root, message)
    subprocess.run(argv, cwd=folder, env=runtime.services.person_environ, check=True)
    assert not filters.have_run
    assert filters.calls > 20
    assert git(folder, "log", "-1", "--format=%s", "--name-only").split() == ["second", "old"]
    await runtime.aclose()


async def test_what_is_not_changed_or_not_in_the_index_is_refused(
    stage: Stage, keeper: ProcessKeeper, folder: Path
):
    (folder / "old").write_text("1\n2\n3\n")
    (folder / "old").rename(folder / "renamed")
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    (change,) = (await loader.load("git")).changes
    with pytest.raises(AgentTuiError, match="does not have this file"):
        await actions.stage(change, change.hunks[0])
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "second")
    with pytest.raises(AgentTuiError, match="Git sees no change of renamed"):
        await actions.stage(change)
    await runtime.aclose()


async def test_kind_and_mode_are_taken_back(stage: Stage, keeper: ProcessKeeper, folder: Path):
    for name in ("link", "tool", "linked"):
        (folder / name).unlink()
    (folder / "linked").symlink_to("elsewhere")
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    for change in (await loader.load("git")).changes:
        await actions.take_back(change, change.hunks)
    assert (folder / "link").readlink() == Path("old")
    assert (folder / "tool").stat().st_mode & 0o777 == 0o755
    assert not (folder / "linked").is_symlink()
    assert (folder / "linked").read_bytes() == FILES["linked"]
    assert git(folder, "status", "--short") == ""
    await runtime.aclose()


async def test_other_repositories_are_named(stage: Stage, keeper: ProcessKeeper, folder: Path):
    (folder / "nested").mkdir()
    git(folder / "nested", "init", "-q")
    (folder / "nested" / "x").touch()
    runtime = stage.runtime([])
    review = await ReviewLoader(runtime, keeper).load("git")
    assert review.left_out == ("Not shown: changes in submodules and other repositories (nested/).")
    git(folder / "nested", "add", "x")
    git(folder / "nested", "commit", "-qm", "one")
    git(folder, "add", "nested")
    git(folder, "commit", "-qm", "nested")
    git(folder / "nested", "commit", "-qm", "two", "--allow-empty")
    review = await ReviewLoader(runtime, keeper).load("git")
    assert "(nested)" in review.left_out
    await runtime.aclose()


async def test_what_the_index_has_is_always_shown(
    stage: Stage, keeper: ProcessKeeper, folder: Path
):
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    (folder / "old").write_text("1\n2\n3\n")
    (folder / "new").write_text("x\n")
    git(folder, "add", "old", "new")
    (folder / "old").write_text("1\n2\nfour\n")  # by another program
    review = await loader.load("git")
    old = next(one for one in review.changes if one.name == "old")
    assert review.in_index["old", ""] == review.in_index["old", old.hunks[0].key] == "partly staged"
    assert review.in_index["new", ""] == "staged"
    assert "2 staged" in count_words(review)
    (folder / "old").write_bytes(FILES["old"])
    (folder / "new").unlink()
    review = await loader.load("git")
    assert [(one.name, one.note) for one in review.changes] == [
        ("new", "changed in git's index alone"),
        ("old", "changed in git's index alone"),
    ]
    assert review.in_index == {("new", ""): "partly staged", ("old", ""): "partly staged"}
    session = await loader.load("session")
    assert session.left_out == "Staged, but not among these changes: new, old."
    actions = ReviewActions(runtime, loader, keeper)
    assert await actions.stage(review.changes[0]) == "unstaged"
    await actions.unstage(review.changes[1])
    assert index(folder) == ""
    await runtime.aclose()


async def test_the_old_name_of_a_staged_rename_is_not_named_again(
    stage: Stage, keeper: ProcessKeeper, folder: Path
):
    git(folder, "mv", "old", "moved")
    runtime = stage.runtime([])
    review = await ReviewLoader(runtime, keeper).load("git")
    assert [(one.name, one.was) for one in review.changes] == [("moved", "old")]
    assert review.in_index == {("moved", ""): "staged"}
    assert review.left_out == ""
    git(folder, "reset", "-q", "--", "moved")
    review = await ReviewLoader(runtime, keeper).load("git")
    assert review.in_index == {("moved", ""): "partly staged"}
    await runtime.aclose()


async def test_a_hunk_leaves_the_index_alone(stage: Stage, keeper: ProcessKeeper, folder: Path):
    lines = [f"{n}\n" for n in range(30)]
    (folder / "old").write_text("".join(lines))
    git(folder, "commit", "-qam", "lines")
    (folder / "old").write_text("".join(["0!\n", *lines[1:-1], "29!\n"]))
    (folder / "come").write_text("x\n")
    git(folder, "add", ".")
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    come, old = (await loader.load("git")).changes
    for change, hunk in ((come, come.hunks[0]), (old, old.hunks[0])):
        await actions.take_back(change, [hunk])
        await actions.unstage(change, hunk)
    assert git(folder, "status", "--short") == "M  old\n"
    assert git(folder, "show", ":old") == "".join([*lines[:-1], "29!\n"])
    await runtime.aclose()


async def test_a_conflict_is_shown_and_not_committed(
    stage: Stage, keeper: ProcessKeeper, folder: Path
):
    git(folder, "switch", "-qc", "other")
    (folder / "old").write_text("other\n")
    git(folder, "commit", "-qam", "theirs")
    git(folder, "switch", "-q", "main")
    (folder / "old").write_text("main\n")
    git(folder, "commit", "-qam", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(folder, "merge", "-q", "other")
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    review = await loader.load("git")
    assert review.in_index == {("old", ""): "conflict"}
    assert "1 in conflict" in count_words(review)
    with pytest.raises(AgentTuiError, match="old is in conflict"):
        await actions.prepare_commit()
    (folder / "old").write_text("main\n")
    review = await loader.load("git")
    assert [(one.name, one.note) for one in review.changes] == [("old", "as in the last commit")]
    assert review.in_index == {("old", ""): "conflict"}
    session = await loader.load("session")
    assert session.left_out == "In conflict, but not among these changes: old."
    git(folder, "add", "old")
    draft = await actions.prepare_commit()  # of nothing but the merge
    assert draft.names == ()
    assert draft.message == "Merge branch 'other'"
    await runtime.aclose()
