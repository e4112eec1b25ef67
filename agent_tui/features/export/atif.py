"""A session as a trajectory in ATIF, the Agent Trajectory Interchange Format of Harbor.

Each reply of a model is one step of source ``agent`` with its calls, their results and the usage of
the request. The user's messages are steps of source ``user``; compactions and notes are steps
of source ``system``. ``extra`` has everything for which ATIF has no field.
"""

import json
from collections.abc import Iterator, Sequence
from typing import assert_never

from pydantic import JsonValue

from agent_tui._version import __version__
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    JsonObject,
    Message,
    ToolResultMessage,
    Usage,
    UserContent,
    UserMessage,
    images_in,
    with_texts,
)
from agent_tui.safe_text import safe_json
from agent_tui.secret_text import mask_secrets
from agent_tui.sessions.entries import CompactionEntry, Entry, Header, MessageEntry, milliseconds
from agent_tui.sessions.export.document import blocks_of, image_address, is_image_address
from agent_tui.sessions.export.formats import ExportFormat
from agent_tui.sessions.replay.notes import own_usage, was_copied

_VERSION = "ATIF-v1.7"
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_USUAL_ENDINGS = ("stop", "toolUse")


def to_atif(header: Header, path: Sequence[Entry], secrets: Sequence[str] = ()) -> str:
    """The conversation on `path` as the JSON of one trajectory.

    Args:
        header: The session's header.
        path: Entries from the root to the leaf.
        secrets: Values to mask, as is everything that looks like one.
    """
    masked = with_texts(
        _trajectory(header, path),
        lambda text: text if is_image_address(text) else mask_secrets(text, secrets),
    )
    return safe_json(json.dumps(masked, ensure_ascii=False, indent=2)) + "\n"


def _trajectory(header: Header, path: Sequence[Entry]) -> JsonObject:
    steps = _Steps(header)
    for entry in path:
        steps.add(entry)
    if not steps.all:
        steps.say({"source": "system", "message": "This session is empty."})
    agent = {"name": "agent-tui", "version": __version__}
    if name := _model_name(header.provider, header.model_id):
        agent["model_name"] = name
    usages = [usage for entry in path if (usage := own_usage(header, entry)) is not None]
    extra: JsonObject = {"cwd": header.cwd}
    if header.parent_session:
        extra["parent_session"] = header.parent_session
    return {
        "schema_version": _VERSION,
        "session_id": header.id,
        "agent": {**agent},
        "steps": [*steps.all],
        "final_metrics": _totals(usages, len(steps.all)),
        "extra": extra,
    }


class _Steps:
    """The steps of a trajectory, in the order of their entries."""

    def __init__(self, header: Header) -> None:
        self.all: list[JsonObject] = []
        self._header = header
        self._results: dict[str, list[JsonValue]] = {}  # by call: those of the step that made it

    def add(self, entry: Entry) -> None:
        """Add `entry` as steps, or as a result in the step of its call."""
        common: JsonObject = {}
        if milliseconds(entry.timestamp):
            common["timestamp"] = entry.timestamp
        if was_copied(self._header, entry):
            common["is_copied_context"] = True
        if isinstance(entry, MessageEntry):
            self._add_message(entry, entry.message, common)
            return
        for block in blocks_of(entry):
            text = "\n\n".join(part for part in (block.title, block.text) if part)
            step: JsonObject = {"source": "system", "message": text}
            if isinstance(entry, CompactionEntry):
                step["extra"] = _compaction(entry)
            self.say({**step, **common})

    def say(self, step: JsonObject) -> None:
        """Append `step` with the next number."""
        self.all.append({"step_id": len(self.all) + 1, **step})

    def _add_message(self, entry: Entry, message: Message, common: JsonObject) -> None:
        match message:
            case UserMessage():
                self.say({"source": "user", "message": _content(message.content), **common})
            case AssistantMessage():
                usage = own_usage(self._header, entry)
                self.say({**_reply(message, usage), **common})
                self._expect_results(message)
            case ToolResultMessage():
                self._add_result(message, common)
            case BashExecutionMessage():
                printed: JsonObject = {"results": [{"content": message.output}]}
                text = f"$ {message.command}"
                self.say({"source": "user", "message": text, "observation": printed, **common})
            case _:
                assert_never(message)

    def _expect_results(self, reply: AssistantMessage) -> None:
        results: list[JsonValue] = []
        for call in reply.tool_calls:
            self._results[call.id] = results
        if reply.tool_calls:
            self.all[-1]["observation"] = {"results": results}

    def _add_result(self, result: ToolResultMessage, common: JsonObject) -> None:
        told: JsonObject = {"content": _content(result.content)}
        if result.is_error:
            told["extra"] = {"is_error": True}
        results = self._results.get(result.tool_call_id)
        if results is not None:
            results.append({"source_call_id": result.tool_call_id, **told})
            return
        text = f"A result of {result.tool_name}; its call is not in this session"
        observation: JsonObject = {"results": [told]}
        self.say({"source": "system", "message": text, "observation": observation, **common})


