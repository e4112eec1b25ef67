"""The forms in which models write calls: JSON, Python, elements, and tokens of their own."""

import re
from dataclasses import dataclass

from pydantic import JsonValue

from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.providers.text_tools.offered import (
    CALL_KEYS,
    OfferedTools,
    WrittenCall,
    typed_argument,
)
from agent_tui.providers.text_tools.python_calls import begins_python_call, read_python_calls
from agent_tui.providers.text_tools.source import CutOffError, Source, UnreadableError

_SEPARATOR = r"<[|｜]tool[▁_]sep[|｜]>"
TAG_OPENER = rf"""
    <(?:tool_calls?|function_calls?|toolcalls?|functioncall|minimax:tool_call)>
  | <tools>                                             # Qwen2.5-Coder
  | <(?:function|invoke)(?=[=\s(])                      # Qwen3-Coder, Llama, MiniMax
  | <\|python_tag\|>                                    # Llama 3
  | <\|START_ACTION\|>                                  # Command-R
  | ^functools(?=\[)                                    # Phi-4-mini
  | \[TOOL_CALLS\]                                      # Mistral
  | <[|｜]tool[▁_]calls?(?:[▁_](?:section[▁_])?(?:begin|start))?[|｜]>
                                                        # DeepSeek, Kimi, Phi, MiniCPM, LFM
  | <\|(?:start|channel)\|>                             # GPT-OSS
  | {_SEPARATOR}
"""
"""What begins a call between tags; for verbose, case-insensitive patterns of many lines."""

CALL_OBJECT = rf"""[\[{{](?:\s{{0,80}}[\[{{]){{0,3}}\s{{0,80}}["'](?:{"|".join(CALL_KEYS)})["']"""
"""How JSON begins that may be a call."""

CALL_PLACE = r"(?:^[ ]{0,3}|(?<=[:.!?][ ])|(?<=[:.!?]\*\*[ ]))"
"""Where such JSON may begin: a line, or behind a sentence or a label."""

_CALL_OBJECT = re.compile(CALL_OBJECT)
_ARGUMENT = re.compile(r"""[^(\n]*\(\s*(?:\w+\s*=\s*)?["'\[{]""")
_OPENER = re.compile(TAG_OPENER, re.X | re.I | re.M)
_HARMONY = re.compile(
    r"""
    (?:<\|(?:start|channel)\|>[\w\s]{0,40}?){1,2} \s to=(?P<name>[\w.:-]{1,80}) [\w\s]{0,40}
    (?:<\|(?:channel|constrain)\|>[\w\s]{0,40}){0,2} <\|message\|> \s*+ (?=\{)
    """,
    re.X | re.I,
)
END_OF_TURN = r"""
    (?: <\|(?:call|end|im_end|eom_id|eot_id|end_of_text|endoftext)\|>
      | <[|｜]end▁of▁sentence[|｜]> | </s> | <end_of_turn> )
"""
"""What models end their turn with, where the server leaves it in the text."""

