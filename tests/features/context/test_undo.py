"""Taking compactions back, also where much has happened since."""

import asyncio
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.errors import CompactionError, SessionError
from agent_tui.events import CompactionFinished, Notice, SessionChanged, TurnFinished
from agent_tui.features.context import undo
from agent_tui.features.context.undo import undo_compaction
from agent_tui.features.tour.scripted import Reply
from agent_tui.features.tree.branches import Branches
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelRef, ModelRequest
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry, Header, MessageEntry
from agent_tui.sessions.importers.formats import read_foreign
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import is_undo_mark, report_of
from agent_tui.sessions.replay.marks import read_marks
from agent_tui.sessions.store import SessionStore
from tests.sessions.importers import claude_lines
from tests.support.compaction_ways import SUMMARY, talk
from tests.support.context_checks import assert_sendable
from tests.support.patience import PATIENCE_S
from tests.support.runtime import Stage, collect, lines_of, of_kind, only
from tests.support.talk import Talk

WINDOW = 60_000


def speaking(tokens: Callable[[ModelRequest], int] = lambda _request: 0) -> Callable[..., Reply]:
    """A model that says little; `tokens` is what it counts a request as, 0 where it does not."""

    def answer(request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(text=SUMMARY)
        counted = tokens(request)
        return Reply(text="Fine.", usage=Usage(input=counted, total_tokens=counted))

    return answer


def counted_chars(request: ModelRequest) -> int:
    """About what a service would say of a request."""
    return sum(len(message.text) for message in request.messages) // 4


def context_bytes(runtime: AgentRuntime) -> str:
    context = build_context(
        runtime.conversation.log.path_entries(),
        carryover=runtime.conversation.log.header.compaction,
    )
    return "\n".join(item.message.model_dump_json() for item in context.messages)


def said(runtime: AgentRuntime) -> list[str]:
    return [
        e.message.text
        for e in runtime.conversation.log.path_entries()
        if isinstance(e, MessageEntry)
    ]


def in_use(runtime: AgentRuntime) -> int:
    """The size of the next request by our own estimate."""
    conversation = runtime.conversation
    messages = (item.message for item in conversation.context().messages)
    return conversation.overhead_tokens() + conversation.services.counter.count_messages(messages)


async def compacted(stage: Stage, answer: Callable[..., Reply] | None = None) -> AgentRuntime:
    """In the session that /compact begins, some 13,000 tokens of talk behind it."""
    runtime = stage.runtime(answer or speaking(), window=WINDOW)
    talk(runtime.conversation.log, 13)
    await collect(runtime.submit("Well?"))
    await collect(runtime.compact())
    assert runtime.conversation.log.header.parent_session
    return runtime


def put_outputs(log: SessionLog) -> None:
    """Long outputs of tools, which can be shortened."""
    work = Talk(prefix="work")
    for number in range(14):
        work.tool("bash", {"command": f"make part{number}"}, f"part {number} is made\n" * 700)
    log.append_many(work.entries)


async def shorten_in_place(runtime: AgentRuntime) -> None:
    """A compaction by edits, message by message."""
    assert of_kind(await collect(runtime.compact_here("hybrid")), CompactionFinished)


async def test_the_size_after_going_back_is_not_what_the_compacted_context_was(stage: Stage):
    runtime = await compacted(stage, speaking(counted_chars))
    await collect(runtime.submit("And now?"))
    small = runtime.conversation.usage.used
    await undo_compaction(runtime)
    assert runtime.conversation.usage.is_estimate
    assert runtime.conversation.usage.used > 1.8 * small
    assert runtime.conversation.usage.used == pytest.approx(in_use(runtime), rel=0.3)
    await collect(runtime.submit("And then?"))
    assert not runtime.conversation.usage.is_estimate


async def test_both_compactions_of_a_session_can_be_taken_back(stage: Stage):
    runtime = await compacted(stage)
    parent = Path(runtime.conversation.log.header.parent_session or "")
    before = parent.read_bytes()
    put_outputs(runtime.conversation.log)
    await shorten_in_place(runtime)
    assert any(map(report_of, runtime.conversation.log.path_entries()))
    await collect(runtime.submit("And now?"))
    await undo_compaction(runtime)
    assert runtime.conversation.log.path != parent
    assert any(map(is_undo_mark, runtime.conversation.log.path_entries()))
    events = await undo_compaction(runtime)
    assert of_kind(list(events), SessionChanged)
    assert runtime.conversation.log.path == parent
    assert parent.read_bytes().startswith(before)
    assert said(runtime)[-2:] == ["And now?", "Fine."]
    assert_sendable(runtime.conversation.log.path_entries())
    assert not [entry for entry in runtime.conversation.log.path_entries() if report_of(entry)]
    with pytest.raises(CompactionError, match="was not compacted"):
        await undo_compaction(runtime)


async def test_the_model_chosen_since_stays_after_going_back(stage: Stage):
    runtime = await compacted(stage)
    runtime.set_model(ModelRef("scripted/other"))
    await collect(runtime.submit("And now?"))
    await undo_compaction(runtime)
    assert runtime.conversation.model.name == "scripted/other"
    path = runtime.conversation.log.path
    await runtime.aclose()
    again = stage.runtime(speaking(), window=WINDOW)
    await again.sessions.open(str(path))
    assert again.conversation.model.name == "scripted/other"


async def test_the_model_stays_also_where_the_earlier_session_was_gone_on_with(stage: Stage):
    runtime = await compacted(stage)
    runtime.set_model(ModelRef("scripted/other"))
    await collect(runtime.submit("And now?"))
    parent, child = (
        Path(runtime.conversation.log.header.parent_session or ""),
        runtime.conversation.log.header.id,
    )
    with SessionLog.open(parent) as log:
        talk(log, 1)
    events = list(await undo_compaction(runtime))
    assert runtime.conversation.log.path == parent
    assert child[:8] in only(events, Notice).text
    assert "And now?" not in said(runtime)
    path = runtime.conversation.log.path
    await runtime.aclose()
    again = stage.runtime(speaking(), window=WINDOW)
    await again.sessions.open(str(path))
    assert again.conversation.model.name == "scripted/other"


async def test_a_session_that_was_only_looked_into_since_is_not_taken_as_gone_on_with(
    stage: Stage,
):
    runtime = await compacted(stage)
    await collect(runtime.submit("And now?"))
    child = str(runtime.conversation.log.path)
    parent = runtime.conversation.log.header.parent_session or ""
    await runtime.sessions.open(parent)
    runtime.set_model(ModelRef("scripted/other"))
    runtime.sessions.rename("the first")
    await runtime.sessions.open(child)
    await undo_compaction(runtime)
    assert said(runtime)[-2:] == ["And now?", "Fine."]


async def test_the_earlier_session_is_found_where_it_was_moved_to(stage: Stage):
    runtime = await compacted(stage)
    parent = Path(runtime.conversation.log.header.parent_session or "")
    moved = stage.sessions / "elsewhere" / parent.name
    moved.parent.mkdir()
    shutil.move(parent, moved)
    await undo_compaction(runtime)
    assert runtime.conversation.log.path == moved


async def goes_on_from(stage: Stage, file: Path) -> AgentRuntime:
    """In a session that was compacted from `file`, which another agent wrote."""
    entries = read_foreign(file).entries
    header = Header(cwd=str(stage.workspace), parent_session=str(file))
    with SessionStore(stage.sessions).create(header) as log:
        first = CompactionEntry(summary=SUMMARY, first_kept_entry_id=entries[-1].id)
        log.append_many([first, entries[-1]])
    runtime = stage.runtime(speaking(), window=WINDOW)
    await runtime.sessions.open(str(log.path))
    await collect(runtime.submit("And now?"))
    return runtime


def written_by_another(file: Path, *last: dict[str, object]) -> Path:
    return claude_lines.write(
        file,
        claude_lines.said("u1", None, "Look at it."),
        claude_lines.said("u2", "u1", "And at the other."),
        claude_lines.replied("a1", "u2", claude_lines.text("I looked.")),
        claude_lines.replied("a2", "a1", claude_lines.text("Still there.")),
        *last,
    )


async def test_another_agents_session_is_gone_on_with_in_a_copy(stage: Stage):
    file = written_by_another(stage.folder / "run.jsonl")
    before = file.read_bytes()
    runtime = await goes_on_from(stage, file)
    assert said(runtime) == ["Still there.", "And now?", "Fine."]
    events = await undo_compaction(runtime)
    assert not of_kind(list(events), Notice)
    assert runtime.conversation.log.path
    assert runtime.conversation.log.path.is_relative_to(stage.sessions)
    assert said(runtime)[:3] == ["Look at it.", "And at the other.", "I looked."]
    assert said(runtime)[3:] == ["Still there.", "And now?", "Fine."]
    await collect(runtime.submit("Go on."))
    assert file.read_bytes() == before
    assert_sendable(runtime.conversation.log.path_entries())


async def test_a_call_that_was_still_open_does_not_pass_for_going_on(stage: Stage):
    open_call = claude_lines.replied("a3", "a2", claude_lines.call("c1"))
    runtime = await goes_on_from(stage, written_by_another(stage.folder / "run.jsonl", open_call))
    assert not of_kind(list(await undo_compaction(runtime)), Notice)
    assert said(runtime)[-2:] == ["And now?", "Fine."]
    assert_sendable(runtime.conversation.log.path_entries())


async def test_an_earlier_session_that_is_gone_is_named_and_nothing_changes(stage: Stage):
    runtime = await compacted(stage)
    before, log = lines_of(runtime), runtime.conversation.log
    Path(runtime.conversation.log.header.parent_session or "").unlink()
    with pytest.raises(SessionError, match=Path(log.header.parent_session or "").name):
        await undo_compaction(runtime)
    assert runtime.conversation.log is log
    assert lines_of(runtime) == before
    assert only(await collect(runtime.submit("Go on.")), TurnFinished).outcome == "done"


async def test_an_earlier_session_that_is_open_elsewhere_is_left_alone(stage: Stage):
    runtime = await compacted(stage)
    log = runtime.conversation.log
    with SessionLog.open(Path(log.header.parent_session or "")), pytest.raises(SessionError):
        await undo_compaction(runtime)
    assert runtime.conversation.log is log
    await undo_compaction(runtime)
    assert runtime.conversation.log is not log


async def test_an_earlier_session_that_was_damaged_is_opened_and_that_is_said(stage: Stage):
    runtime = await compacted(stage)
    parent = Path(runtime.conversation.log.header.parent_session or "")
    lines = parent.read_bytes().split(b"\n")
    lines[5] = b'{"type":"mess'
    parent.write_bytes(b"\n".join(lines))
    events = list(await undo_compaction(runtime))
    assert runtime.conversation.log.path == parent
    assert "line 6" in "".join(notice.text for notice in of_kind(events, Notice))
    assert_sendable(runtime.conversation.log.path_entries())


async def test_undoing_survives_a_restart(stage: Stage):
    runtime = stage.runtime(speaking(), window=WINDOW)
    talk(runtime.conversation.log, 13)
    await collect(runtime.submit("Well?"))
    whole = context_bytes(runtime)
    await shorten_in_place(runtime)
    assert context_bytes(runtime) != whole
    await undo_compaction(runtime)
    path = runtime.conversation.log.path
    await runtime.aclose()
    again = stage.runtime(speaking(), window=WINDOW)
    await again.sessions.open(str(path))
    assert context_bytes(again) == whole
    with pytest.raises(CompactionError, match="was not compacted"):
        await undo_compaction(again)


async def test_a_compaction_after_an_undoing_is_the_one_taken_back_next(stage: Stage):
    runtime = stage.runtime(speaking(), window=WINDOW)
    talk(runtime.conversation.log, 13)
    await collect(runtime.submit("Well?"))
    whole = context_bytes(runtime)
    for _ in range(3):
        await shorten_in_place(runtime)
        assert context_bytes(runtime) != whole
        await undo_compaction(runtime)
        assert context_bytes(runtime) == whole


@pytest.mark.parametrize("is_done_first", [True, False], ids=["done", "still at work"])
async def test_what_is_begun_while_the_earlier_session_is_read_stays_where_it_is(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, is_done_first: bool
):
    reading, answering = threading.Event(), asyncio.Event()
    replies = iter([Reply(text="Fine."), Reply(text="Sure.", gate=answering)])

    def answer(request: ModelRequest) -> Reply:
        return Reply(text=SUMMARY) if request.purpose == "summary" else next(replies)

    runtime = await compacted(stage, answer)
    log, parent_file = runtime.conversation.log, undo.parent_file

    def slowly(*args: Any) -> Path | None:
        assert reading.wait(timeout=PATIENCE_S)
        return parent_file(*args)

    monkeypatch.setattr(undo, "parent_file", slowly)
    undoing = asyncio.ensure_future(undo_compaction(runtime))
    await asyncio.sleep(0)
    turn = asyncio.ensure_future(collect(runtime.submit("Wait, one more thing.")))
    if is_done_first:
        answering.set()
        await turn
    else:
        await asyncio.sleep(0)
        assert runtime.is_busy
    reading.set()
    with pytest.raises(CompactionError, match="a turn has started"):
        await undoing
    answering.set()
    assert only(await turn, TurnFinished).outcome == "done"
    assert runtime.conversation.log is log
    await undo_compaction(runtime)
    assert said(runtime)[-2:] == ["Wait, one more thing.", "Sure."]


async def test_marks_made_after_a_compaction_are_there_once_it_is_undone(stage: Stage):
    runtime = await compacted(stage)
    newest = next(
        entry.id
        for entry in reversed(runtime.conversation.log.path_entries())
        if isinstance(entry, MessageEntry) and entry.message.text == "Fine."
    )
    await Branches(runtime).mark(newest, "drop")
    await undo_compaction(runtime)
    assert read_marks(runtime.conversation.log.path_entries()).by_id == {newest: "drop"}
