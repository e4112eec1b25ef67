"""Going back in a session, forking it, labels, and sessions that are only read."""

import dataclasses
from contextlib import aclosing
from pathlib import Path

import pytest

from agent_tui.agent.prompt.mentions import attach
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.errors import AgentTuiError, SessionError
from agent_tui.events import (
    AgentEvent,
    BranchSummaryProgress,
    ContextChanged,
    ModelChanged,
    Notice,
    SessionChanged,
    ToolFinished,
    WentBack,
)
from agent_tui.features.context.undo import undo_compaction
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.features.tree.branches import Branches
from agent_tui.messages import ImageContent, TextContent, Usage, UserMessage
from agent_tui.providers.base import ModelRef, ModelRequest, ProviderError
from agent_tui.sessions.entries import BranchSummaryEntry, MessageEntry
from agent_tui.sessions.lineage.joined import labels_of
from agent_tui.sessions.log import SessionLog
from tests.support.compaction_ways import SUMMARY, talk
from tests.support.context_checks import assert_sendable
from tests.support.runtime import Stage, collect, lines_of, of_kind, only

LONG = Reply(text="A long answer. " * 400)


def speaking(request: ModelRequest) -> Reply:
    if request.purpose == "summary":
        return Reply(text=SUMMARY, usage=Usage(input=500, output=50, total_tokens=550))
    used = Usage(input=900, output=90, total_tokens=1_000 * len(request.messages))
    return dataclasses.replace(LONG, usage=used)


async def spoken(stage: Stage, *texts: str) -> AgentRuntime:
    """A conversation in which `texts` were said and answered."""
    runtime = stage.runtime(speaking)
    for text in texts:
        await collect(runtime.submit(text))
    return runtime


def said(runtime: AgentRuntime) -> list[str]:
    return [
        entry.message.text[:14]
        for entry in runtime.conversation.log.path_entries()
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
    ]


def id_of(runtime: AgentRuntime, text: str) -> str:
    """The entry of the message that begins with `text`."""
    return next(
        entry.id
        for entry in runtime.conversation.log.entries
        if isinstance(entry, MessageEntry) and entry.message.text.startswith(text)
    )


def sent(runtime: AgentRuntime) -> list[str]:
    return [message.text for message in runtime.conversation.request().messages]


async def test_going_back_returns_the_message_and_writes_nothing(stage: Stage):
    runtime = await spoken(stage, "one", "two", "three")
    before, used = lines_of(runtime), runtime.conversation.usage.used
    events = list(await Branches(runtime).go_back(id_of(runtime, "two")))
    assert only(events, WentBack).text == "two"
    assert said(runtime) == ["one"]
    assert lines_of(runtime) == before
    assert only(events, ContextChanged).usage == runtime.conversation.usage
    assert runtime.conversation.usage.used < used


async def test_what_is_said_there_begins_a_branch_that_outlives_the_program(stage: Stage):
    runtime = await spoken(stage, "one", "two")
    before = lines_of(runtime)
    await Branches(runtime).go_back(id_of(runtime, "two"))
    await collect(runtime.submit("two, but otherwise"))
    assert lines_of(runtime).startswith(before)
    live, totals = sent(runtime), runtime.conversation.totals
    assert "two" not in live
    await runtime.aclose()
    again = stage.runtime(speaking)
    await again.sessions.open(str(runtime.conversation.log.path))
    assert said(again) == ["one", "two, but other"]
    assert sent(again) == live
    assert again.conversation.totals == totals, (
        "what was spent on the branch that was left was spent"
    )
    assert again.conversation.totals.output_tokens == 270


