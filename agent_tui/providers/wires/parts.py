"""What the protocols share: placeholder texts, images, ids, names, how much to think."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from agent_tui.messages import (
    BashExecutionMessage,
    ImageContent,
    JsonObject,
    TextContent,
    ToolCall,
    UserContent,
    UserMessage,
)
from agent_tui.providers.base import ThinkingEffort
from agent_tui.text import repair_text

NO_OUTPUT: Final = "(no output)"
CONTINUE: Final = "(The conversation continues.)"
"""Used if a protocol requires a user message and there is none to send."""
GO_ON: Final = "Continue."
"""Sent after a cut reply: many models refuse a request that ends with their own words."""

BUDGET_TOKENS: Final[Mapping[ThinkingEffort, int]] = MappingProxyType(
    {"low": 4_000, "medium": 10_000, "high": 16_000, "xhigh": 32_000, "max": 32_000}
)
"""Budgets for protocols that need a number; Anthropic's guide sees little gain beyond 32,000."""

_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MAX_ID_CHARS = 64
"""OpenAI's limit on the id of a call in the Responses API."""
_MAX_NAME_CHARS = 64


def user_parts(message: UserMessage | BashExecutionMessage) -> tuple[UserContent, ...]:
    """The content of a user message; empty if it is hidden from the model."""
    if isinstance(message, BashExecutionMessage):
        if message.exclude_from_context:
            return ()
        return (TextContent(text=_bash_text(message)),)
    if isinstance(message.content, str):
        return (TextContent(text=message.content),)
    return message.content


def is_sendable(part: UserContent) -> bool:
    """Whether `part` is an image of a kind that models take."""
    return isinstance(part, ImageContent) and part.mime_type in _IMAGE_TYPES and part.data != ""


def text_of(part: UserContent) -> str:
    """The text of `part`, or a note for an image that cannot be sent."""
    if isinstance(part, ImageContent):
        return f"[An image of type {repair_text(part.mime_type) or 'unknown'} cannot be sent.]"
    return repair_text(part.text)


def joined_text(parts: Iterable[UserContent], where_images: str) -> str:
    """The text of `parts`, with `where_images` for each image that is sent separately."""
    joined = "\n".join(where_images if is_sendable(part) else text_of(part) for part in parts)
    return joined if joined.strip() else NO_OUTPUT


def wire_id(call_id: str, max_chars: int = _MAX_ID_CHARS) -> str:
    """`call_id`, or a short replacement if another provider's id would be refused."""
    if re.fullmatch(rf"[A-Za-z0-9_-]{{1,{max_chars}}}", call_id):
        return call_id
    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[:24]}"


class CallIds:
    """The ids of a conversation's calls on the wire.

    Other models' calls get ids that the current model accepts.

    Args:
        stand_in: Makes an acceptable id.
        keeps_own: Whether the model's own calls keep their ids, which may have a form that other
            services refuse (Kimi counts them: ``functions.read:0``).
    """

    def __init__(
        self, stand_in: Callable[[str], str] = wire_id, *, keeps_own: bool = False
    ) -> None:
        self._stand_in = stand_in
        self._keeps_own = keeps_own
        self._own: set[str] = set()

    def of_call(self, call: ToolCall, *, is_own: bool) -> str:
        """The id of `call`, also used for its result."""
        if self._keeps_own and is_own and call.id and repair_text(call.id) == call.id:
            self._own.add(call.id)
        return self.of_result(call.id)

    def of_result(self, call_id: str) -> str:
        """The id of the call that a result answers."""
        return call_id if call_id in self._own else self._stand_in(call_id)


def wire_name(name: str) -> str:
    """`name` in the alphabet of tool names: a model may have called an invalid one."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_MAX_NAME_CHARS] or "unknown"


def as_value(objects: Iterable[JsonObject]) -> JsonValue:
    """`objects` as the value of a field."""
    return list[JsonValue](objects)


def effort(level: ThinkingEffort, known: Mapping[str, JsonValue]) -> str:
    """`level` as an effort that the model accepts.

    Args:
        level: Any but ``off``.
        known: What litellm's table says of the model. The two highest efforts are only for models
            listed with them; ``high`` is the maximum for others.
    """
    if level == "max" and known.get("supports_max_reasoning_effort") is not True:
        level = "xhigh"
    if level == "xhigh" and known.get("supports_xhigh_reasoning_effort") is not True:
        return "max" if known.get("supports_max_reasoning_effort") is True else "high"
    return level


def _bash_text(message: BashExecutionMessage) -> str:
    lines = [f"Ran `{message.command}`"]
    lines.append(f"```\n{message.output}\n```" if message.output.strip() else NO_OUTPUT)
    if message.cancelled:
        lines.append("(cancelled by the user)")
    elif message.exit_code:
        lines.append(f"Exit code {message.exit_code}")
    if message.truncated and message.full_output_path:
        lines.append(f"(shortened; the whole output is in {message.full_output_path})")
    return "\n".join(lines)
