"""Calls told apart, deltas joined and cut, and lines that bear any text."""

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.litellm import protocol
from agent_tui.features.litellm.protocol import (
    MAX_LINE_BYTES,
    Cancel,
    Ended,
    Start,
    Warm,
    Warmed,
    command_line,
    event_line,
    parse_command,
    parse_event,
)
from agent_tui.messages import JsonObject, Usage
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.providers.faults.fault import Fault
from agent_tui.providers.silence import NO_LIMIT, SilenceLimit, SilenceLimits, Wait
from agent_tui.providers.transport.serving import MAX_PIECE_CHARS, Coalescer
from agent_tui.providers.wires import http
from agent_tui.providers.wires.base import WireRequest
from agent_tui.providers.wires.chat import CallSplitter
from agent_tui.providers.wires.http import encode_body
from agent_tui.providers.wires.parts import as_value
from agent_tui.text import repair_text


def test_one_call_in_pieces_keeps_its_index_and_is_named_once() -> None:
    calls = CallSplitter()
    pieces = [
        calls.piece(0, "a", "read", ""),
        calls.piece(0, "a", "read", '{"path"'),
        calls.piece(0, "", "", ': "x"}'),
    ]
    assert [piece.index for piece in pieces] == [0, 0, 0]
    assert "".join(piece.arguments_json for piece in pieces) == '{"path": "x"}'


def test_another_id_with_a_name_begins_another_call() -> None:
    calls = CallSplitter()
    calls.piece(0, "a", "read", "{}")
    assert calls.piece(0, "b", "read", "{}") == ToolCallChunk(1, "b", "read", "{}")


def test_without_ids_a_name_after_complete_arguments_begins_another_call() -> None:
    calls = CallSplitter()
    calls.piece(0, "", "read", '{"path": ')
    assert calls.piece(0, "", "read", '"a"}').index == 0
    assert calls.piece(0, "", "read", '{"path": "b"}').index == 1


def test_calls_interleaved_under_their_own_indexes_stay_apart() -> None:
    calls = CallSplitter()
    for index, call_id in ((3, "a"), (5, "b")):
        calls.piece(index, call_id, "read", "")
    assert calls.piece(3, "", "", "{").index == 0
    assert calls.piece(5, "", "", "{").index == 1


deltas = st.lists(
    st.one_of(
        st.builds(TextChunk, st.text(st.characters(codec=None), max_size=5)),
        st.builds(ThinkingChunk, st.text(max_size=5)),
        st.builds(ToolCallChunk, st.integers(0, 1), st.just(""), st.just(""), st.text(max_size=5)),
    ),
    max_size=20,
)


@given(chunks=deltas, flush_after=st.integers(1, 5))
def test_joining_changes_no_text_but_for_repairs(chunks: list[Chunk], flush_after: int) -> None:
    coalescer = Coalescer()
    sent: list[Chunk] = []
    for number, chunk in enumerate(chunks):
        coalescer.add(chunk)
        if number % flush_after == 0:
            sent += coalescer.take()
    sent += coalescer.take(is_end=True)
    assert coalescer.is_empty
    assert _text(sent) == _text(sent).encode("utf-8", "replace").decode()
    for kind in (ThinkingChunk, ToolCallChunk):
        assert _joined(sent, kind) == _joined(chunks, kind)
    runs = re.sub("[\ud800-\udfff\ufffd]", "", _text(chunks))
    assert re.sub("[\U00010000-\U0010ffff\ufffd]", "", _text(sent)) == re.sub(
        "[\U00010000-\U0010ffff]", "", runs
    )


def test_neighbours_of_one_kind_leave_as_one() -> None:
    coalescer = Coalescer()
    for word in ("a", "b", "c"):
        coalescer.add(TextChunk(word))
    coalescer.add(FinishChunk("stop"))
    assert coalescer.take() == (TextChunk("abc"), FinishChunk("stop"))


def test_the_newest_usage_follows_the_text_that_it_came_between() -> None:
    coalescer = Coalescer()
    for chunk in (
        TextChunk("a\ud83d"),
        UsageChunk(Usage(output=1)),
        TextChunk("\ude00b"),
        UsageChunk(Usage(output=2)),
        FinishChunk("stop"),
    ):
        coalescer.add(chunk)
    assert coalescer.take() == (
        TextChunk("a\U0001f600b"),
        UsageChunk(Usage(output=2)),
        FinishChunk("stop"),
    )
    assert coalescer.is_empty