async def test_going_back_writes_nothing_before_the_program_ends_there(stage: Stage):
    runtime = await spoken(stage, "one", "two")
    path = runtime.conversation.log.path
    assert path is not None
    before = path.read_bytes()
    await Branches(runtime).go_back(id_of(runtime, "two"))
    assert path.read_bytes() == before
    await runtime.aclose()
    again = stage.runtime(speaking)
    events = await again.sessions.open(str(path))
    assert said(again) == ["one"]
    assert "/tree shows what came after it" in of_kind(list(events), Notice)[-1].text
    assert sum(isinstance(e, MessageEntry) for e in again.conversation.log.entries) == 4


async def test_the_conversation_can_begin_anew_in_the_same_file(stage: Stage):
    runtime = await spoken(stage, "one", "two")
    await Branches(runtime).go_back(id_of(runtime, "one"))
    await collect(runtime.submit("uno"))
    assert sent(runtime) == ["uno", LONG.text]
    await Branches(runtime).go_back(id_of(runtime, "two"))
    assert said(runtime) == ["one"], "the first beginning is there as ever"


async def test_going_back_to_a_reply_goes_on_after_it(stage: Stage):
    runtime = await spoken(stage, "one", "two")
    reply = runtime.conversation.log.path_entries()[1]
    events = list(await Branches(runtime).go_back(reply.id))
    assert only(events, WentBack) == WentBack(reply.id, "")
    await collect(runtime.submit("three"))
    assert said(runtime) == ["one", "three"]
    assert_sendable(runtime.conversation.log.path_entries())


async def test_going_back_to_the_present_place_says_so(stage: Stage):
    runtime = await spoken(stage, "one")
    assert runtime.conversation.log.leaf_id
    (notice,) = await Branches(runtime).go_back(runtime.conversation.log.leaf_id)
    assert isinstance(notice, Notice)
    assert "already there" in notice.text
    assert said(runtime) == ["one"]


async def test_going_back_before_a_compaction_brings_the_whole_conversation_back(stage: Stage):
    runtime = stage.runtime(speaking, window=60_000)
    talk(runtime.conversation.log, 13)
    await collect(runtime.submit("Well?"))
    before = sent(runtime)
    emitted: list[AgentEvent] = []
    assert await runtime._compactor().make_room("overflow", emitted.append)
    await collect(runtime.submit("And now?"))
    await Branches(runtime).go_back(id_of(runtime, "Well?"))
    assert sent(runtime) == before[:-2]


async def test_a_message_returns_without_what_its_mentions_attached(stage: Stage):
    (stage.workspace / "a.txt").write_text("content", encoding="utf-8")
    runtime = stage.runtime(speaking)
    text = attach("look at @a.txt", stage.workspace, 100_000).text
    assert "content" in text
    picture = ImageContent(data="aGk=", mime_type="image/png")
    await collect(runtime.submit(text, (picture,)))
    went = only(
        list(await Branches(runtime).go_back(runtime.conversation.log.path_entries()[0].id)),
        WentBack,
    )
    assert (went.text, went.image_count) == ("look at @a.txt", 1)


async def test_the_plan_is_that_of_the_place_gone_back_to(stage: Stage):
    def plan(word: str) -> Reply:
        return Reply(tool_calls=(call(word, "todo", todos=[{"text": word, "status": "pending"}]),))

    runtime = stage.runtime([plan("first"), Reply(text="ok"), plan("second"), Reply(text="ok")])
    await collect(runtime.submit("one"))
    await collect(runtime.submit("two"))
    assert [todo.text for todo in runtime.conversation.todos] == ["second"]
    await Branches(runtime).go_back(id_of(runtime, "two"))
    assert [todo.text for todo in runtime.conversation.todos] == ["first"]
    await Branches(runtime).go_back(id_of(runtime, "one"))
    assert runtime.conversation.todos == []