_CLOSERS = re.compile(
    rf"""
    (?: \s*
      (?: [}}\]]{{1,2}} (?=\s*<[/|｜])                      # brackets counted wrongly
        | </(?:tool_calls?|function_calls?|toolcalls?|functioncall|minimax:tool_call|tools
              |function|invoke)>
        | <(?:tool_call|function)>(?=\s*\Z)              # the slash forgotten
        | <[|｜]/?tool[▁_]calls?(?:[▁_]section)?(?:[▁_]end)[|｜]> | <\|/tool_calls?\|>
        | \[/TOOL_CALLS\] | <\|END_ACTION\|> | {END_OF_TURN}
      )
    )*
    """,
    re.X | re.I,
)
_FUNCTION = re.compile(
    r"""
    <(?P<kind>function|invoke)(?:=|\s+name=|\()\s*["']?(?P<name>[\w.:-]{1,80})["']?\s*
    (?: > | [,)>]{0,2}\s*(?=\{) )                        # some forget how the tag ends
    """,
    re.X | re.I,
)
_PARAMETER = re.compile(
    r"""<parameter(?:=|\s+name=)\s*["']?(?P<name>[\w.-]{1,80})["']?[^<>\n]{0,40}>""", re.I
)
_PARAMETER_END = re.compile(r"</parameter>", re.I)
_NAMED_JSON = re.compile(
    rf"""
    (?:function\s*{_SEPARATOR})? (?P<name>[\w.:-]{{1,80}})
    \s* (?:\[CALL_ID\]\s*\w{{1,40}})?
    \s* (?:{_SEPARATOR} | <\|tool_call_argument_begin\|> | \[ARGS\])? \s*
    (?P<fence>```(?:json)?\s*)? (?=\{{)
    """,
    re.X | re.I,
)
_NAMED_PAIRS = re.compile(r"(?P<name>[\w.:-]{1,80})\s*(?=<arg_key>|</tool_call>)", re.I)
_PAIR = re.compile(r"<arg_key>\s*([\w.-]{1,80})\s*</arg_key>\s*<arg_value>", re.I)
_PAIR_END = re.compile(r"</arg_value>", re.I)
_FENCE = re.compile(r"```(?:json|python|tool_call|tool_code)?[ \t]*\n")
_FENCE_END = re.compile(r"\s*```")
_MAY_BECOME_A_CALL = re.compile(r"[\w.:\s<|｜▁\[\]`=\"'-]*\Z")


@dataclass(frozen=True, slots=True)
class Written:
    """What was read: the calls, none where a tool is not offered, and where they end."""

    calls: tuple[WrittenCall, ...]
    end: int


def read_tagged(source: Source, at: int, tools: OfferedTools) -> Written | None:
    """What follows the opening tag at `at`; None where the tag is only mentioned.

    Raises:
        UnreadableError: a call is begun there that cannot be made out or (`CutOffError`) is not
            finished. What it holds may look like a call itself, so nothing after it counts.
    """
    if harmony := _HARMONY.match(source.text, at):
        arguments, end = source.value(harmony.end())
        return _closed(source, _named(tools, harmony["name"], arguments), end)
    begin = at
    while (opener := _OPENER.match(source.text, at)) and not _FUNCTION.match(source.text, at):
        at = source.skip_space(opener.end())
    item = _read_item(source, at, tools, is_tagged=begin != at)
    if item is None:
        if _MAY_BECOME_A_CALL.match(source.text[at : at + 200]) and len(source.text) - at < 200:
            raise CutOffError
        return None
    calls = list(item.calls)
    while item.calls:
        at = source.skip_space(item.end, commas=True)
        if _OPENER.match(source.text, at) or source.text[at : at + 1] not in ("{", "["):
            break
        following = _read_item(source, at, tools, is_tagged=True)
        if following is None or not following.calls:
            break
        item = following
        calls += following.calls
    return _closed(source, tuple(calls), item.end)


def begins_tagged(text: str, at: int) -> bool:
    """Whether a tag made for calls begins at `at`."""
    return _OPENER.match(text, at) is not None


def read_only_calls(source: Source, at: int, tools: OfferedTools) -> Written:
    """The calls from `at` to the end of the text, none where anything else is there too.

    Raises:
        UnreadableError: what looked like a call cannot be made out or (`CutOffError`) is not
            finished.
    """
    calls: list[WrittenCall] = []
    at = source.skip_space(at)
    while at < len(source.text):
        if _OPENER.match(source.text, at):
            written = read_tagged(source, at, tools)
        else:
            written = read_plain(source, at, tools)
        if written is None or not written.calls:
            return Written((), at)
        calls += written.calls
        at = source.skip_space(written.end, commas=True)
    return Written(tuple(calls), at)


def read_plain(source: Source, at: int, tools: OfferedTools) -> Written | None:
    """The call in JSON or Python at `at`; None where there is neither.

    Raises:
        UnreadableError: see `read_only_calls`.
    """
    if begins_python_call(source, at, tools):
        return _closed(source, *read_python_calls(source, at, tools))
    if source.text[at : at + 1] in ("{", "["):
        value, end = source.value(at)
        is_callish = _CALL_OBJECT.match(source.text, at) is not None
        return _closed(source, tools.calls(value) if is_callish else (), end)
    return None


