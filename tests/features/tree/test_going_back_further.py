"""Going back to what was said before a compaction that began a session, with its files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.errors import SessionError
from agent_tui.events import BranchSummaryProgress, Notice, SessionChanged, WentBack
from agent_tui.features.context.undo import undo_compaction
from agent_tui.features.tree.branches import Branches
from agent_tui.messages import UserMessage
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry, Entry, LabelEntry, MessageEntry
from agent_tui.sessions.log import SessionLog
from tests.support.compaction_ways import talk
from tests.support.context_checks import assert_sendable
from tests.support.runtime import Stage, collect, of_kind, only
from tests.support.session_chain import writing

WINDOW = 60_000


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def chain(stage: Stage, sessions: int = 2, *, is_kept: bool = True) -> AgentRuntime:
    """One session after the other, each with a file written, long talk, and a last message."""
    versions = [str(number) for number in range(1, sessions + 1)]
    runtime = stage.runtime(writing(*versions), window=WINDOW, mode="full")
    if not is_kept:
        runtime.services.keeps_sessions = False
        await runtime.sessions.start_new()
    for number in versions:
        await collect(runtime.submit(f"Write {number}."))
        talk(runtime.conversation.log, 13)
        await collect(runtime.submit(f"Last of {number}."))
        if number != versions[-1]:
            await collect(runtime.compact())
    return runtime


def said(entries: "tuple[Entry, ...]") -> list[str]:
    return [
        e.message.text
        for e in entries
        if isinstance(e, MessageEntry) and isinstance(e.message, UserMessage)
    ]


async def named(runtime: AgentRuntime, text: str) -> str:
    """The entry of the person's message `text`, in whichever session."""
    tree = await runtime.sessions.whole_tree()
    (found,) = [entry.id for entry in tree.path if said((entry,)) == [text]]
    return found


def sent(runtime: AgentRuntime) -> str:
    log = runtime.conversation.log
    context = build_context(log.path_entries(), carryover=log.header.compaction)
    return "\n".join(item.message.text for item in context.messages)


def file_of(stage: Stage) -> str:
    path = stage.workspace / "a.txt"
    return path.read_text() if path.exists() else ""


async def undo(runtime: AgentRuntime, *, files: bool = True) -> str:
    """What /undo does; the text that comes back."""
    place = await Branches(runtime).last_said()
    assert place is not None
    if files:
        await runtime.files.carry_out(await runtime.files.plan_for(place))
    return only(list(await Branches(runtime).go_to(place)), WentBack).text


async def test_undo_goes_back_message_by_message_through_a_compaction_with_the_files(stage: Stage):
    runtime = await chain(stage)
    child = runtime.conversation.log
    parent = Path(child.header.parent_session or "")
    before = parent.read_bytes()
    seen: list[tuple[str, str]] = []
    while await Branches(runtime).last_said() is not None:
        seen.append((await undo(runtime), file_of(stage)))
    texts = [text for text, _ in seen]
    assert texts[0] == "Last of 2."
    assert texts.count("Last of 1.") == texts.count("Write 1.") == 1, "no message comes twice"
    files = dict(seen)
    assert files["Last of 2."] == "2"
    assert files["Write 2."] == files["Last of 1."] == "1"
    assert files["Write 1."] == ""
    assert runtime.conversation.log.path == parent
    assert parent.read_bytes().startswith(before), "the earlier session is only added to"
    assert sent(runtime) == ""


async def test_the_context_of_a_place_before_the_compaction_is_what_it_was_there(stage: Stage):
    runtime = stage.runtime(writing("1"), window=WINDOW, mode="full")
    talk(runtime.conversation.log, 13)
    await collect(runtime.submit("Early."))
    whole = sent(runtime)
    await collect(runtime.submit("Late."))
    await collect(runtime.compact())
    left = runtime.conversation.log.header.id
    assert isinstance(runtime.conversation.log.path_entries()[0], CompactionEntry)
    events = list(await Branches(runtime).go_back(await named(runtime, "Late.")))
    assert only(events, SessionChanged).reason == "resumed"
    assert left[:8] in of_kind(events, Notice)[-1].text
    assert sent(runtime) == whole
    await collect(runtime.submit("Later, otherwise."))
    assert sent(runtime).startswith(whole)
    assert_sendable(runtime.conversation.log.path_entries())


