"""Calls written as Python: ``read(path="a.py")``, also in ``print(...)`` or in a list."""

import re

from agent_tui.messages import JsonObject
from agent_tui.providers.text_tools.offered import OfferedTools, WrittenCall, argument_names
from agent_tui.providers.text_tools.source import CutOffError, Source, UnreadableError

_CALLEE = re.compile(r"(?P<name>[A-Za-z_][\w.]*+)\(")
_FIRST_CALLEE = re.compile(r"(?:\[\s{0,80})?(?:print\s?\(\s{0,80})?(?P<name>[A-Za-z_][\w.]*+)\(")
_PRINT = re.compile(r"print\s?\(\s{0,80}")
_KEYWORD = re.compile(r"(?P<name>[A-Za-z_]\w*+)\s*=(?!=)\s*")
_METHOD = ".call"
"""Llama writes its built-in tools as ``tool.call(...)``."""


def begins_python_call(source: Source, at: int, tools: OfferedTools) -> bool:
    """Whether a call of an offered tool begins at `at`."""
    match = _FIRST_CALLEE.match(source.text, at)
    return match is not None and tools.named(_tool_name(match["name"])) is not None


def read_python_calls(
    source: Source, at: int, tools: OfferedTools
) -> tuple[tuple[WrittenCall, ...], int]:
    """The call, or the list of calls, at `at`, and its end. Arguments are literals only.

    Raises:
        UnreadableError: it holds anything else, or is not finished (`CutOffError`).
    """
    if not source.text.startswith("[", at):
        call, at = _printed_call(source, at, tools)
        return (call,), at
    calls: list[WrittenCall] = []
    while True:
        call, at = _printed_call(source, source.skip_space(at + 1), tools)
        calls.append(call)
        at = source.skip_space(at)
        if source.text.startswith("]", at):
            return tuple(calls), at + 1
        _expect(source, ",", at)


def _printed_call(source: Source, at: int, tools: OfferedTools) -> tuple[WrittenCall, int]:
    printed = _PRINT.match(source.text, at)
    if printed is None:
        return _call(source, at, tools)
    call, at = _call(source, printed.end(), tools)
    at = source.skip_space(at)
    _expect(source, ")", at)
    return call, at + 1


def _call(source: Source, at: int, tools: OfferedTools) -> tuple[WrittenCall, int]:
    callee = _CALLEE.match(source.text, at)
    tool = tools.named(_tool_name(callee["name"])) if callee else None
    if callee is None or tool is None:
        raise UnreadableError
    arguments: JsonObject = {}
    names = argument_names(tool)
    at = source.skip_space(callee.end())
    while not source.text.startswith(")", at):
        if keyword := _KEYWORD.match(source.text, at):
            name, at = keyword["name"], keyword.end()
        elif len(arguments) < len(names):
            name = names[len(arguments)]
        else:
            raise UnreadableError
        if name in arguments:
            raise UnreadableError
        arguments[name], at = source.value(at)
        at = source.skip_space(at)
        if not source.text.startswith(")", at):
            _expect(source, ",", at)
            at = source.skip_space(at + 1)
    return WrittenCall(tool.name, arguments), at + 1


def _tool_name(callee: str) -> str:
    return callee.removesuffix(_METHOD)


def _expect(source: Source, character: str, at: int) -> None:
    if at >= len(source.text):
        raise CutOffError
    if source.text[at] != character:
        raise UnreadableError