def looks_like_call(source: Source, at: int, tools: OfferedTools) -> bool:
    """Whether what begins at `at` was meant as a call, though it may be broken."""
    if begins_python_call(source, at, tools):
        return _ARGUMENT.match(source.text, at) is not None
    return any(begin.match(source.text, at) for begin in (_CALL_OBJECT, _OPENER))


def _read_item(source: Source, at: int, tools: OfferedTools, *, is_tagged: bool) -> Written | None:
    """One call, or one list of them, after an opening tag."""
    if function := _FUNCTION.match(source.text, at):
        return _read_function(source, function, tools)
    if not is_tagged:
        return None
    if fence := _FENCE.match(source.text, at):
        inside = _read_item(source, source.skip_space(fence.end()), tools, is_tagged=True)
        return inside and Written(inside.calls, _after_fence(source, inside.end))
    if begins_python_call(source, at, tools):
        return Written(*read_python_calls(source, at, tools))
    if source.text[at : at + 1] in ("{", "["):
        value, end = source.value(at, closer="</")
        return Written(tools.calls(value, is_tagged=True), end)
    if named := _NAMED_JSON.match(source.text, at):
        arguments, end = source.value(named.end(), closer="</")
        if named["fence"]:
            end = _after_fence(source, end)
        return Written(_named(tools, named["name"], arguments), end)
    if named := _NAMED_PAIRS.match(source.text, at):
        return _read_pairs(source, named, tools)
    return None


def _read_function(source: Source, function: re.Match[str], tools: OfferedTools) -> Written | None:
    """``<function=read>`` with a JSON object or ``<parameter=path>`` elements in it."""
    tool = tools.named(function["name"])
    at = source.skip_space(function.end())
    if source.text.startswith("{", at):
        value, end = source.value(at, closer="</")
        return Written(_named(tools, function["name"], value), end)
    arguments: JsonObject = {}
    while parameter := _PARAMETER.match(source.text, at):
        at = _read_text_argument(source, parameter, _PARAMETER_END, tool, arguments)
    if source.text.startswith(f"</{function['kind']}>", at) or arguments:
        _expect_close(source, at)
        return Written(tools.call(function["name"], arguments), at)
    if at >= len(source.text):
        raise CutOffError
    return None


def _read_pairs(source: Source, named: re.Match[str], tools: OfferedTools) -> Written:
    """GLM's ``<arg_key>`` and ``<arg_value>``."""
    tool = tools.named(named["name"])
    at = named.end()
    arguments: JsonObject = {}
    while pair := _PAIR.match(source.text, at):
        at = _read_text_argument(source, pair, _PAIR_END, tool, arguments)
    _expect_close(source, at)
    return Written(tools.call(named["name"], arguments), at)


def _read_text_argument(
    source: Source,
    opening: re.Match[str],
    closing: re.Pattern[str],
    tool: ToolSpec | None,
    arguments: JsonObject,
) -> int:
    """Store the argument whose opening tag was matched; where the next one may begin."""
    end = source.find(closing, opening.end())
    if end is None:
        raise CutOffError
    written = source.text[opening.end() : end.start()].removeprefix("\n").removesuffix("\n")
    arguments[opening[1]] = typed_argument(tool, opening[1], written) if tool else written
    return source.skip_space(end.end())


def _expect_close(source: Source, at: int) -> None:
    """A text argument that held its own closing tag leaves something else here."""
    if at < len(source.text) and not source.text.startswith(("</", "<|", "<｜"), at):
        raise UnreadableError


def _named(tools: OfferedTools, name: str, arguments: JsonValue) -> tuple[WrittenCall, ...]:
    return tools.calls({"name": name, "arguments": arguments})


def _after_fence(source: Source, at: int) -> int:
    match = _FENCE_END.match(source.text, at)
    return match.end() if match else at


def _closed(source: Source, calls: tuple[WrittenCall, ...], at: int) -> Written:
    """The end moved past the closing tags and the model's end-of-turn tokens."""
    match = _CLOSERS.match(source.text, at)
    end = match.end() if match else at
    source.spend(end - at)
    return Written(calls, end)
