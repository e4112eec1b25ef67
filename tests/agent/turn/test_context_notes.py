"""The model is told how full its context is, in the newest tool result and without a new prefix."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.policy import note_due
from agent_tui.config import CompactionSettings
from agent_tui.events import ToolFinished
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import ContextNote, Message, ToolResultMessage
from tests.support.runtime import Stage, collect, of_kind, summary_or

WINDOW = 40_000
NOTE = re.compile(r"^\[context: (\d+)k of 40k tokens used; compaction at (\d+)k\]$", re.M)


def fill(stage: Stage, count: int) -> list[Reply]:
    """A script that reads `count` files, each some 2,400 tokens; the last reply calls nothing."""
    for number in range(count):
        text = "".join(f"line {n} of file {number} is some text\n" for n in range(200))
        (stage.workspace / f"{number}.txt").write_text(text)
    reads = [
        Reply(tool_calls=(call(f"c{number}", "read", path=f"{number}.txt"),))
        for number in range(count)
    ]
    return [*reads, Reply(text="done")]


def text_of(message: Message) -> str:
    return message.text


def notes_in(messages: tuple[Message, ...]) -> list[str]:
    return [m[0] for message in messages for m in NOTE.finditer(text_of(message))]


async def test_each_tenth_from_the_sixth_on_is_told_once_and_no_prefix_changes(stage: Stage):
    runtime = stage.runtime(fill(stage, 12), window=WINDOW)
    await collect(runtime.submit("read them"))
    requests = stage.model.requests
    for earlier, later in pairwise(requests):
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert later.system == earlier.system
    found = [NOTE.fullmatch(note) for note in notes_in(requests[-1].messages)]
    fills = [int(match[1]) * 10 // int(match[2]) for match in found if match is not None]
    assert fills == [6, 7, 8, 9]
    assert notes_in(requests[5].messages) == []


async def test_a_note_is_told_beside_the_newest_result_alone(stage: Stage):
    runtime = stage.runtime(fill(stage, 10), window=WINDOW)
    await collect(runtime.submit("read them"))
    told = next(r for r in stage.model.requests if notes_in(r.messages))
    last = told.messages[-1]
    assert isinstance(last, ToolResultMessage)
    assert NOTE.fullmatch(last.text.split("\n")[-1])
    assert notes_in(told.messages[:-1]) == []


async def test_of_several_results_the_last_is_noted_and_counts_them_all(stage: Stage):
    singles = fill(stage, 9)
    together = Reply(tool_calls=tuple(reply.tool_calls[0] for reply in singles[5:-1]))
    runtime = stage.runtime([*singles[:5], together, Reply(text="done")], window=WINDOW)
    await collect(runtime.submit("read them"))
    assert notes_in(stage.model.requests[-2].messages) == []
    results = [m for m in stage.model.requests[-1].messages if isinstance(m, ToolResultMessage)]
    assert [bool(NOTE.search(result.text)) for result in results] == [False] * 8 + [True]


async def test_a_note_is_no_output_for_the_person_and_not_kept_by_recall(stage: Stage):
    script = fill(stage, 10)
    script.insert(-1, Reply(tool_calls=(call("r", "recall", query="compaction at"),)))
    runtime = stage.runtime(script, window=WINDOW)
    events = await collect(runtime.submit("read them"))
    shown = [event.message.text for event in of_kind(events, ToolFinished)]
    assert not any(NOTE.search(text) for text in shown)
    assert notes_in(stage.model.requests[-1].messages)


async def test_after_a_compaction_no_old_note_is_told(stage: Stage):
    script = iter(fill(stage, 11))
    runtime = stage.runtime(
        lambda request: (
            summary_or(Reply(text="x"))(request) if request.purpose == "summary" else next(script)
        ),
        window=WINDOW,
    )
    await collect(runtime.submit("read them"))
    assert notes_in(runtime.conversation.request().messages)
    await collect(runtime.compact(""))
    request = runtime.conversation.request()
    assert "context:" not in str([text_of(message) for message in request.messages])


async def test_a_resumed_session_sends_the_same_notes_and_repeats_none(stage: Stage):
    runtime = stage.runtime(fill(stage, 9), window=WINDOW)
    await collect(runtime.submit("read them"))
    sent, path = runtime.conversation.request().messages, runtime.conversation.log.path
    assert notes_in(sent)
    await runtime.aclose()
    again = stage.runtime([Reply(tool_calls=(call("z", "ls"),)), Reply(text="done")], window=WINDOW)
    await again.sessions.open(str(path))
    await collect(again.submit("look once more"))
    assert stage.model.requests[0].messages[: len(sent)] == sent
    assert notes_in(stage.model.requests[-1].messages) == notes_in(sent)


async def test_where_nothing_compacts_the_end_of_the_room_is_told(stage: Stage):
    runtime = stage.runtime(
        fill(stage, 12), window=WINDOW, compaction=CompactionSettings(auto=False)
    )
    await collect(runtime.submit("read them"))
    text = "\n".join(text_of(message) for message in stage.model.requests[-1].messages)
    assert re.search(r"^\[context: 2\dk of 40k tokens used; no room beyond 39k\]$", text, re.M)


@given(st.integers(1, 100_000), st.lists(st.integers(0, 120_000), max_size=40))
def test_no_tenth_is_told_twice_and_none_below_six(limit: int, fills: list[int]):
    told: list[ContextNote] = []
    for used in fills:
        note = ContextNote(used=used, window=200_000, limit=limit)
        if note_due(note, told[-1] if told else None):
            told.append(note)
    tenths = [note.tenth for note in told]
    assert tenths == sorted(set(tenths))
    assert set(tenths) <= {6, 7, 8, 9}
