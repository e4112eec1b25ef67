"""Where changes come from, and what git is told to do with them."""

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.errors import AgentTuiError
from agent_tui.events import ToolFinished
from agent_tui.features.print.printer import print_command
from agent_tui.features.review.actions import ReviewActions
from agent_tui.features.review.changes import FileChange
from agent_tui.features.review.comments import comment_on
from agent_tui.features.review.sources import ReviewLoader, read_present
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.permissions.trust import FolderTrust, TrustFile
from agent_tui.tools.git.trees import WorkTrees
from agent_tui.tools.git.worktree import Worktree
from agent_tui.tools.git.worktree_records import WorktreeRecords
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.git_repository import age_files, git, state_of_files
from tests.support.models import listed_services
from tests.support.runtime import GOOD_SUMMARY, Stage, collect

BEFORE = "".join(f"line {n}\n" for n in range(1, 31))
AFTER = BEFORE.replace("line 3\n", "line three\n").replace("line 25\n", "line 25\nnew\n")


@pytest.fixture
def keeper() -> Iterator[ProcessKeeper]:
    made = ProcessKeeper()
    yield made
    made.close()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def repository(stage: Stage) -> Path:
    folder = stage.workspace
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.py").write_text(BEFORE)
    (folder / "moved.py").write_text(BEFORE * 2)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def edit(name: str, old: str, new: str) -> Reply:
    change: dict[str, object] = {"old": old, "new": new}
    return Reply(tool_calls=(call(f"e{name}{new}", "edit", path=name, edits=[change]),))


def summary(changes: tuple[FileChange, ...]) -> list[str]:
    return [" ".join([one.name, *map(str, one.counts), one.kind or one.note]) for one in changes]


async def of(runtime: AgentRuntime, keeper: ProcessKeeper, what: str) -> list[str]:
    return summary((await ReviewLoader(runtime, keeper).load(what)).changes)


async def test_the_session_is_compared_with_its_beginning_and_with_the_last_message(
    stage: Stage, keeper: ProcessKeeper
):
    (stage.workspace / "a.py").write_text(BEFORE)
    runtime = stage.runtime(
        [
            edit("a.py", "line 3\n", "3\n"),
            Reply("Ok."),
            edit("a.py", "line 25\n", ""),
            Reply("Ok."),
        ],
        mode="full",
    )
    await collect(runtime.submit("first"))
    await collect(runtime.submit("second"))
    assert await of(runtime, keeper, "") == ["a.py 0 1 "]
    assert await of(runtime, keeper, "session") == ["a.py 1 2 "]
    assert await of(runtime, keeper, "A.P") == ["a.py 1 2 "]
    with pytest.raises(AgentTuiError, match=r"has the name b\.py"):
        await of(runtime, keeper, "b.py")
    (stage.workspace / "b.py").touch()
    assert await of(runtime, keeper, "b.py") == []
    await runtime.aclose()


def test_a_folder_that_became_a_link_is_not_followed(tmp_path: Path):
    place = tmp_path.resolve()
    (place / "else").mkdir()
    (place / "else/a.py").write_text("secret")
    (place / "else/link").symlink_to("a.py")
    assert read_present(place / "else/a.py") == (b"secret", "")
    assert read_present(place / "else/link") == (b"a.py", "")
    (place / "top").symlink_to("else")
    for name in ("a.py", "link", "none"):
        assert read_present(place / "top" / name) == (None, "")
    assert read_present(place / "else") == (None, "not a regular file")


@pytest.mark.thorough
async def test_a_review_leaves_the_repository_as_it_is(stage: Stage, keeper: ProcessKeeper):
    folder = repository(stage)
    (folder / "a.py").write_text(AFTER)
    (folder / "moved.py").write_text("new\n")
    git(folder, "add", "moved.py")
    age_files(folder / ".git")
    before, runtime = state_of_files(folder / ".git"), stage.runtime([])
    for what in ("git", "HEAD", "HEAD..HEAD"):
        await of(runtime, keeper, what)
    assert state_of_files(folder / ".git") == before
    await runtime.aclose()


async def test_a_message_that_steered_a_turn_is_part_of_it(stage: Stage, keeper: ProcessKeeper):
    (stage.workspace / "a.py").write_text(BEFORE)
    replies = [edit("a.py", "line 3\n", "3\n"), edit("a.py", "line 25\n", ""), Reply("Ok.")]
    runtime = stage.runtime(replies, mode="full")
    is_first = True
    async for event in runtime.submit("first"):
        if is_first and isinstance(event, ToolFinished):
            runtime.enqueue("and line 25")
            is_first = False
    assert await of(runtime, keeper, "") == ["a.py 1 2 "]
    await runtime.aclose()