def _reply(message: AssistantMessage, usage: Usage | None) -> JsonObject:
    """The step of one reply; `usage` is None if another session counts it."""
    step: JsonObject = {"source": "agent", "message": message.text, "llm_call_count": 1}
    if name := _model_name(message.provider, message.model):
        step["model_name"] = name
    if message.thinking:
        step["reasoning_content"] = message.thinking
    if message.tool_calls:
        step["tool_calls"] = [
            {"tool_call_id": call.id, "function_name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    if usage is not None and usage.context_tokens:
        step["metrics"] = _metrics(usage)
    ending: JsonObject = {}
    if message.stop_reason not in _USUAL_ENDINGS:
        ending["stop_reason"] = message.stop_reason
    if message.error_message:
        ending["error"] = message.error_message
    return {**step, "extra": ending} if ending else step


def _model_name(provider: str, model: str) -> str:
    return f"{provider}/{model}" if provider and model else model


def _content(content: str | Sequence[UserContent]) -> JsonValue:
    """The text itself; with images, the parts in order."""
    if isinstance(content, str):
        return content
    if not images_in(content):
        return "\n".join(part.text for part in content if part.type == "text")
    return [*_parts(content)]


def _parts(content: Sequence[UserContent]) -> Iterator[JsonObject]:
    for part in content:
        if part.type == "text":
            yield {"type": "text", "text": part.text}
        elif (address := image_address(part, _IMAGES)) is not None:
            source: JsonObject = {"media_type": part.mime_type, "path": address}
            yield {"type": "image", "source": source}
        else:
            yield {"type": "text", "text": f"[image, {part.mime_type}]"}


def _metrics(usage: Usage) -> JsonObject:
    metrics: JsonObject = {
        "prompt_tokens": _prompt_tokens(usage),
        "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read,
    }
    if usage.cost.total:  # 0 if the price is unknown
        metrics["cost_usd"] = usage.cost.total
    extra: JsonObject = {}
    if usage.cache_write:
        extra["cache_write_tokens"] = usage.cache_write
    if usage.is_estimate:
        extra["is_estimate"] = True
    return {**metrics, "extra": extra} if extra else metrics


def _totals(usages: Sequence[Usage], steps: int) -> JsonObject:
    """The total usage of all requests, including those of summaries and helpers."""
    totals: JsonObject = {
        "total_prompt_tokens": sum(map(_prompt_tokens, usages)),
        "total_completion_tokens": sum(usage.output for usage in usages),
        "total_cached_tokens": sum(usage.cache_read for usage in usages),
        "total_steps": steps,
    }
    if cost := sum(usage.cost.total for usage in usages):
        totals["total_cost_usd"] = cost
    return totals


def _prompt_tokens(usage: Usage) -> int:
    return usage.input + usage.cache_read + usage.cache_write


def _compaction(entry: CompactionEntry) -> JsonObject:
    told: JsonObject = {
        "kind": "compaction",
        "reason": entry.reason,
        "tokens_before": entry.tokens_before,
        "tokens_after": entry.tokens_after,
    }
    if entry.usage is not None:
        told["usage"] = _metrics(entry.usage)
    return told


ATIF = ExportFormat(
    "atif",
    ".json",
    "a Harbor trajectory",
    lambda session: to_atif(session.log.header, session.log.path_entries(), session.secrets),
)
