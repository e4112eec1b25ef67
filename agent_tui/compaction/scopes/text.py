"""What happened in a scope as text for a model: one line for each thing."""

import json
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from agent_tui.compaction.shorten import one_line, shorten_middle
from agent_tui.compaction.transcript.text import TextLimits, escape_tags, fit_texts
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import BranchSummaryEntry, CustomMessageEntry, Entry, MessageEntry
from agent_tui.sessions.replay.scope_entries import ScopeExit, ScopeStep, mark_of
from agent_tui.tokens import TokenCounter

_MARKING_TOOL = "scope"


def scope_text(entries: Sequence[Entry], counter: TokenCounter, room_tokens: int) -> str:
    """`entries` one a line, escaped, in about `room_tokens`.

    A variable is ``name = json``, a call ``name(args) -> result``, what was said
    ``"prompt" -> "reply"``. Of scopes inside only their summaries are there, as variables.
    """

    def lines(limits: TextLimits) -> list[str]:
        return [escape_tags(line) for line in _lines(entries, limits)]

    return fit_texts(lines, counter, room_tokens, between="\n", kind="lines")


def _lines(entries: Sequence[Entry], limits: TextLimits) -> Iterator[str]:
    messages = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
    results = {m.tool_call_id: m for m in messages if isinstance(m, ToolResultMessage)}
    asked: list[str] = []
    for entry in entries:
        match mark_of(entry), entry:
            case (ScopeStep() as step, _):
                yield from _step_lines(step)
            case (ScopeExit(summary=summary, label=label), _) if summary:
                yield f"{_name(label)} = {_quoted(summary, limits.reply)}"
            case (None, MessageEntry(message=UserMessage(content=_) as message)):
                asked.append(message.text)
            case (None, CustomMessageEntry(text=text) | BranchSummaryEntry(summary=text)):
                asked.append(text)
            case (None, MessageEntry(message=AssistantMessage() as reply)):
                if reply.text.strip():
                    yield _exchange(asked, reply.text, limits)
                    asked = []
                calls = (call for call in reply.tool_calls if call.name != _MARKING_TOOL)
                yield from (_call_line(call, results.get(call.id), limits) for call in calls)
            case (None, MessageEntry(message=BashExecutionMessage() as run)):
                yield _run_line(run, limits)
            case _:
                pass
    if asked:
        yield _exchange(asked, "", limits)


def _step_lines(step: ScopeStep) -> Iterator[str]:
    yield f"step = {step.number}"
    if step.item is not None:
        yield f"item = {json.dumps(step.item, ensure_ascii=False)}"


def _exchange(asked: Sequence[str], reply: str, limits: TextLimits) -> str:
    prompt = "\n".join(asked)
    quoted = _quoted(reply, limits.reply)
    return f"{_quoted(prompt, limits.user)} -> {quoted}" if prompt else f"-> {quoted}"


def _call_line(call: ToolCall, result: ToolResultMessage | None, limits: TextLimits) -> str:
    given = ", ".join(
        f"{one_line(key, limits.argument)}={_value(value, limits.argument)}"
        for key, value in call.arguments.items()
    )
    return f"{call.name}({given}) -> {_outcome(result, limits)}"


def _outcome(result: ToolResultMessage | None, limits: TextLimits) -> str:
    if result is None:
        return "(no result)"
    failed = "error: " if result.is_error else ""
    return failed + _quoted(result.text, limits.result)


def _run_line(run: BashExecutionMessage, limits: TextLimits) -> str:
    command = _quoted(run.command, limits.argument)
    return f"the user ran({command}) -> {_quoted(run.output, limits.result)}"


def _value(value: JsonValue, max_chars: int) -> str:
    if isinstance(value, str):
        return _quoted(value, max_chars)
    return shorten_middle(json.dumps(value, ensure_ascii=False), max_chars)


def _quoted(text: str, max_chars: int) -> str:
    return json.dumps(shorten_middle(text.strip(), max_chars), ensure_ascii=False)


def _name(label: str) -> str:
    return one_line(label, 60)
