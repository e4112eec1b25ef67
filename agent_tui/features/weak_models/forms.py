"""The two forms in which models write calls: JSON, and elements such as ``<function=read>``."""

import json
import math
import re
from dataclasses import dataclass
from typing import Never

from pydantic import JsonValue

from agent_tui.features.weak_models.offered import (
    ARGUMENT_KEYS,
    NAME_KEYS,
    WRAPPER_KEYS,
    OfferedTools,
    WrittenCall,
)
from agent_tui.messages import JsonObject, ToolSpec

TAG_OPENER = r"""
    <(?:tool_calls?|function_calls?|tools|minimax:tool_call)>
  | <(?:function|invoke)(?=[=\s])
  | <\|(?:tool_call|python_tag)\|>
  | \[TOOL_CALLS\]
"""
"""The start of a call between tags; for verbose, case-insensitive patterns."""

CALL_OBJECT = rf"""
    [\[{{] (?: \s{{0,80}} [\[{{] ){{0,3}} \s{{0,80}} ["']
    (?: (?:{"|".join(NAME_KEYS)})["'] \s{{0,80}} : \s{{0,80}} ["'][\w.:-]{{1,80}}["'] \s{{0,80}}
          , \s{{0,80}} ["'](?:{"|".join(ARGUMENT_KEYS)})["']
      | (?:{"|".join(WRAPPER_KEYS)})["'] \s{{0,80}} : \s{{0,80}} [\[{{]
      | type["'] \s{{0,80}} : \s{{0,80}} ["']function["']
    )
"""
"""The start of a JSON call without tags; for the same patterns."""

CALL_PLACE = r"(?:^[ ]{0,3}|(?<=[:.!?][ ])|(?<=[:.!?]\*\*[ ]))"
"""Where such JSON may begin: on a new line, or after a sentence or a label."""

END_OF_TURN = r"(?: <\|(?:call|end|im_end|eom_id|eot_id|endoftext)\|> | </s> | <end_of_turn> )"
"""End-of-turn tokens of models, if the server leaves them in the text."""

_OPENER = re.compile(TAG_OPENER, re.X | re.I)
_CALL_OBJECT = re.compile(CALL_OBJECT, re.X | re.I)
_CLOSERS = re.compile(
    rf"""
    (?: \s*
      (?: [}}\]]{{1,2}} (?=\s*</)                          # brackets counted wrongly
        | </(?:tool_calls?|function_calls?|tools|minimax:tool_call|function|invoke)>
        | <(?:tool_call|function)>(?=\s*\Z)               # the slash forgotten
        | <\|/tool_call\|> | {END_OF_TURN}
      )
    )*
    """,
    re.X | re.I,
)
_FUNCTION = re.compile(
    r"""<(?P<kind>function|invoke)(?:=|\s+name=)\s*["']?(?P<name>[\w.:-]{1,80})["']?\s*>""", re.I
)
_PARAMETER = re.compile(
    r"""<parameter(?:=|\s+name=)\s*["']?(?P<name>[\w.-]{1,80})["']?[^<>\n]{0,40}>""", re.I
)
_PARAMETER_END = re.compile(r"\n?</parameter>", re.I)
_FENCE = re.compile(r"```(?:json|tool_call)?[ \t]*\n")
_FENCE_END = re.compile(r"\s*```")
_NAMED = re.compile(r"(?P<name>[\w.:-]{1,80})\s*(?:\[ARGS\])?\s*(?=\{)")
"""The form of Mistral's newer models, which name the tool before its arguments."""
_SPACE = re.compile(r"\s*+")
_SEPARATOR = re.compile(r"[\s,;]*+")
_STRAY_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(?P<stray>\\)')
_MOST_OPENERS = 2
"""One element around all calls, and one around each."""
_MOST_LEVELS = 24
_MOST_CUT_CHARS = 6
"""The unfinished end of a word, a number or an escape."""


class UnreadableError(Exception):
    """The text does not have the expected form."""


class CutOffError(UnreadableError):
    """The text ends before the expected form is complete."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was read: the calls (none if a tool is not offered), and where they end."""

    calls: tuple[WrittenCall, ...]
    end: int


def read_json(text: str, at: int) -> tuple[JsonValue, int]:
    """The JSON value that begins at `at`, and its end.

    Raw line ends in strings are accepted, and backslashes that escape nothing, as in patterns. A
    cut value is not completed: a file written from half its content is worse than a call that is
    not run.

    Raises:
        UnreadableError: There is no value, or it is not finished (`CutOffError`).
    """
    try:
        return _decode(text, at)
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Invalid \\"):
            raise _unreadable(error) from error
    rest = text[at:]
    strays = [match.start() for match in _STRAY_ESCAPE.finditer(rest) if match["stray"]]
    try:
        value, end = _decode(_STRAY_ESCAPE.sub(_double_stray, rest), 0)
    except json.JSONDecodeError as error:
        raise _unreadable(error) from error
    return value, at + end - sum(stray + added < end for added, stray in enumerate(strays))