async def test_talk_alone_goes_back_and_the_files_of_the_session_that_was_left_still_can(
    stage: Stage,
):
    runtime = await chain(stage)
    await Branches(runtime).go_back(await named(runtime, "Last of 1."))
    assert file_of(stage) == "2"
    place = await Branches(runtime).last_said()
    assert place is not None
    assert not place.later
    first = await Branches(runtime).place_of(await named(runtime, "Write 1."))
    plan = await runtime.files.plan_for(first)
    assert not plan.left, "what the session that was left did passes for nobody else's"
    await runtime.files.carry_out(plan)
    assert file_of(stage) == ""
    await runtime.files.carry_out(await runtime.files.plan_taking_back())
    assert file_of(stage) == "2"


async def test_what_is_put_back_on_the_way_is_known_in_the_earlier_session(stage: Stage):
    runtime = await chain(stage)
    tree = await runtime.sessions.whole_tree()
    place = tree.place(await named(runtime, "Last of 1."))
    await runtime.files.carry_out(await runtime.files.plan_for(place))
    await Branches(runtime).go_to(place)
    assert file_of(stage) == "1"
    assert await undo(runtime) != "Last of 1."
    await Branches(runtime).go_back(await named(runtime, "Write 1."))
    plan = await runtime.files.plan_taking_back()
    assert not plan.left
    await runtime.files.carry_out(plan)
    assert file_of(stage) == "2"


async def test_three_sessions_back_at_once_and_the_files_with_it(stage: Stage):
    runtime = await chain(stage, 3)
    grandparent = (await runtime.sessions.whole_tree()).place(await named(runtime, "Write 1."))
    assert len(grandparent.later) == 2
    await runtime.files.carry_out(await runtime.files.plan_for(grandparent))
    await Branches(runtime).go_to(grandparent)
    assert file_of(stage) == ""
    assert runtime.conversation.log.header.id == grandparent.session.id
    assert said(runtime.conversation.log.path_entries()) == []


async def test_every_message_of_the_chain_stands_once_in_the_tree(stage: Stage):
    runtime = await chain(stage, 3)
    tree = await runtime.sessions.whole_tree()
    texts = said(tree.path)
    for text in ("Write 1.", "Last of 1.", "Write 2.", "Last of 2.", "Write 3.", "Last of 3."):
        assert texts.count(text) == 1
    assert sum(isinstance(entry, CompactionEntry) for entry in tree.path) == 2
    order = [text for text in texts if text.startswith(("Write", "Last"))]
    assert order == [f"{what} {n}." for n in (1, 2, 3) for what in ("Write", "Last of")]
    assert tree.path == tuple(tree.entries), "parents before children, and no other branch"


async def test_behind_the_compaction_is_behind_what_it_kept(stage: Stage):
    runtime = await chain(stage)
    tree = await runtime.sessions.whole_tree()
    begun = next(entry for entry in tree.path if isinstance(entry, CompactionEntry))
    await Branches(runtime).go_back(begun.id)
    assert "Last of 1." in sent(runtime)
    assert "Write 2." not in sent(runtime)


async def test_a_fork_of_a_compacted_session_goes_back_as_far(stage: Stage):
    runtime = await chain(stage)
    await Branches(runtime).fork()
    await Branches(runtime).go_back(await named(runtime, "Last of 1."))
    assert said(runtime.conversation.log.path_entries())[0] == "Write 1."


