"""Filtering a reply while it comes."""

from collections.abc import AsyncIterator
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_tui.features.weak_models.adapter import CallFilter, filter_calls
from agent_tui.features.weak_models.provenance import SentTexts
from agent_tui.features.weak_models.reader import read_calls
from agent_tui.messages import ToolSpec, Usage
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ProviderError,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.tools.registry import default_toolbox

TOOLS = default_toolbox().specs
NOTHING = SentTexts(())
CALL = '<tool_call>\n{"name": "read", "arguments": {"path": "a.py"}}\n</tool_call>'
BITS = (
    *(CALL, '{"name": "ls", "arguments": {}}', '{"name": "x"}', "<tool_call>", "</tool_call>"),
    *("```json\n", "```\n", "```", "\n```python\n", "`", "~~~\n", "<file>", "</file>", "<think>"),
    *("</think>", "read(path='a')", "print(read(path='b'))", "[ls()]", "[", "{", "}", '"', "'"),
    *("\n", "\n\n", " ", "    ", "Sure. ", "Output: ", "For example: ", "[link](x)", "1\t", "> "),
    *("<function=ls>", "</function>", "<parameter=path>.</parameter>", "[TOOL_CALLS]", "<|"),
    *(
        "<|python_tag|>",
        "\\",
        "functions.",
        "tool_",
        "call>",
        "İ",
        "\x1c",
        "\r",
        "<b>",
        "</b>",
        ":",
    ),
    *(
        "<|channel|>commentary to=functions.ls <|message|>",
        "{}",
        "<|call|>",
        "\t",
        "<",
        "{\n",
        '{"na',
    ),
    *("<tools>", "</tools>", "functools[", "**", "<function(ls)", "<function=ls", "<function>"),
    *("<|START_ACTION|>", "<|END_ACTION|>", "[CALL_ID]a1[ARGS]", "<end_of_turn>", "</s>"),
    *('"name": "ls", ', '"arguments": {"path": "."}', "```tool_code\n", "ls", "(", ")", "print("),
)
texts = st.one_of(st.text(), st.lists(st.sampled_from(BITS), max_size=14).map("".join))


def filtered(pieces: list[str]) -> tuple[str, list[tuple[str, object]]]:
    """What is shown, and the calls, when the text comes in `pieces`."""
    held = CallFilter(TOOLS, NOTHING)
    shown = "".join(held.feed(piece) for piece in pieces)
    rest = held.finish()
    return shown + rest.text, [(call.name, call.arguments) for call in rest.calls]


def cut(text: str, cuts: list[int]) -> list[str]:
    """`text` cut at `cuts`."""
    ends = sorted({min(c, len(text)) for c in cuts} | {len(text)})
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@settings(max_examples=400, deadline=None)
@given(texts, st.lists(st.integers(0, 120), max_size=30))
@example("Hi.\n" + CALL + "\nDone", [5, 6, 7, 20])
def test_any_split_reads_as_the_whole_does(text: str, cuts: list[int]) -> None:
    whole = read_calls(text, TOOLS, NOTHING)
    calls = [(call.name, call.arguments) for call in whole.calls]
    assert filtered(cut(text, cuts)) == (whole.text, calls)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(BITS), max_size=40).map("".join))
def test_letter_by_letter_reads_as_the_whole_does(text: str) -> None:
    whole = read_calls(text, TOOLS, NOTHING)
    calls = [(call.name, call.arguments) for call in whole.calls]
    assert filtered(list(text)) == (whole.text, calls)


@settings(deadline=None)
@given(texts, st.integers(0, 200))
def test_giving_up_loses_and_doubles_nothing(text: str, at: int) -> None:
    held = CallFilter(TOOLS, NOTHING)
    shown = "".join(map(held.feed, text[:at])) + held.give_up() + held.feed(text[at:])
    assert shown + held.finish().text == text


def test_prose_is_shown_at_once() -> None:
    held = CallFilter(TOOLS, NOTHING)
    shown = [held.feed(word) for word in ("Hello ", "there, ", "see [this] ", "and a < b ", "so.")]
    assert shown == ["Hello", " there,", " see [this]", " and a < b", " so."]