def skip_space(text: str, at: int) -> int:
    """The position of the next non-space character from `at`."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def skip_separator(text: str, at: int) -> int:
    """As `skip_space`, but also skips commas and semicolons."""
    match = _SEPARATOR.match(text, at)
    return match.end() if match else at


def begins_tagged(text: str, at: int) -> bool:
    """Whether a tag for calls begins at `at`."""
    return _OPENER.match(text, at) is not None


def looks_like_call(text: str, at: int) -> bool:
    """Whether the text at `at` was meant as a call, though it may be broken."""
    return begins_tagged(text, at) or _CALL_OBJECT.match(text, at) is not None


def read_tagged(text: str, at: int, tools: OfferedTools) -> Written | None:
    """The calls after the opening tag at `at`; None if the tag is only mentioned.

    Raises:
        UnreadableError: A call begins there that is unreadable or (`CutOffError`) unfinished. Its
            content may look like a call itself, so nothing after it counts.
    """
    for _ in range(_MOST_OPENERS):
        opener = _OPENER.match(text, at)
        if opener is None or _FUNCTION.match(text, at):
            break
        at = skip_space(text, opener.end())
    item = _read_item(text, at, tools)
    if item is None:
        return None
    calls = list(item.calls)
    while item.calls:
        at = skip_separator(text, item.end)
        if begins_tagged(text, at) or text[at : at + 1] not in ("{", "["):
            break
        following = _read_item(text, at, tools)
        if following is None or not following.calls:
            break
        item = following
        calls += following.calls
    return _past_closing_tags(text, tuple(calls), item.end)


def read_plain(text: str, at: int, tools: OfferedTools) -> Written | None:
    """The JSON call at `at`; None if there is no list or object.

    Raises:
        UnreadableError: See `read_json`.
    """
    if text[at : at + 1] not in ("{", "["):
        return None
    value, end = read_json(text, at)
    return _past_closing_tags(text, tools.calls(value) if looks_like_call(text, at) else (), end)


def read_only_calls(text: str, tools: OfferedTools) -> Written:
    """The calls, if `text` consists only of calls; else none.

    Raises:
        UnreadableError: Something that looks like a call is unreadable or unfinished.
    """
    calls: list[WrittenCall] = []
    at = skip_space(text, 0)
    while at < len(text):
        read = read_tagged if begins_tagged(text, at) else read_plain
        written = read(text, at, tools)
        if written is None or not written.calls:
            return Written((), at)
        calls += written.calls
        at = skip_separator(text, written.end)
    return Written(tuple(calls), at)


def _read_item(text: str, at: int, tools: OfferedTools) -> Written | None:
    """One call, or one list of them, after an opening tag."""
    if function := _FUNCTION.match(text, at):
        return _read_function(text, function, tools)
    if fence := _FENCE.match(text, at):
        inside = _read_item(text, skip_space(text, fence.end()), tools)
        closing = _FENCE_END.match(text, inside.end) if inside else None
        return Written(inside.calls, closing.end()) if inside and closing else inside
    if named := _NAMED.match(text, at):
        value, end = read_json(text, named.end())
        return Written(tools.calls({"name": named["name"], "arguments": value}), end)
    if text[at : at + 1] not in ("{", "["):
        return None
    value, end = read_json(text, at)
    return Written(tools.calls(value, is_tagged=True), end)


def _read_function(text: str, function: re.Match[str], tools: OfferedTools) -> Written | None:
    """Read ``<function=read>`` with a JSON object or ``<parameter=path>`` elements in it."""
    tool = tools.find_tool(function["name"])
    at = skip_space(text, function.end())
    if text.startswith("{", at):
        value, end = read_json(text, at)
        return Written(tools.calls({"name": function["name"], "arguments": value}), end)
    arguments: JsonObject = {}
    while parameter := _PARAMETER.match(text, at):
        end = _PARAMETER_END.search(text, parameter.end())
        if end is None:
            raise CutOffError
        written = text[parameter.end() : end.start()].removeprefix("\n")
        arguments[parameter["name"]] = _convert(tool, parameter["name"], written)
        at = skip_space(text, end.end())
    if text.startswith(f"</{function['kind']}>", at) or arguments:
        # If a text argument contained its own closing tag, something else is left here.
        if at < len(text) and not text.startswith(("</", "<|"), at):
            raise UnreadableError
        return Written(tools.call(function["name"], arguments), at)
    if at >= len(text):
        raise CutOffError
    return None


def _convert(tool: ToolSpec | None, name: str, written: str) -> JsonValue:
    """`written`, the bare text of an argument, converted to the schema's type.

    A number, boolean, list or object is parsed if the schema expects one, and stays text if that
    fails (the tool then says what it expected).
    """
    properties = tool.parameters.get("properties") if tool else None
    expected = properties.get(name) if isinstance(properties, dict) else None
    kind = expected.get("type") if isinstance(expected, dict) else None
    if kind in ("string", None):
        return written
    bare = written.strip()
    try:
        value, end = read_json(bare.casefold() if kind == "boolean" else bare, 0)
    except UnreadableError:
        return written
    return value if end == len(bare) else written


def _past_closing_tags(text: str, calls: tuple[WrittenCall, ...], at: int) -> Written:
    """The calls, with the end moved past closing tags and end-of-turn tokens."""
    match = _CLOSERS.match(text, at)
    return Written(calls, match.end() if match else at)


def _decode(text: str, at: int) -> tuple[JsonValue, int]:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError) as error:  # too deep, or a number too long
        raise UnreadableError from error
    if not _is_flat(value, _MOST_LEVELS):
        raise UnreadableError
    return value, end


def _is_flat(value: JsonValue, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_flat(item, levels - 1) for item in inner)


def _unreadable(error: json.JSONDecodeError) -> UnreadableError:
    left = error.doc[error.pos :].rstrip()
    is_cut = error.msg.startswith("Unterminated") or len(left) < _MOST_CUT_CHARS
    return CutOffError() if is_cut else UnreadableError()


def _double_stray(match: re.Match[str]) -> str:
    return "\\\\" if match["stray"] else match[0]


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(written)
    return number


def _refuse_constant(written: str) -> Never:
    raise ValueError(written)


_DECODER = json.JSONDecoder(strict=False, parse_float=_finite, parse_constant=_refuse_constant)
