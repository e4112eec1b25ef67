"""Learns from refusals, so that a refused request can be changed and sent again."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from agent_tui.providers.base import ModelRef, ModelRequest, ProviderError
from agent_tui.providers.wires.base import Way, Wire
from agent_tui.providers.wires.table import wires_to

_ABOUT_THINKING = re.compile(r"thinking|thought|reasoning|signature|encrypted.content", re.I)
_NO_SUCH_ADDRESS = frozenset({404, 405, 501})
_NO_SUCH_MODEL = re.compile(
    r"^model: |model[^.]{0,80}\b(?:not found|not exist)|no such model|not a valid model", re.I
)
_FAULTY = frozenset({"bad_request", "not_found", "server"})
"""Statuses for a request with something unknown in it: llama.cpp says 500."""


@dataclass(slots=True)
class _Lessons:
    """What was learned about one model on one wire."""

    is_lacking: bool = False
    is_otherwise_named: bool = False
    refused_fields: tuple[str, ...] = ()


class Refusals:
    """Which wires, names and fields servers do not know, and which thinking was refused."""

    def __init__(self) -> None:
        self._lessons: defaultdict[tuple[ModelRef, str], _Lessons] = defaultdict(_Lessons)
        self._refused_thoughts: set[int] = set()
        self._unthinking: set[ModelRef] = set()

    def wire_to(self, model: ModelRef) -> Wire:
        """The wire for calling `model`."""
        wires = wires_to(model)
        there = (wire for wire in wires if not self._lessons[model, wire.name].is_lacking)
        return next(there, wires[-1])

    def way(self, request: ModelRequest) -> Way:
        """How to send `request`, given what was learned."""
        wire = self.wire_to(request.model)
        lessons = self._lessons[request.model, wire.name]
        first, other = _names(wire, request.model)
        model_id = other if lessons.is_otherwise_named else first
        return Way(wire, self._without_refused_thinking(request), model_id, lessons.refused_fields)

    def learn(self, way: Way, error: ProviderError) -> str | None:
        """Learn why a request was refused; None if it should not be sent again.

        Returns:
            What to tell the user; empty if nothing is lost.
        """
        model, lessons = way.request.model, self._lessons[way.request.model, way.wire.name]
        first, other = _names(way.wire, model)
        if error.kind == "not_found" and first != other and way.model_id in error.detail:
            lessons.is_otherwise_named = not lessons.is_otherwise_named and bool(model.base_url)
            if lessons.is_otherwise_named:
                return ""
        if way.wire is not wires_to(model)[-1] and _is_address_unknown(error):
            lessons.is_lacking = True
            return ""
        if field := _field_to_leave_out(way, error):
            lessons.refused_fields += (field,)
            return f"{model.name} does not accept {field!r}; leaving it out. {error.detail}"
        if error.kind != "bad_request" or not _ABOUT_THINKING.search(error.detail):
            return None
        return self._learn_of_thinking(way.request, error)

    def _learn_of_thinking(self, request: ModelRequest, error: ProviderError) -> str | None:
        name = request.model.name
        replies = (m for m in request.messages if isinstance(m, AssistantMessage))
        if seals := {seal for reply in replies for seal in _seals(reply)}:
            self._refused_thoughts |= seals
            return f"{name} rejected its earlier thinking; leaving it out. {error.detail}"
        if request.thinking != "off":
            self._unthinking.add(request.model)
            return f"Thinking is now off for {name}. {error.detail}"
        return None

    def _without_refused_thinking(self, request: ModelRequest) -> ModelRequest:
        """`request` without thinking that was refused before."""
        if request.model in self._unthinking:
            request = replace(request, thinking="off")
        if not self._refused_thoughts:
            return request
        messages = tuple(
            without_seals(message)
            if isinstance(message, AssistantMessage)
            and any(seal in self._refused_thoughts for seal in _seals(message))
            else message
            for message in request.messages
        )
        return replace(request, messages=messages)


def _names(wire: Wire, model: ModelRef) -> tuple[str, str]:
    """The name to send to a server first, and the other name it may have for `model`."""
    first = wire.id_of(model.name)
    return first, model.model_id if first == model.name else model.name


def _field_to_leave_out(way: Way, error: ProviderError) -> str:
    """A field of the request that `error` names and that is not yet left out; else empty.

    OpenAI names the unknown field first and the one it expects instead after it: the first counts.
    """
    if error.kind not in _FAULTY:
        return ""
    places: dict[str, int] = {}
    for field in way.wire.spare_fields:
        name = field.rpartition(".")[2]
        before = r"\b" if "_" in name else r"(?<=[.'\"`\]])"  # otherwise it may be an ordinary word
        named = re.search(rf"{before}{name}\b", error.detail)
        if named and field not in way.without:
            places[field] = named.start()
    return min(places, key=lambda field: places[field], default="")


def without_seals(reply: AssistantMessage) -> AssistantMessage:
    """`reply` without its thinking and signatures."""
    content: list[AssistantContent] = []
    for part in reply.content:
        match part:
            case TextContent() | ToolCall():
                content.append(part.model_copy(update={"signature": None}))
            case ThinkingContent():
                pass
    return reply.model_copy(update={"content": tuple(content)})


def _seals(reply: AssistantMessage) -> Iterator[int]:
    """Hashes that identify the signed parts of `reply`."""
    for part in reply.content:
        if isinstance(part, ThinkingContent):
            yield hash((part.thinking, part.signature))
        elif part.signature:
            yield hash(part.signature)


def _is_address_unknown(error: ProviderError) -> bool:
    """Whether the response means that the server has no such address."""
    is_unknown = error.kind == "not_found" or error.status in _NO_SUCH_ADDRESS
    return (is_unknown and not _NO_SUCH_MODEL.search(error.detail)) or error.is_no_stream