def test_half_a_character_waits_for_its_other_half() -> None:
    coalescer = Coalescer()
    coalescer.add(TextChunk("a\ud83d"))
    assert coalescer.take() == (TextChunk("a"),)
    coalescer.add(TextChunk("\ude00"))
    assert coalescer.take() == (TextChunk("😀"),)


def test_half_a_character_at_the_end_is_replaced() -> None:
    coalescer = Coalescer()
    coalescer.add(TextChunk("a\ud83d"))
    assert coalescer.take(is_end=True) == (TextChunk("a\ufffd"),)


def test_a_signature_closes_its_block_and_a_redacted_one_stays_alone() -> None:
    coalescer = Coalescer()
    for chunk in (
        ThinkingChunk("a"),
        ThinkingChunk("", "sig"),
        ThinkingChunk("", "data", redacted=True),
        ThinkingChunk("b"),
    ):
        coalescer.add(chunk)
    assert coalescer.take() == (
        ThinkingChunk("a", "sig"),
        ThinkingChunk("", "data", redacted=True),
        ThinkingChunk("b"),
    )


def test_a_huge_delta_leaves_in_lines_the_reader_takes() -> None:
    coalescer = Coalescer()
    coalescer.add(ToolCallChunk(0, "a", "write", "😀" * 100_000))
    pieces = coalescer.take()
    assert len(pieces) == -(-100_000 // MAX_PIECE_CHARS)
    assert all(len(event_line(1, piece)) < MAX_LINE_BYTES for piece in pieces)
    first, second = pieces[:2]
    assert isinstance(first, ToolCallChunk)
    assert isinstance(second, ToolCallChunk)
    assert (first.id, second.id) == ("a", "")


@given(text=st.text(), number=st.integers(0, 10**6))
def test_events_and_commands_survive_the_pipe(text: str, number: int) -> None:
    events = (
        TextChunk(text),
        ThinkingChunk(text, text, redacted=True),
        ToolCallChunk(number, text, text, text),
        UsageChunk(Usage(input=number, is_estimate=True)),
        FinishChunk("toolUse"),
        Fault(text, text, number, {"retry-after": text}, [text], [text]),
        Ended(),
        Warmed(text),
        Wait(1.5, float(number)),
    )
    for event in events:
        line = event_line(number, event)
        assert line.isascii()
        assert line.count(b"\n") == 1
        assert parse_event(line) == (number, event)
    start = Start(
        number,
        WireRequest(text, [{"role": "user", "content": text}], base_url=text),
        SilenceLimits(NO_LIMIT, SilenceLimit(1.5, None)),
    )
    for command in (start, Warm(), Cancel(number)):
        assert parse_command(command_line(command)) == command


def test_a_long_conversation_is_never_encoded_in_one_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pieces: list[int] = []

    def noting_dumps(value: object, **options: Any) -> str:
        text = json.dumps(value, **options)
        pieces.append(len(text))
        return text

    for module in (protocol, http):
        monkeypatch.setattr(module, "json", SimpleNamespace(dumps=noting_dumps))
    messages: list[JsonObject] = [
        {"role": "user", "content": f"{n} {'x' * 1_000}"} for n in range(50)
    ]
    start = Start(1, WireRequest("m", messages), SilenceLimits.without_bytes())
    line = command_line(start)
    body: JsonObject = {"model": "m", "messages": as_value(messages), "tools": []}
    content = encode_body(body)
    monkeypatch.undo()
    assert parse_command(line) == start
    assert json.loads(content) == body
    assert max(pieces) < 2_000


@pytest.mark.parametrize("line", [b"hello\n", b"{}\n", b'{"id": 1, "kind": "no"}\n', b"[1]\n"])
def test_what_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_event(line)


def _text(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def _joined(chunks: list[Chunk], kind: type[ThinkingChunk] | type[ToolCallChunk]) -> list[str]:
    """All letters of one kind of chunk, those of a call with its index."""
    letters: list[str] = []
    for chunk in chunks:
        match chunk:
            case ThinkingChunk(text) if kind is ThinkingChunk:
                letters += repair_text(text)
            case ToolCallChunk(index, _, _, text) if kind is ToolCallChunk:
                letters += [f"{index}{letter}" for letter in repair_text(text)]
            case _:
                pass
    return letters
