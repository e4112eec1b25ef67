"""Build a reply from a provider's chunks, even if it continues after a cut."""

import json
import uuid
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue

from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    JsonObject,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    NoticeChunk,
    RestartChunk,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.sessions.entries import MessageEntry
from agent_tui.text import repair_json


@dataclass(frozen=True, slots=True)
class CompleteReply:
    """A finished reply. `broken_calls` maps call ids to what is wrong with their arguments."""

    message: AssistantMessage
    broken_calls: dict[str, str]
    was_filtered: bool = False


@dataclass(slots=True)
class _CallDraft:
    id: str
    name: str
    json_pieces: list[str] = field(default_factory=list[str])
    chars: int = 0
    problem: str = ""
    signature: str = ""


@dataclass(slots=True)
class _TextDraft:
    pieces: list[str] = field(default_factory=list[str])
    signature: str | None = None


@dataclass(slots=True)
class _ThinkingDraft:
    pieces: list[str] = field(default_factory=list[str])
    signature: str | None = None
    is_redacted: bool = False


class ReplyBuilder:
    """Collects chunks in the order in which they arrive.

    Call ids are made unique within the reply and against `taken_ids`, because some servers
    repeat them; arguments that are not a JSON object are stored as ``{}`` and reported.
    """

    def __init__(
        self, provider: str, model: str, taken_ids: AbstractSet[str] = frozenset()
    ) -> None:
        self._provider = provider
        self._model = model
        self._taken_ids = taken_ids
        self._begin()

    def _begin(self) -> None:
        self._ids = set(self._taken_ids)
        self._drafts: list[_TextDraft | _ThinkingDraft | _CallDraft] = []
        self._calls_by_index: dict[int, _CallDraft] = {}
        self._usage = Usage(is_estimate=True)
        self._finish: FinishChunk | None = None

    @property
    def has_prose(self) -> bool:
        """Whether text or thinking arrived: the user saw it, so an interruption keeps it."""
        return any(
            "".join(draft.pieces).strip()
            for draft in self._drafts
            if not isinstance(draft, _CallDraft)
        )

    @property
    def text(self) -> str:
        """The visible text so far."""
        return "".join("".join(d.pieces) for d in self._drafts if isinstance(d, _TextDraft))

    @property
    def is_finished(self) -> bool:
        """Whether the provider said why it stopped."""
        return self._finish is not None

    def add(self, chunk: Chunk) -> None:
        """Take in one chunk."""
        last = self._drafts[-1] if self._drafts else None
        match chunk:
            case TextChunk(text, signature):
                if not isinstance(last, _TextDraft) or last.signature is not None:
                    self._drafts.append(last := _TextDraft())
                last.pieces.append(text)
                last.signature = signature
            case ThinkingChunk(text, signature, redacted):
                if not isinstance(last, _ThinkingDraft) or last.signature is not None or redacted:
                    self._drafts.append(last := _ThinkingDraft(is_redacted=redacted))
                last.pieces.append(text)
                last.signature = signature
            case ToolCallChunk():
                self._add_call_piece(chunk)
            case UsageChunk(usage):
                self._usage = usage
            case FinishChunk():
                self._finish = chunk
            case RestartChunk():
                self._begin()
            case NoticeChunk():
                pass

    def argument_chars(self, index: int) -> int:
        """Characters of the arguments received so far for the call at `index`."""
        draft = self._calls_by_index.get(index)
        return draft.chars if draft else 0

    @property
    def call_count(self) -> int:
        """Number of calls that have begun."""
        return len(self._calls_by_index)

    def call_name(self, index: int) -> str:
        """The name of the call at `index`; empty until it arrives."""
        draft = self._calls_by_index.get(index)
        return draft.name if draft else ""

    def build(self) -> CompleteReply:
        """The complete reply; call only if `is_finished`."""
        assert self._finish is not None
        content: list[AssistantContent] = []
        broken: dict[str, str] = {}
        reason = self._finish.reason
        for draft in self._drafts:
            if isinstance(draft, _CallDraft):
                arguments, problem = _parse_arguments("".join(draft.json_pieces))
                problem = draft.problem or problem
                if reason == "length" and draft is self._drafts[-1]:
                    problem = "the output limit cut off the reply before it was complete"
                if problem:
                    broken[draft.id] = problem
                content.append(
                    ToolCall(
                        id=draft.id,
                        name=draft.name,
                        arguments=arguments,
                        signature=draft.signature or None,
                    )
                )
            else:
                content.extend(_prose(draft))
        has_calls = any(isinstance(part, ToolCall) for part in content)
        stop: StopReason = "length" if reason == "length" else "toolUse" if has_calls else "stop"
        message = self._message(content, stop)
        return CompleteReply(message, broken, was_filtered=reason == "contentFilter")

    def build_interrupted(
        self, stop_reason: StopReason, error: str | None = None
    ) -> AssistantMessage:
        """The reply up to an interruption, without calls: none was run, so none can be sent."""
        content: list[AssistantContent] = []
        for draft in self._drafts:
            if not isinstance(draft, _CallDraft):
                content.extend(_prose(draft))
        return self._message(content, stop_reason, error)

    def _message(
        self, content: list[AssistantContent], stop: StopReason, error: str | None = None
    ) -> AssistantMessage:
        return AssistantMessage(
            content=tuple(content),
            provider=self._provider,
            model=self._model,
            usage=self._usage,
            stop_reason=stop,
            error_message=error,
        )

    def _add_call_piece(self, chunk: ToolCallChunk) -> None:
        draft = self._calls_by_index.get(chunk.index)
        if draft is None:
            draft = _CallDraft(self._fresh_id(chunk.id), chunk.name)
            self._calls_by_index[chunk.index] = draft
            self._drafts.append(draft)
        elif chunk.name and not draft.name:
            draft.name = chunk.name
        draft.json_pieces.append(chunk.arguments_json)
        draft.chars += len(chunk.arguments_json)
        draft.problem = draft.problem or chunk.problem
        draft.signature = chunk.signature or draft.signature

    def _fresh_id(self, wanted: str) -> str:
        call_id = wanted
        while not call_id or call_id in self._ids:
            call_id = f"call_{uuid.uuid4().hex[:24]}"
        self._ids.add(call_id)
        return call_id