async def test_edits_without_stored_contents_are_worked_out_from_their_diffs(
    stage: Stage, keeper: ProcessKeeper
):
    (stage.workspace / "a.py").write_text(BEFORE)
    runtime = stage.runtime([edit("a.py", "line 3\n", "3\n"), Reply("Ok.")], mode="full")
    runtime.conversation.kept_files = type(runtime.conversation.kept_files)(None)
    await collect(runtime.submit("first"))
    assert await of(runtime, keeper, "") == ["a.py 1 1 "]
    await runtime.aclose()


async def test_git_shows_what_is_not_committed_with_new_and_moved_files(
    stage: Stage, keeper: ProcessKeeper
):
    folder = repository(stage)
    (folder / "a.py").write_text(AFTER)
    (folder / "moved.py").rename(folder / "there.py")
    (folder / "new.bin").write_bytes(b"\0\1")
    runtime = stage.runtime([])
    assert await of(runtime, keeper, "git") == [
        "a.py 2 1 ",
        "new.bin 0 0 new file",
        "there.py 0 0 renamed from moved.py",
    ]
    await runtime.aclose()


async def test_commits_are_compared_and_others_refused(stage: Stage, keeper: ProcessKeeper):
    folder = repository(stage)
    (folder / "a.py").write_text(AFTER)
    git(folder, "commit", "-qam", "second")
    runtime = stage.runtime([])
    assert await of(runtime, keeper, "HEAD^..HEAD") == ["a.py 2 1 "]
    assert await of(runtime, keeper, "HEAD...HEAD^") == []
    (folder / "new.py").write_text("x\n")
    assert await of(runtime, keeper, "HEAD^") == ["a.py 2 1 ", "new.py 1 0 new file"]
    assert await of(runtime, keeper, "HEAD") == ["new.py 1 0 new file"]
    with pytest.raises(AgentTuiError, match=r"Git knows no commits x\.\.y"):
        await of(runtime, keeper, "x..y")
    with pytest.raises(AgentTuiError, match=r"--output"):
        await of(runtime, keeper, "--output=/tmp/x..HEAD")
    await runtime.aclose()


async def test_git_does_not_run_in_a_folder_that_is_not_trusted(
    stage: Stage, keeper: ProcessKeeper, tmp_path: Path
):
    folder = repository(stage)
    git(folder, "config", "core.fsmonitor", f"touch {tmp_path}/ran")
    runtime = stage.runtime([])
    runtime.services.trust = FolderTrust(TrustFile(tmp_path / "none.json"))
    for what in ("git", "HEAD^..HEAD"):
        with pytest.raises(AgentTuiError, match="the folder is not trusted"):
            await of(runtime, keeper, what)
    assert not (tmp_path / "ran").exists()
    await runtime.aclose()


async def test_hunks_and_files_are_staged_and_unstaged(stage: Stage, keeper: ProcessKeeper):
    folder = repository(stage)
    (folder / "a.py").write_text(AFTER)
    (folder / "new.py").write_text("x\n")
    (folder / "moved.py").unlink()
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    a, moved, new = (await loader.load("git")).changes
    assert await actions.stage(a, a.hunks[1]) == "staged"
    assert git(folder, "diff", "--cached", "--stat").split("|")[1].split()[0] == "1"
    assert await actions.stage(a) == "staged"
    assert git(folder, "show", ":a.py") == AFTER
    assert len((await loader.load("git")).in_index) == 3
    assert await actions.stage(a, a.hunks[0]) == "unstaged"
    assert (await loader.load("git")).in_index == {
        ("a.py", ""): "partly staged",
        ("a.py", a.hunks[1].key): "staged",
    }
    assert git(folder, "show", ":a.py") == BEFORE.replace("line 25\n", "line 25\nnew\n")
    assert await actions.stage(new) == "staged"
    assert await actions.stage(moved) == "staged"
    assert (await actions.prepare_commit()).names == ("a.py", "moved.py", "new.py")
    assert git(folder, "status", "--short", "new.py", "moved.py") == "D  moved.py\nA  new.py\n"
    assert await actions.stage(new, new.hunks[0]) == "unstaged"
    assert git(folder, "status", "--short", "new.py") == "?? new.py\n"
    await runtime.aclose()


async def test_what_the_index_does_not_have_is_not_staged(stage: Stage, keeper: ProcessKeeper):
    folder = repository(stage)
    (folder / "a.py").write_text("something else\n")
    git(folder, "add", "a.py")
    (folder / "a.py").write_text(AFTER)
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    change = (await loader.load("git")).changes[0]
    with pytest.raises(AgentTuiError, match="other lines there"):
        await ReviewActions(runtime, loader, keeper).stage(change, change.hunks[0])
    assert git(folder, "show", ":a.py") == "something else\n"
    await runtime.aclose()


