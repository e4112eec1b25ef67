"""Getting back what was said, by its id."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.errors import ToolError
from agent_tui.features.recall.originals import ROW_CHARS, rows_of
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    JsonObject,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Header,
    MessageEntry,
)
from agent_tui.sessions.lineage.chain import PastSessions, SessionChain
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.shorten import OutputLimits
from tests.support.recalling import body, hits, look_in, recall, small_talk
from tests.support.talk import Talk
from tests.support.tool_calls import call_tool, intent_of
from tests.support.trajectories import trajectory

PICTURE = ImageContent(data="aGk=", mime_type="image/png")


@pytest.fixture
def talk() -> Talk:
    return small_talk()


@pytest.mark.parametrize(
    "written",
    [
        "e0000004",
        "[recall e0000004]",
        "recall e0000004",
        " [Recall: e0000004]. ",
        "`e0000004`",
        "[e0000004]",
    ],
)
async def test_an_id_is_understood_however_it_is_written(context, talk, written: str) -> None:
    look_in(context, talk.path)
    assert body(await recall(context, id=written)) == "1 failed\nValueError: '1,250.00'"


@pytest.mark.parametrize(
    ("number", "label", "text"),
    [
        (
            0,
            "user message",
            "Find out why the March file crashes. Never touch data/.",
        ),
        (1, "reply calling read tally.py", "[call read]\npath: tally.py"),
        (2, "result of read tally.py", "import csv\n\ndef total(rows):\n    return 1"),
        (4, "error of bash pytest -q", "1 failed\nValueError: '1,250.00'"),
        (
            5,
            "reply calling edit tally.py",
            "[call edit]\npath: tally.py\nedits[0].old:\nreturn 1\n# end\nedits[0].new: return 2",
        ),
        (7, "user's ! git status", "$ git status\nnothing to commit"),
        (8, "reply", "It was the comma."),
    ],
)
async def test_an_original_comes_as_it_was_written_with_what_it_was(
    context, talk, number: int, label: str, text: str
) -> None:
    look_in(context, talk.path)
    output = await call_tool(context, "recall", {"id": f"e000000{number}"})
    lines = text.count("\n") + 1
    size = "1 line" if lines == 1 else f"{lines} lines"
    assert output.for_model == f"[e000000{number} · {label} · 2023-11-14 22:13 · {size}]\n{text}"
    assert not output.for_person.truncated


async def test_the_person_is_told_what_was_recalled(context, talk) -> None:
    look_in(context, talk.path)
    output = await call_tool(context, "recall", {"id": "e0000002"})
    assert output.for_person.summary == "4 lines of read tally.py"
    output = await call_tool(context, "recall", {"query": "comma"})
    assert output.for_person.summary == "1 message"


def test_a_call_is_shown_with_what_it_looks_for_and_needs_no_approval(context) -> None:
    by_id = intent_of(context, "recall", {"id": "[recall a1b2c3d4]"})
    assert (by_id.title, by_id.access) == ("recall a1b2c3d4", "none")
    by_words = intent_of(context, "recall", {"query": 'two\n words "here"'})
    assert (by_words.title, by_words.access) == ('recall "two words "here""', "none")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "Give one of them: id for one original"),
        ({"id": "[recall]"}, "Give one of them"),
        ({"id": "a1", "query": "x"}, "Give only one of them: id for one"),
        ({"query": '""'}, "contains no word to search for"),
        ({"query": "\u0301"}, "contains no word to search for"),
    ],
)
def test_one_of_id_and_query_is_asked_for(context, arguments: JsonObject, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        intent_of(context, "recall", arguments)


async def test_what_the_model_sees_now_is_not_what_it_gets_back(context, talk) -> None:
    edit = ContextEditEntry(target_id="e0000002", replacement="(gone) [recall e0000002]", tier=2)
    look_in(context, (*talk.path, edit))
    assert "def total(rows)" in await recall(context, id="[recall e0000002]")


async def test_thinking_is_neither_given_nor_searched(context) -> None:
    thought = ThinkingContent(thinking="secret plan")
    message = AssistantMessage(content=(thought, TextContent(text="Open words.")))
    look_in(context, [MessageEntry(id="a1b2c3d4", message=message)])
    assert body(await recall(context, id="a1b2c3d4")) == "Open words."
    assert "Nothing found" in await recall(context, query="secret")


async def test_what_the_person_kept_from_the_model_stays_so(context) -> None:
    run = BashExecutionMessage(command="env", output="TOKEN=1", exclude_from_context=True)
    look_in(context, [MessageEntry(id="a1b2c3d4", message=run)])
    with pytest.raises(ToolError, match="No message a1b2c3d4 among 0 messages"):
        await recall(context, id="a1b2c3d4")
    assert "Nothing found in 0 messages" in await recall(context, query="TOKEN")


async def test_summaries_and_notes_can_be_recalled(context) -> None:
    talk = Talk()
    talk.user("one")
    talk.compaction("## Goal\nShip it.", "e0000000")
    branch = BranchSummaryEntry(id="b0000001", summary="Tried tabs.")
    note = CustomMessageEntry(id="b0000002", custom_type="review", content="Looks good.")
    look_in(context, (*talk.path, branch, note))
    assert " · compaction summary · " in await recall(context, id="e0000001")
    assert "branch · " in (text := await recall(context, id="b0000001"))
    assert body(text) == "Tried tabs."
    assert " · note (review) · " in await recall(context, id="b0000002")


async def test_the_call_of_a_result_is_the_newest_before_it_with_its_id(context) -> None:
    talk = Talk()
    for path in ("old.py", "new.py", "later.py"):
        call = ToolCall(id="call_1", name="read", arguments={"path": path})
        talk.reply("", call)
        talk.result(call, f"text of {path}")
    look_in(context, talk.path)
    assert "result of read new.py" in await recall(context, id="e0000003")
    assert "result of read new.py" in await recall(context, query='"of new.py"')


async def test_the_beginning_of_an_id_will_do_where_only_one_has_it(context, talk) -> None:
    note = CustomMessageEntry(id="a1b2c3d4", content="A note.")
    look_in(context, (*talk.path, note))
    assert body(await recall(context, id="A1B")) == "A note."
    with pytest.raises(ToolError, match=r"e00 matches 9 ids: e0000008 \(reply\), .*Give more"):
        await recall(context, id="e00")


async def test_an_unknown_id_is_answered_with_the_nearest_and_what_was_searched(
    context, talk
) -> None:
    look_in(context, talk.path)
    with pytest.raises(ToolError) as caught:
        await recall(context, id="e0000f02")
    assert "No message e0000f02 among 9 messages in 1 session. Nearest: e0000002" in str(
        caught.value
    )
    with pytest.raises(ToolError, match="Search with query instead"):
        await recall(context, id="something else")


async def test_a_session_before_is_looked_into_and_one_that_is_gone_is_named(context) -> None:
    store = SessionStore(context.cwd / "sessions", "none")
    with store.create(Header()) as parent:
        (old,) = parent.append_many([MessageEntry(message=UserMessage(content="Use tabs."))])
    talk = Talk()
    talk.user("And now?")
    look_in(context, talk.path, parent=str(parent.path))
    assert body(await recall(context, id=old.id)) == "Use tabs."
    assert "1 message matches (2 messages in 2 sessions)" in await recall(context, query="tabs")
    look_in(context, talk.path, parent="/far/gone.jsonl")
    found = await recall(context, query="tabs")
    assert "1 messages in 1 session; the previous session, gone.jsonl, cannot be read" in found


async def test_where_nothing_was_said_there_is_nothing_to_find(context) -> None:
    assert "Nothing found in 0 messages in 0 sessions" in await recall(context, query="x")


async def test_a_long_original_comes_in_parts_that_join_to_all_of_it(context) -> None:
    lines = [f"line {number} of a log" for number in range(300)]
    lines[100] = "long " * 700
    talk = Talk()
    talk.tool("bash", {"command": "seq"}, "\n".join(lines))
    look_in(context, talk.path)
    context.limits = OutputLimits(2_000)
    parts: list[str] = []
    offset = 0
    while True:
        output = await call_tool(context, "recall", {"id": "e0000001", "offset": offset})
        assert len(output.for_model.encode()) <= 2_000
        text = body(output.for_model)
        if not output.for_person.truncated:
            parts.append(text)
            break
        text, _, note = text.rpartition("\n[")
        assert "id=e0000001 offset=" in note
        offset = int(note.partition("offset=")[2].partition(" ")[0])
        parts.append(text)
    assert "".join("".join(parts).split()) == "".join("\n".join(lines).split())
    assert len(parts) > 4


async def test_the_caps_hold_for_lines_too(context) -> None:
    talk = Talk()
    talk.user("\n" * 10_000)
    look_in(context, talk.path)
    text = await recall(context, id="e0000000")
    assert text.endswith("[lines 1-2000 of 10001; id=e0000000 offset=2001 for more]")


@pytest.mark.parametrize("max_bytes", [300, 700, 5_000])
async def test_the_smallest_windows_get_a_piece(context, max_bytes: int) -> None:
    talk = Talk()
    talk.user("字 words " * 5_000)
    look_in(context, talk.path)
    context.limits = OutputLimits(max_bytes)
    assert "字 words" in (text := await recall(context, id="e0000000"))
    assert len(text.encode()) <= max_bytes
    assert hits(text := await recall(context, query="words")) == ["e0000000"]
    assert len(text.encode()) <= max_bytes


async def test_an_offset_past_the_end_is_an_error_that_says_where_it_is(context, talk) -> None:
    look_in(context, talk.path)
    with pytest.raises(ToolError, match="e0000002 has 4 lines; offset 5 is past its end"):
        await recall(context, id="e0000002", offset=5)
    assert body(await recall(context, id="e0000002", offset=4)) == "    return 1"


async def test_images_come_back_when_they_are_few(context) -> None:
    picture = TextContent(text="Image a.png")
    result = ToolResultMessage(tool_call_id="c", tool_name="read", content=(picture, PICTURE))
    many = UserMessage(content=(PICTURE,) * 5)
    entries = [MessageEntry(id="aaaaaaaa", message=result), MessageEntry(id="b", message=many)]
    look_in(context, entries)
    output = await call_tool(context, "recall", {"id": "aaaaaaaa"})
    assert output.images == (PICTURE,)
    assert body(output.for_model) == "Image a.png\n[image, image/png]"
    output = await call_tool(context, "recall", {"id": "b"})
    assert output.images == (PICTURE,) * 3
    assert output.for_model.endswith("[first 3 of 5 images]")
    assert not (await call_tool(context, "recall", {"id": "b", "offset": 2})).images


@pytest.mark.parametrize("is_there", [True, False])
async def test_the_file_with_the_whole_output_is_named_while_it_exists(
    context, tmp_path: Path, is_there: bool
) -> None:
    kept = tmp_path / "output.txt"
    if is_there:
        kept.write_text("all of it")
    details = ToolDetails(full_output_path=str(kept)).model_dump(mode="json", by_alias=True)
    result = ToolResultMessage(
        tool_call_id="c", tool_name="bash", content=(TextContent(text="cut"),), details=details
    )
    run = BashExecutionMessage(command="x", output="cut", full_output_path=str(kept))
    look_in(
        context, [MessageEntry(id="aaaaaaaa", message=result), MessageEntry(id="b", message=run)]
    )
    for entry_id in ("aaaaaaaa", "b"):
        text = await recall(context, id=entry_id)
        assert text.endswith(f"[whole output: {kept}; use read]") is is_there


@given(st.text(alphabet=st.sampled_from("ab\n 字\u2028\r"), max_size=40), st.integers(0, 3))
def test_rows_join_to_the_text_and_none_is_long(piece: str, times: int) -> None:
    text = piece * (1 + times * 40)
    rows = rows_of(text)
    assert "".join(rows) == text
    assert all(len(row) <= ROW_CHARS + 1 and row for row in rows[:-1])
    if all(len(line) <= ROW_CHARS for line in text.split("\n")):
        assert len(rows) == text.count("\n") + 1


async def test_every_message_of_a_real_session_comes_back_as_it_is(context) -> None:
    log = SessionLog.open(trajectory("pi/before-compaction.jsonl"), read_only=True)
    context.history = SessionChain(log, PastSessions(SessionStore(context.cwd, "none")))
    context.limits = OutputLimits(10**7)
    for item in log.entries[::7]:
        if isinstance(item, MessageEntry) and not isinstance(item.message, AssistantMessage):
            text = body(await recall(context, id=item.id))
            assert item.message.text in text