def _prose(draft: _TextDraft | _ThinkingDraft) -> list[AssistantContent]:
    text, signature = "".join(draft.pieces), draft.signature or None
    if not text and signature is None:
        return []
    if isinstance(draft, _ThinkingDraft):
        return [ThinkingContent(thinking=text, signature=signature, redacted=draft.is_redacted)]
    return [TextContent(text=text, signature=signature)]


def _parse_arguments(text: str) -> tuple[JsonObject, str]:
    """The arguments, and what is wrong with them; an empty text means no arguments.

    Accepts raw line ends and tabs in JSON strings: models rarely escape them.
    """
    if not text.strip():
        return {}, ""
    try:
        value = cast(JsonValue, json.loads(text, strict=False))
        if isinstance(value, str):  # encoded twice
            value = cast(JsonValue, json.loads(value, strict=False))
        value = repair_json(value)
    except ValueError as error:
        return {}, f"its arguments are not valid JSON ({error})"
    except RecursionError:
        return {}, "its arguments are nested too deeply"
    if not isinstance(value, dict):
        return {}, "its arguments are not a JSON object"
    return value, ""


class CutReply:
    """The parts of one reply that several cut-off attempts gave, oldest first.

    A model that is asked to continue may start again, which repeats the parts.
    """

    def __init__(self) -> None:
        self._parts: list[MessageEntry] = []
        self._may_come_again = False

    @property
    def last_id(self) -> str:
        """The entry id of the newest part; empty if there is none."""
        return self._parts[-1].id if self._parts else ""

    def add(self, part: MessageEntry) -> None:
        """Add a part that is now in the session."""
        self._parts.append(part)

    def begin_try(self) -> None:
        """Note that the model is asked again."""
        self._may_come_again = bool(self._parts)

    def take_given_anew(self, text: str) -> tuple[MessageEntry, ...]:
        """Remove and return the newest parts that a reply beginning with `text` repeats.

        A part with only thinking counts as repeated by every reply: no model can continue it.
        """
        if not self._may_come_again:
            return ()
        begun = _without_spaces(text)
        for at in range(len(self._parts)):
            if begun.startswith(self._text_from(at)):
                given, self._parts = self._parts[at:], self._parts[:at]
                return tuple(given)
        self._may_come_again = self.holds(text)
        return ()

    def holds(self, text: str) -> bool:
        """Whether the parts already contain everything in `text`, a cut reply."""
        begun = _without_spaces(text)
        return any(self._text_from(at).startswith(begun) for at in range(len(self._parts)))

    def _text_from(self, at: int) -> str:
        texts = (part.message.text for part in self._parts[at:] if _is_reply(part))
        return _without_spaces("".join(texts))


def _is_reply(part: MessageEntry) -> bool:
    return isinstance(part.message, AssistantMessage)


def _without_spaces(text: str) -> str:
    return "".join(text.split())