async def test_hooks_run_only_in_a_trusted_folder(
    stage: Stage, keeper: ProcessKeeper, tmp_path: Path
):
    folder = repository(stage)
    runtime = stage.runtime([])
    actions = ReviewActions(runtime, ReviewLoader(runtime, keeper), keeper)
    assert actions.commit_argv(folder, Path("m"))[:2] == ("git", "commit")
    runtime.services.trust = FolderTrust(TrustFile(tmp_path / "none.json"))
    argv = actions.commit_argv(folder, tmp_path / "m")
    assert "core.hooksPath=/dev/null" in argv
    assert "commit.gpgSign=false" in argv
    await runtime.aclose()


async def test_the_changes_are_listed_with_numbers_for_scripts(stage: Stage):
    (stage.workspace / "a.py").write_text(BEFORE)
    runtime, out = (
        stage.runtime([edit("a.py", "line 3\n", "3\n"), Reply("Ok.")], mode="full"),
        io.StringIO(),
    )
    await collect(runtime.submit("first"))
    await print_command(runtime, listed_services(), "/diff", "text", out=out)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert "1. a.py (+1 -1)" in lines
    assert "Hunk 1.1" in lines
    assert lines[lines.index("3 -line 3") + 1] == "3 +3"


async def test_comments_are_written_and_sent_by_lines(stage: Stage):
    (stage.workspace / "a.py").write_text(BEFORE)
    runtime = stage.runtime(
        [edit("a.py", "line 3\n", "3\n"), Reply("Ok."), Reply("Fixed.")], mode="full"
    )
    await collect(runtime.submit("first"))
    out, err = io.StringIO(), io.StringIO()
    for line in (
        "/comment a.py:3 Why a number?",
        "/comment a.py:5-6 Both.",
        "/comment a.py:7 Never mind.",
        "/comment drop 3",
        "/diff",
        "/comment send",
    ):
        await print_command(runtime, listed_services(), line, "text", out=out)
    assert "Comment 1 on a.py:3 (open): Why a number?" in out.getvalue()
    sent = [m.text for m in runtime.conversation.request().messages if m.role == "user"][-1]
    assert "1. a.py, line 3 after the change\n    3| 3\nWhy a number?" in sent
    assert "2. a.py, lines 5-6 after the change\n    5| line 5\n    6| line 6\nBoth." in sent
    assert "Fixed." in out.getvalue()
    for line, why in (
        ("/comment a.py Why?", "Give a place"),
        ("/comment a.py:99 Why?", "no line 99"),
        ("/comment keep 4", "no comment 4"),
        ("/comment keep 1", "Comment 1 is sent already"),
    ):
        await print_command(runtime, listed_services(), line, "text", out=out, err=err)
        assert why in out.getvalue() + err.getvalue()
    await runtime.aclose()