async def test_forking_from_before_the_compaction_leaves_both_sessions_alone(stage: Stage):
    runtime = await chain(stage)
    child = runtime.conversation.log.path
    parent = Path(runtime.conversation.log.header.parent_session or "")
    before = parent.read_bytes()
    events = list(await Branches(runtime).fork(await named(runtime, "Last of 1.")))
    assert only(events, WentBack).text == "Last of 1."
    assert runtime.conversation.log.path not in (child, parent)
    assert said(runtime.conversation.log.path_entries())[0] == "Write 1."
    assert parent.read_bytes() == before


async def test_going_back_with_a_summary_sums_up_what_both_sessions_said_since(stage: Stage):
    runtime = await chain(stage)
    entry = await named(runtime, "Last of 1.")
    events = await collect(Branches(runtime).go_back_with_summary(entry))
    assert of_kind(events, BranchSummaryProgress)
    asked = stage.model.requests[-1].messages[-1].text
    assert "Last of 2." in asked
    assert "branch" in sent(runtime)
    assert said(runtime.conversation.log.path_entries())[-1] != "Last of 1."


async def test_a_label_is_put_where_the_message_stands(stage: Stage):
    runtime = await chain(stage)
    entry = await named(runtime, "Write 1.")
    await Branches(runtime).label(entry, "start")
    parent = SessionLog.open(
        Path(runtime.conversation.log.header.parent_session or ""), read_only=True
    )
    (label,) = [e for e in parent.entries if isinstance(e, LabelEntry)]
    assert (label.target_id, label.label) == (entry, "start")


async def test_an_earlier_session_that_is_open_elsewhere_is_said_and_nothing_changes(stage: Stage):
    runtime = await chain(stage)
    log = runtime.conversation.log
    before = log.path_entries()
    entry = await named(runtime, "Last of 1.")
    with SessionLog.open(Path(log.header.parent_session or "")), pytest.raises(SessionError):
        await Branches(runtime).go_back(entry)
    assert runtime.conversation.log is log
    assert log.path_entries() == before


@pytest.mark.parametrize(
    "spoil", [Path.unlink, lambda path: path.write_bytes(b"\0" * 90)], ids=["gone", "damaged"]
)
async def test_without_the_earlier_session_one_goes_back_as_far_as_it_was_kept(
    stage: Stage, spoil: Callable[[Path], object]
):
    runtime = await chain(stage)
    gone = Path(runtime.conversation.log.header.parent_session or "")
    spoil(gone)
    texts: list[str] = []
    while await Branches(runtime).last_said() is not None:
        texts.append(await undo(runtime, files=False))
    assert "Last of 1." in texts
    assert "Write 1." not in texts
    assert (await runtime.sessions.whole_tree()).unread.endswith(f"cannot be read: {gone}")


async def test_sessions_in_memory_go_back_too(stage: Stage):
    runtime = await chain(stage, is_kept=False)
    assert runtime.conversation.log.path is None
    await Branches(runtime).go_back(await named(runtime, "Last of 1."))
    assert said(runtime.conversation.log.path_entries())[0] == "Write 1."
    await collect(runtime.submit("Otherwise."))
    assert said(runtime.conversation.log.path_entries())[-1] == "Otherwise."


async def test_a_session_that_was_gone_on_with_has_that_as_a_branch_beside_the_compaction(
    stage: Stage,
):
    runtime = await chain(stage)
    child = str(runtime.conversation.log.path)
    await Branches(runtime).go_back(await named(runtime, "Last of 1."))
    await collect(runtime.submit("Otherwise."))
    await runtime.sessions.open(child)
    tree = await runtime.sessions.whole_tree()
    assert "Otherwise." in said(tuple(tree.entries))
    assert "Otherwise." not in said(tree.path)
    assert said(tree.path)[-1] == "Last of 2."


async def test_compacting_after_an_uncompact_keeps_each_message_once(stage: Stage):
    runtime = await chain(stage)
    await undo_compaction(runtime)
    await collect(runtime.compact())
    tree = await runtime.sessions.whole_tree()
    assert said(tree.path).count("Last of 2.") == 1
    assert said(tree.path).count("Write 1.") == 1
