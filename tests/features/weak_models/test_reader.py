"""Bounds of the reader, and what it forgives."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.features.weak_models.forms import CutOffError, UnreadableError, read_json
from agent_tui.features.weak_models.provenance import SentTexts
from agent_tui.features.weak_models.reader import MAX_CALLS, read_calls
from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.tools.registry import default_toolbox
from tests.support.rows import each_row

TOOLS = default_toolbox().specs
NOTHING = SentTexts(())
CALL = '<tool_call>{"name": "read", "arguments": {"path": "a.py"}}</tool_call>'

plain_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(plain_json, st.booleans())
def test_json_is_read_as_json(value: object, is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    assert read_json(text, 0) == (json.loads(text), len(text))


ESCAPES = {"\\d": "\\d", "\\.": "\\.", "\\n": "\n", "\\u12": "\\u12", "\n": "\n", "\\u00e4": "ä"}


@given(st.lists(st.sampled_from(tuple(ESCAPES))), st.text())
def test_a_backslash_that_escapes_nothing_is_kept(pieces: list[str], after: str) -> None:
    text = f'{{"a": "{" ".join(pieces)}"}}'
    meant = " ".join(ESCAPES[piece] for piece in pieces)
    assert read_json(f"x{text}{after}", 1) == ({"a": meant}, len(text) + 1)


@given(plain_json.map(lambda value: json.dumps([value])), st.integers(1, 50))
def test_a_value_that_is_cut_is_never_completed(text: str, missing: int) -> None:
    with pytest.raises(CutOffError):
        read_json(text[: max(len(text) - missing, 0)], 0)


@each_row(
    "text",
    ["[" * 100 + "]" * 100, "{1: 2}", '{"a" 1}', '{"a": 1 "b": 2}', "{,}", "[1, ,2]", "nul", "-",
     "1" * 5_000, "1e999", "NaN", "Infinity", "f'x'", "a.b", "__import__('os')", "1 + 1 "],
)  # fmt: skip
def test_what_is_no_value_is_refused(text: str) -> None:
    try:
        _, end = read_json(text, 0)
    except UnreadableError:
        return
    assert end < len(text)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["path", "content"]), st.text(), min_size=1))
def test_any_arguments_arrive_as_they_were_meant(arguments: JsonObject) -> None:
    sendable = json.loads(json.dumps(arguments).encode("ascii"))
    text = (
        f"Go.\n<tool_call>\n{json.dumps({'name': 'write', 'arguments': arguments})}\n</tool_call>"
    )
    (call,) = read_calls(text, TOOLS, NOTHING).calls
    if all(str(value).isascii() for value in sendable.values()):
        assert call.arguments == sendable


def test_a_reply_has_so_many_calls_at_most() -> None:
    text = "\n".join(CALL.replace("a.py", f"{n}.py") for n in range(MAX_CALLS + 4))
    reply = read_calls(text, TOOLS, NOTHING)
    assert len(reply.calls) == MAX_CALLS
    assert reply.text.count("<tool_call>") == 4


def test_arguments_of_more_than_a_megabyte_are_left_as_text() -> None:
    text = CALL.replace("a.py", "a" * 1_000_001)
    assert read_calls(text, TOOLS, NOTHING).calls == ()


def test_no_tools_no_calls() -> None:
    assert read_calls(CALL, (), NOTHING).text == CALL


def test_a_tool_without_a_schema_can_be_called() -> None:
    tool = ToolSpec(name="now", description="", parameters={})
    (call,) = read_calls("<function=now></function>", [tool], NOTHING).calls
    assert call.arguments == {}


UNITS = (
    *(
        "{",
        "[",
        '{"',
        "['",
        '{"name": "',
        '\n{"name": "',
        "\n[{",
        "`",
        "``",
        "` ``",
        "\n```json\n{",
    ),
    *("\n```\n", "<tool_call>", "<tool_call>{", '<tool_call>{"name": "', "<function=read>", "<a>"),
    *("<file>", "</file>", "<think>", "</think>", "<a ", "<", "<|", "<|channel|>", "\n", " ", "\t"),
    *(
        "read(",
        "\nread(path='",
        "\nprint(",
        "\n[read(",
        "\n[",
        "\\",
        '"\\',
        "'",
        '"""',
        "\n```",
        "~~~\n",
    ),
    *(
        "x",
        "a.",
        "1:",
        "\n1:",
        "1\t",
        "[TOOL_CALLS]",
        "<|tool▁sep|>",
        "<|python_tag|>read",
        "Output:",
    ),
    *(
        "\nOutput: ",
        '{"a":',
        "[1,",
        "}",
        "\n}",
        '<tool_call>{"name":"ls"}</tool_call> ',
        CALL + "\n",
    ),
    *(
        "\n{'name': 'ls', 'arguments': {}}",
        "\nls()",
        "<function=read><parameter=path>a</parameter>",
    ),
    *("<tool_call>read\n<arg_key>path</arg_key><arg_value>", "functions.", "<|start|>a to=", ". {"),
)


@pytest.mark.thorough
@each_row("unit", UNITS)
def test_time_grows_with_the_length_only(unit: str) -> None:
    small, large = (unit * (size // len(unit)) for size in (20_000, 80_000))

    def seconds(text: str) -> float:
        begun = time.process_time()
        read_calls(text, TOOLS, NOTHING)
        return time.process_time() - begun

    # Four times the text: at most four times the work, with room for noise; quadratic is 16.
    assert min(seconds(large) for _ in range(2)) < 9 * seconds(small) + 0.25


def test_a_megabyte_that_was_sent_is_searched_in_time() -> None:
    sent = SentTexts(['{"name": "read", "path": "b.py"}\n' * 32_000])
    assert read_calls(CALL, TOOLS, sent).calls
    assert not sent.hold(read_calls(CALL, TOOLS, NOTHING).calls[0], CALL)