async def test_the_model_in_use_stays_and_is_named_on_the_new_branch(stage: Stage):
    runtime = await spoken(stage, "one", "two")
    runtime.set_model(ModelRef("scripted/other"))
    runtime.set_thinking("high")
    await collect(runtime.submit("three"))
    before = lines_of(runtime)
    await Branches(runtime).go_back(id_of(runtime, "two"))
    assert (runtime.conversation.model.name, runtime.conversation.thinking) == (
        "scripted/other",
        "high",
    )
    assert lines_of(runtime) == before
    await collect(runtime.submit("two again"))
    await runtime.aclose()
    again = stage.runtime(speaking)
    await again.sessions.open(str(runtime.conversation.log.path))
    assert (again.conversation.model.name, again.conversation.thinking) == (
        "scripted/other",
        "high",
    )


async def test_nothing_is_gone_back_to_while_something_runs(stage: Stage):
    runtime = await spoken(stage, "one")
    first = runtime.conversation.log.path_entries()[0].id
    async with aclosing(runtime.submit("two")) as events:
        await anext(events)
        for refused in (Branches(runtime).go_back(first), Branches(runtime).fork(first)):
            with pytest.raises(AgentTuiError, match=r"Something is running\. Stop it first"):
                await refused
    assert said(runtime) == ["one", "two"]


async def test_an_unknown_entry_is_refused(stage: Stage):
    runtime = await spoken(stage, "one")
    for refused in (Branches(runtime).go_back("nothere"), Branches(runtime).fork("nothere")):
        with pytest.raises(SessionError, match="no entry nothere"):
            await refused
    with pytest.raises(SessionError, match="no entry nothere"):
        await Branches(runtime).label("nothere", "x")


# A summary of what is left


async def test_a_summary_of_what_is_left_is_part_of_the_new_branch(stage: Stage):
    runtime = await spoken(stage, "one", "two: look closer at greet.py", "three")
    before, spent = lines_of(runtime), runtime.conversation.totals.output_tokens
    place = runtime.conversation.log.path_entries()[1].id
    events = await collect(Branches(runtime).go_back_with_summary(id_of(runtime, "two")))
    assert of_kind(events, BranchSummaryProgress)
    assert only(events, WentBack).text.startswith("two")
    written = runtime.conversation.log.path_entries()[-1]
    assert isinstance(written, BranchSummaryEntry)
    assert (written.from_id, written.parent_id) == (place, place)
    assert "## Goal" in written.summary
    assert lines_of(runtime).startswith(before)
    assert any("a branch of the conversation the user left" in text for text in sent(runtime))
    assert runtime.conversation.totals.output_tokens == spent + 50
    await runtime.aclose()
    again = stage.runtime(speaking)
    await again.sessions.open(str(runtime.conversation.log.path))
    assert sent(again) == sent(runtime)
    assert again.conversation.totals == runtime.conversation.totals


async def test_only_what_is_left_is_summarised(stage: Stage):
    provider = ScriptedProvider(speaking)
    runtime = stage.runtime(provider)
    for text in ("the kept beginning", "the part left behind"):
        await collect(runtime.submit(text))
    await collect(Branches(runtime).go_back_with_summary(id_of(runtime, "the part")))
    asked = next(r for r in provider.requests if r.purpose == "summary")
    text = "".join(message.text for message in asked.messages)
    assert "the part left behind" in text
    assert "the kept beginning" not in text