async def test_the_work_in_a_worktree_is_shown(
    stage: Stage, keeper: ProcessKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder, place = repository(stage), tmp_path / "place"
    start = git(folder, "rev-parse", "HEAD").strip()
    git(folder, "worktree", "add", "-q", "-b", "side", str(place))
    (place / "a.py").write_text(AFTER)
    git(place, "commit", "-qam", "side")
    (place / "new.py").write_text("x\n")
    records = WorktreeRecords(tmp_path / "records")
    made = Worktree(
        "side", place.resolve(), folder.resolve(), "side", "main", start, owns_branch=True
    )
    records.store(made, "in use")
    monkeypatch.setattr("agent_tui.features.review.sources.worktree_records", lambda: records)
    runtime = stage.runtime([])
    runtime.services.trust.trust_for_this_run(place)
    named = f"{place.resolve()}/"
    found = await of(runtime, keeper, "worktree side")
    assert [one.removeprefix(named) for one in found] == ["a.py 2 1 ", "new.py 1 0 new file"]
    with pytest.raises(AgentTuiError, match="no worktree 'other'"):
        await of(runtime, keeper, "worktree other")
    found = await of(runtime, keeper, f"folder {place}")
    assert [one.removeprefix(named) for one in found] == ["a.py 2 1 ", "new.py 1 0 new file"]
    await runtime.aclose()


async def test_what_is_not_committed_in_another_folder_is_shown_if_git_may_run_there(
    stage: Stage, keeper: ProcessKeeper, tmp_path: Path
):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    (other / "a.py").write_text(BEFORE)
    git(other, "config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    runtime = stage.runtime([])
    runtime.services.trust = FolderTrust(TrustFile(tmp_path / "none.json"))
    with pytest.raises(AgentTuiError, match="not trusted"):
        await of(runtime, keeper, f"folder {other}")
    assert not (tmp_path / "ran").exists()
    git(other, "config", "--unset", "core.fsmonitor")
    found = await of(runtime, keeper, f"folder {other}")
    assert [one.rpartition("/")[2] for one in found] == ["a.py 30 0 new file"]
    shown = await print_command(
        runtime, listed_services(), f"/diff folder {other}", "text", out=io.StringIO()
    )
    assert shown == 0
    await runtime.aclose()


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
async def test_a_hunk_taken_back_leaves_every_other_byte(
    stage: Stage, keeper: ProcessKeeper, newline: str
):
    file = stage.workspace / "a.py"
    before = ("\ufeff" + BEFORE.replace("\n", newline) + "no end").encode()
    file.write_bytes(before)
    file.chmod(0o755)
    runtime = stage.runtime(
        [edit("a.py", "line 7", "7"), edit("a.py", "no end", "an end"), Reply("Ok.")], mode="full"
    )
    await collect(runtime.submit("first"))
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    (change,) = (await loader.load("")).changes
    await actions.take_back(change, change.hunks[:1])
    assert file.read_bytes() == before.replace(b"no end", b"an end")
    await actions.take_back(change, change.hunks[1:])
    assert file.read_bytes() == before
    assert file.stat().st_mode & 0o777 == 0o755
    with pytest.raises(AgentTuiError, match="no longer as it was shown"):
        await actions.take_back(change, change.hunks[1:])
    await runtime.aclose()


async def test_names_that_are_no_text_are_shown_and_staged(stage: Stage, keeper: ProcessKeeper):
    folder = repository(stage)
    name = os.fsdecode(b"caf\xe9\x1b.py")
    (folder / name).write_text("x\n")
    runtime = stage.runtime([])
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    review = await loader.load("git")
    (change,) = review.changes
    assert change.name == "caf\\xe9\\x1b.py"
    assert await actions.stage(change) == "staged"
    assert git(folder, "diff", "--cached", "--name-only") == '"caf\\351\\033.py"\n'
    actions.keep(review.state, comment_on(change, "new", 1, 1, "Why?", "c1"))
    actions.mark_reviewed(review.state, change, is_reviewed=True)
    assert "caf\\xe9\\x1b.py, line 1" in actions.write_message(review.state)
    assert review.state.is_reviewed(change)
    await runtime.aclose()


async def test_comments_outlive_a_compaction(stage: Stage, keeper: ProcessKeeper):
    (stage.workspace / "a.py").write_text(BEFORE)
    replies = [
        edit("a.py", "line 3\n", "3\n"),
        Reply("Ok."),
        Reply("word " * 9_000),
        Reply(GOOD_SUMMARY),
    ]
    runtime = stage.runtime(replies, mode="full")
    await collect(runtime.submit("first"))
    await collect(runtime.submit("second"))
    loader = ReviewLoader(runtime, keeper)
    review = await loader.load("session")
    (change,) = review.changes
    comment = comment_on(change, "new", 3, 3, "Why?", "c1")
    ReviewActions(runtime, loader, keeper).keep(review.state, comment)
    before = runtime.conversation.log.path
    await collect(runtime.compact())
    assert runtime.conversation.log.path != before
    again = await loader.load("session")
    assert again.state.unsent() == [comment]
    assert summary(again.changes) == ["a.py 1 1 "]
    await runtime.aclose()


async def test_a_deleted_file_and_a_link_are_taken_back(stage: Stage, keeper: ProcessKeeper):
    folder = repository(stage)
    (folder / "link").symlink_to("a.py")
    git(folder, "add", "link")
    git(folder, "commit", "-qm", "link")
    command = "rm a.py && rm link && ln -s moved.py link"
    replies = [Reply(tool_calls=(call("c1", "bash", command=command),)), Reply("Ok.")]
    runtime = stage.runtime(replies, mode="full", trees=WorkTrees(keeper))
    await collect(runtime.submit("first"))
    loader = ReviewLoader(runtime, keeper)
    actions = ReviewActions(runtime, loader, keeper)
    gone, link = (await loader.load("session")).changes
    assert summary((gone, link)) == ["a.py 0 30 deleted", "link 1 1 "]
    for change in (gone, link):
        await actions.take_back(change, change.hunks)
    assert (folder / "a.py").read_text() == BEFORE
    assert (folder / "link").readlink() == Path("a.py")
    await runtime.aclose()