def test_code_in_a_fence_is_shown_while_it_comes() -> None:
    held = CallFilter(TOOLS, NOTHING)
    assert held.feed("Here:\n```python\nimport os\n") == "Here:\n```python\nimport os"
    assert held.feed("print(os.name)\n") == "\nprint(os.name)"


def test_what_may_become_a_call_is_held() -> None:
    held = CallFilter(TOOLS, NOTHING)
    assert held.feed("Reading.\n\n<tool_") == "Reading."
    assert held.feed('call>{"name": "read", "arguments": {"path": "a"}}') == ""
    assert held.finish().text == ""


def test_json_that_is_no_call_is_shown_as_soon_as_that_is_known() -> None:
    held = CallFilter(TOOLS, NOTHING)
    assert held.feed('```json\n{"name": "my-package", "') == ""
    assert held.feed('version": "1"}\n') == '```json\n{"name": "my-package", "version": "1"}'


async def chunks_of(*chunks: Chunk | ProviderError) -> AsyncIterator[Chunk]:
    for chunk in chunks:
        if isinstance(chunk, ProviderError):
            raise chunk
        yield chunk


async def passed(
    *chunks: Chunk | ProviderError, tools: tuple[ToolSpec, ...] = TOOLS
) -> list[Chunk]:
    return [chunk async for chunk in filter_calls(chunks_of(*chunks), tools, NOTHING)]


async def test_a_written_call_becomes_a_call_with_an_id_of_its_own() -> None:
    usage = UsageChunk(Usage())
    shown, counted, first, second, end = await passed(
        TextChunk("Reading. "),
        TextChunk(CALL + CALL.replace("a.py", "b.py")),
        usage,
        FinishChunk("stop"),
    )
    assert (shown, counted, end) == (TextChunk("Reading."), usage, FinishChunk("toolUse"))
    assert isinstance(first, ToolCallChunk)
    assert isinstance(second, ToolCallChunk)
    assert (first.index, first.name, first.arguments_json) == (0, "read", '{"path": "a.py"}')
    assert second.arguments_json == '{"path": "b.py"}'
    assert first.id != second.id
    assert first.id.startswith("call_")


async def test_a_call_the_server_reports_leaves_the_text_alone() -> None:
    call = ToolCallChunk(0, "c1", "ls", "{}")
    got = await passed(TextChunk(CALL), call, TextChunk(CALL), FinishChunk("toolUse"))
    assert got == [TextChunk(CALL), call, TextChunk(CALL), FinishChunk("toolUse")]


async def test_thinking_passes_as_it_is() -> None:
    thought = ThinkingChunk(CALL)
    assert await passed(thought, FinishChunk("stop")) == [thought, FinishChunk("stop")]


async def test_a_complete_call_runs_though_the_babble_after_it_was_cut_off() -> None:
    got = await passed(TextChunk(CALL + "\nOutput: 1\n2\n3"), FinishChunk("length"))
    assert [type(chunk) for chunk in got] == [ToolCallChunk, FinishChunk]
    assert got[-1] == FinishChunk("toolUse")


@pytest.mark.parametrize(("reason", "end"), [("length", "length"), ("stop", "toolUse")])
async def test_a_call_that_is_broken_stays_text_and_is_reported(
    reason: Literal["stop", "length"], end: Literal["toolUse", "length"]
) -> None:
    begun = '<tool_call>{"name": "write", "arguments": {"path": "a", "content": "x'
    text, call, finish = await passed(TextChunk(begun), FinishChunk(reason))
    assert (text, finish) == (TextChunk(begun), FinishChunk(end))
    assert isinstance(call, ToolCallChunk)
    assert (call.name, call.arguments_json) == ("write", begun.removeprefix("<tool_call>"))


async def test_a_filtered_reply_has_no_calls() -> None:
    got = await passed(TextChunk(CALL), FinishChunk("contentFilter"))
    assert got == [TextChunk(CALL), FinishChunk("contentFilter")]


async def test_what_was_held_is_shown_before_an_error() -> None:
    error = ProviderError("interrupted", "gone")
    stream = filter_calls(chunks_of(TextChunk(CALL), error), TOOLS, NOTHING)
    assert await anext(stream) == TextChunk(CALL)
    with pytest.raises(ProviderError):
        await anext(stream)


async def test_what_was_held_is_shown_when_the_stream_just_ends() -> None:
    assert await passed(TextChunk(CALL)) == [TextChunk(CALL)]