async def test_without_a_model_the_summary_is_made_from_the_record(stage: Stage):
    def failing(request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(error=ProviderError("auth", "No."))
        return dataclasses.replace(LONG)

    runtime = stage.runtime(failing)
    for text in ("one", "please mend the parser today"):
        await collect(runtime.submit(text))
    events = await collect(Branches(runtime).go_back_with_summary(id_of(runtime, "please")))
    written = runtime.conversation.log.path_entries()[-1]
    assert isinstance(written, BranchSummaryEntry)
    assert "please mend the parser today" in written.summary
    assert any("without a model" in notice.text for notice in of_kind(events, Notice))


async def test_where_nothing_was_answered_one_goes_back_without_a_summary(stage: Stage):
    runtime = await spoken(stage, "one")
    runtime.conversation.log.append(MessageEntry(message=UserMessage(content="never answered")))
    before = lines_of(runtime)
    events = await collect(Branches(runtime).go_back_with_summary(id_of(runtime, "never")))
    assert only(events, WentBack).text == "never answered"
    assert "without a summary" in only(events, Notice).text
    assert lines_of(runtime) == before


async def test_a_cancelled_summary_changes_nothing(stage: Stage):
    runtime = await spoken(stage, "one", "two")
    before = lines_of(runtime)
    seen: list[AgentEvent] = []
    async with aclosing(Branches(runtime).go_back_with_summary(id_of(runtime, "two"))) as events:
        async for event in events:
            seen.append(event)
            runtime.abort()
    assert not of_kind(seen, WentBack)
    assert "Nothing changed" in only(seen, Notice).text
    assert said(runtime) == ["one", "two"]
    assert lines_of(runtime) == before
    await collect(runtime.submit("three"))
    assert said(runtime) == ["one", "two", "three"]


async def test_a_summary_that_cannot_be_written_leaves_one_where_one_was(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    runtime = await spoken(stage, "one", "two")

    def full(_log: SessionLog, _entry: object) -> None:
        raise SessionError("The disk is full.")

    monkeypatch.setattr(SessionLog, "append", full)
    events = await collect(Branches(runtime).go_back_with_summary(id_of(runtime, "two")))
    monkeypatch.undo()
    assert only(events, Notice).text == "Could not go back: The disk is full."
    assert said(runtime) == ["one", "two"]


# Forks and labels


async def test_a_fork_goes_on_in_a_new_session_and_leaves_the_old_one(stage: Stage):
    runtime = await spoken(stage, "one", "two")
    runtime.sessions.rename("plan")
    old, before, seen = runtime.conversation.log, lines_of(runtime), sent(runtime)
    files = runtime.conversation.files
    events = list(await Branches(runtime).fork())
    assert only(events, SessionChanged).reason == "forked"
    assert "a copy of" in only(events, Notice).text
    assert runtime.conversation.log.path != old.path
    assert runtime.conversation.log.name == "plan"
    assert sent(runtime) == seen
    assert runtime.conversation.files is files, "files that were read need not be read again"
    await collect(runtime.submit("three"))
    assert old.path
    assert old.path.read_bytes() == before
    assert runtime.conversation.totals.output_tokens == 90, "what was copied is not paid for again"
    SessionLog.open(old.path).close()


async def test_a_fork_at_a_message_stands_before_it_and_returns_its_text(stage: Stage):
    runtime = await spoken(stage, "one", "two")
    runtime.set_model(ModelRef("scripted/other"))
    events = list(await Branches(runtime).fork(id_of(runtime, "two")))
    assert only(events, WentBack).text == "two"
    assert said(runtime) == ["one"]
    await runtime.aclose()
    again = stage.runtime(speaking)
    await again.sessions.open(str(runtime.conversation.log.path))
    assert again.conversation.model.name == "scripted/other"
    assert said(again) == ["one"]


async def test_what_was_said_before_a_fork_is_recalled_without_the_old_file(stage: Stage):
    script = ScriptedProvider([Reply(text="The word is violet-heron."), Reply(text="Fine.")])
    runtime = stage.runtime(script)
    await collect(runtime.submit("one"))
    await Branches(runtime).fork(id_of(runtime, "one"))
    for file in stage.sessions.rglob("*.jsonl"):
        if file != runtime.conversation.log.path:
            file.unlink()
    replies = iter([Reply(tool_calls=(call("r1", "recall", query="violet-heron"),)), LONG])
    script._answer = lambda _request: next(replies)
    events = await collect(runtime.submit("which word was it?"))
    result = only(events, ToolFinished).message
    assert "The word is violet-heron." in result.text


async def test_an_empty_session_cannot_be_forked(stage: Stage):
    runtime = stage.runtime([])
    with pytest.raises(SessionError, match="Nothing to fork"):
        await Branches(runtime).fork()


async def test_undoing_a_compaction_in_a_fork_leads_to_the_session_before_it(stage: Stage):
    runtime = stage.runtime(speaking, window=60_000)
    talk(runtime.conversation.log, 13)
    await collect(runtime.submit("Well?"))
    first = runtime.conversation.log.path
    whole = sent(runtime)
    await collect(runtime.compact())
    await Branches(runtime).fork()
    await Branches(runtime).fork()
    await collect(runtime.submit("And now?"))
    await undo_compaction(runtime)
    assert runtime.conversation.log.path == first
    assert sent(runtime) == [*whole, "And now?", LONG.text]


async def test_labels_are_set_changed_and_taken_off(stage: Stage):
    runtime = await spoken(stage, "one", "two")
    first = runtime.conversation.log.path_entries()[0].id
    before = sent(runtime)
    await Branches(runtime).label(first, "  start ")
    assert labels_of(runtime.conversation.log.entries) == {first: "start"}
    await Branches(runtime).label(first, "begin")
    assert labels_of(runtime.conversation.log.entries) == {first: "begin"}
    await Branches(runtime).label(first, "")
    assert labels_of(runtime.conversation.log.entries) == {}
    assert sent(runtime) == before


# Sessions that are read only, copied on opening, or opened elsewhere


async def test_a_read_only_session_shows_its_history_and_takes_nothing(stage: Stage):
    owner = await spoken(stage, "one", "two")
    await Branches(owner).label(id_of(owner, "one"), "start")
    reader = stage.runtime(speaking)
    ref = str(owner.conversation.log.path)
    with pytest.raises(SessionError, match="is open in another part of this program"):
        await reader.sessions.open(ref)
    before = lines_of(owner)
    events = list(await reader.sessions.open(ref, mode="read-only"))
    assert "/fork continues in a copy" in only(events, Notice).text
    assert said(reader) == ["one", "two"]
    entry = reader.conversation.log.path_entries()[0].id
    for activity in (
        reader.submit("three"),
        reader.compact(),
        reader.continue_turn(),
        reader.run_bash("touch made", in_context=True),
    ):
        with pytest.raises(SessionError, match=r"open read-only.*/fork"):
            await collect(activity)
    for change in (
        lambda: reader.sessions.rename("x"),
        lambda: reader.set_model(ModelRef("scripted/other")),
        lambda: reader.set_thinking("high"),
    ):
        with pytest.raises(SessionError, match=r"open read-only.*/fork"):
            change()
    for step in (
        Branches(reader).go_back(entry),
        Branches(reader).label(entry, "x"),
        undo_compaction(reader),
    ):
        with pytest.raises(SessionError, match=r"open read-only.*/fork"):
            await step
    assert lines_of(owner) == before
    assert not (stage.workspace / "made").exists()


async def test_a_read_only_session_can_be_forked(stage: Stage):
    owner = await spoken(stage, "one", "two")
    reader = stage.runtime(speaking)
    await reader.sessions.open(str(owner.conversation.log.path), mode="read-only")
    await Branches(reader).fork(id_of(reader, "two"))
    await collect(reader.submit("another two"))
    assert said(reader) == ["one", "another two"]
    assert said(owner) == ["one", "two"]
    await collect(owner.submit("three"))


async def test_a_session_can_be_forked_as_it_is_opened(stage: Stage):
    owner = await spoken(stage, "one")
    owner.sessions.rename("plan")
    before = lines_of(owner)
    other = stage.runtime(speaking)
    events = list(await other.sessions.open("plan", mode="fork"))
    assert only(events, SessionChanged).reason == "forked"
    await collect(other.submit("two"))
    assert said(other) == ["one", "two"]
    assert other.conversation.log.header.parent_session == str(owner.conversation.log.path)
    assert lines_of(owner) == before


def moved(stage: Stage, runtime: AgentRuntime, folder: Path) -> str:
    """`runtime`'s session as one that worked in `folder`."""
    assert runtime.conversation.log.path
    runtime.conversation.log.close()
    text = runtime.conversation.log.path.read_text(encoding="utf-8")
    runtime.conversation.log.path.write_text(
        text.replace(str(stage.workspace), str(folder)), encoding="utf-8"
    )
    return str(runtime.conversation.log.path)


async def test_a_session_without_its_folder_can_be_gone_on_with_or_forked_here(stage: Stage):
    ref = moved(stage, await spoken(stage, "one"), stage.folder / "gone")
    other = stage.runtime(speaking)
    look = await other.sessions.status(ref)
    assert (look.cwd, look.has_folder, look.owner) == (stage.folder / "gone", False, None)
    events = list(await other.sessions.open(ref))
    assert "is gone; working in" in only(events, Notice).text
    assert only(events, Notice).level == "warning"
    assert other.conversation.cwd == stage.workspace
    await other.sessions.start_new()
    events = list(await other.sessions.open(ref, mode="fork", here=True))
    assert other.conversation.log.header.cwd == str(stage.workspace)
    assert said(other) == ["one"]


async def test_here_means_the_present_folder_whatever_the_session_says(stage: Stage):
    elsewhere = stage.folder / "elsewhere"
    elsewhere.mkdir()
    ref = moved(stage, await spoken(stage, "one"), elsewhere)
    other = stage.runtime(speaking)
    await other.sessions.open(ref, here=True)
    assert other.conversation.cwd == stage.workspace
    await other.sessions.start_new()
    await other.sessions.open(ref)
    assert other.conversation.cwd == elsewhere


async def test_the_model_of_a_session_that_is_only_read_is_shown(stage: Stage):
    owner = await spoken(stage, "one")
    owner.set_model(ModelRef("scripted/other"))
    reader = stage.runtime(speaking)
    events = list(await reader.sessions.open(str(owner.conversation.log.path), mode="read-only"))
    assert only(events, ModelChanged).model == "scripted/other"


async def test_text_of_a_message_in_parts_returns_as_one(stage: Stage):
    runtime = await spoken(stage, "one")
    parts = (TextContent(text="first"), TextContent(text="second"))
    runtime.conversation.log.append(MessageEntry(message=UserMessage(content=parts)))
    went = only(list(await Branches(runtime).go_back(id_of(runtime, "first"))), WentBack)
    assert went.text == "first\nsecond"


async def test_a_message_is_left_out_kept_and_as_it_was(stage: Stage):
    runtime = await spoken(stage, "one", "two", "three")
    before = sent(runtime)
    used = runtime.conversation.usage.used
    await Branches(runtime).mark(id_of(runtime, "two"), "drop")
    assert [text for text in before if text != "two"] == sent(runtime)
    assert runtime.conversation.usage.used < used
    await Branches(runtime).mark(id_of(runtime, "two"), "pin")
    assert sent(runtime) == before
    await Branches(runtime).mark(id_of(runtime, "two"), None)
    assert sent(runtime) == before


async def test_only_messages_of_the_present_branch_are_marked(stage: Stage):
    runtime = await spoken(stage, "one", "two")
    left = id_of(runtime, "two")
    await Branches(runtime).go_back(left)
    lines = lines_of(runtime)
    with pytest.raises(SessionError, match="in the context now"):
        await Branches(runtime).mark(left, "drop")
    assert lines_of(runtime) == lines


async def test_what_is_kept_must_leave_a_compaction_its_room(stage: Stage):
    runtime = await spoken(stage, "one " * 30_000)
    lines = lines_of(runtime)
    with pytest.raises(SessionError, match="what is kept would take"):
        await Branches(runtime).mark(id_of(runtime, "one"), "pin")
    assert lines_of(runtime) == lines
    await Branches(runtime).mark(id_of(runtime, "one"), "drop")
