"""What a program learns from refusals, so that a request that was refused can be sent again."""

import re
from collections.abc import Iterator
from dataclasses import replace

from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from agent_tui.providers.base import ModelRef, ModelRequest, ProviderError
from agent_tui.providers.wires.base import Wire
from agent_tui.providers.wires.table import wires_to

_ABOUT_THINKING = re.compile(r"thinking|thought|reasoning|signature|encrypted.content", re.I)
_NO_SUCH_ADDRESS = frozenset({404, 405, 501})


class Refusals:
    """Which servers lack a wire, which thinking and which models' thinking were refused."""

    def __init__(self) -> None:
        self._lacking: set[tuple[str, str]] = set()
        self._refused_thoughts: set[int] = set()
        self._unthinking: set[ModelRef] = set()

    def wire_to(self, model: ModelRef) -> Wire:
        """The wire to speak to `model` by."""
        wires = wires_to(model)
        there = (wire for wire in wires if (model.base_url, wire.name) not in self._lacking)
        return next(there, wires[-1])

    def heeded(self, request: ModelRequest) -> ModelRequest:
        """`request` without what was refused before."""
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

    def learn(self, request: ModelRequest, wire: Wire, error: ProviderError) -> bool:
        """Take in why `request` was refused by `wire`; says whether to send it once more."""
        if wire is not wires_to(request.model)[-1] and _is_address_unknown(error):
            self._lacking.add((request.model.base_url, wire.name))
            return True
        if error.kind != "bad_request" or not _ABOUT_THINKING.search(error.message):
            return False
        replies = (m for m in request.messages if isinstance(m, AssistantMessage))
        if seals := {seal for reply in replies for seal in _seals(reply)}:
            self._refused_thoughts |= seals
            return True
        if request.thinking != "off":
            self._unthinking.add(request.model)
            return True
        return False


def without_seals(reply: AssistantMessage) -> AssistantMessage:
    """`reply` without its thinking and what was sealed with it."""
    content: list[AssistantContent] = []
    for part in reply.content:
        match part:
            case TextContent() | ToolCall():
                content.append(part.model_copy(update={"signature": None}))
            case ThinkingContent():
                pass
    return reply.model_copy(update={"content": tuple(content)})


def _seals(reply: AssistantMessage) -> Iterator[int]:
    """What tells the sealed parts of `reply` from all others."""
    for part in reply.content:
        if isinstance(part, ThinkingContent):
            yield hash((part.thinking, part.signature))
        elif part.signature:
            yield hash(part.signature)


def _is_address_unknown(error: ProviderError) -> bool:
    """Whether the server answered like one that has no such address: some do so with 200."""
    is_no_stream = error.kind == "server" and error.status is None
    return error.kind == "not_found" or error.status in _NO_SUCH_ADDRESS or is_no_stream
