"""What the protocols share: JSON fields, placeholder texts, images, ids, prices of token counts."""

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, cast

from pydantic import JsonValue

from agent_tui.messages import (
    BashExecutionMessage,
    Cost,
    ImageContent,
    JsonObject,
    TextContent,
    ToolCall,
    Usage,
    UserContent,
    UserMessage,
)
from agent_tui.providers.base import ThinkingEffort
from agent_tui.providers.wires.base import WireRequest
from agent_tui.text import repair_text


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one request; `fresh` excludes those read from or written to the cache.

    `is_estimate`: the provider sent no counts.
    """

    fresh: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    is_estimate: bool = False

    def with_cost(self, request: WireRequest, known: Mapping[str, object]) -> Usage:
        """These counts with their cost.

        The user's own server may reuse a known model name: it has no price. No request has zero
        tokens: if none were counted, the counts are an estimate.

        Args:
            request: The request.
            known: What the table says of its model: prices in dollars per token, 0 if unknown.
        """
        prices: Mapping[str, object] = {} if request.base_url else known
        input_price = _price(prices, "input_cost_per_token", 0.0)
        cost = Cost(
            input=self.fresh * input_price,
            output=self.output * _price(prices, "output_cost_per_token", 0.0),
            cache_read=self.cache_read * _price(prices, "cache_read_input_token_cost", input_price),
            cache_write=self.cache_write
            * _price(prices, "cache_creation_input_token_cost", input_price),
        )
        prompt = self.fresh + self.cache_read + self.cache_write
        total = cost.input + cost.output + cost.cache_read + cost.cache_write
        return Usage(
            input=self.fresh,
            output=self.output,
            cache_read=self.cache_read,
            cache_write=self.cache_write,
            total_tokens=prompt + self.output,
            cost=cost.model_copy(update={"total": total}),
            is_estimate=self.is_estimate or not prompt,
        )


def _price(prices: Mapping[str, object], name: str, default: float) -> float:
    value = prices.get(name)
    return float(value) if isinstance(value, int | float) else default


_MOST: Final = 10**12
"""The largest plausible token count."""


def text_at(holder: Mapping[str, JsonValue], name: str) -> str:
    """The text at `name`; empty for anything else."""
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def as_object(value: object) -> JsonObject:
    """`value`, parsed from JSON, if it is an object; else an empty one."""
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def object_at(holder: Mapping[str, JsonValue], name: str) -> JsonObject:
    """The object at `name`; an empty one for anything else."""
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def objects_at(holder: Mapping[str, JsonValue], name: str) -> Sequence[JsonObject]:
    """The objects in the list at `name`; none for anything else."""
    value = holder.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def count_at(holder: Mapping[str, JsonValue], name: str) -> int:
    """The count at `name`, which some servers write as text; 0 for anything else."""
    return _count(holder.get(name)) or 0


def counts_at(holder: Mapping[str, JsonValue], name: str) -> JsonObject:
    """The counts in the object at `name` and in objects within it; anything else is left out.

    Implausible values (NaN, infinite, negative, huge) count as not sent.
    """
    given = object_at(holder, name)
    counted: JsonObject = {}
    for inner, value in given.items():
        kept = counts_at(given, inner) if isinstance(value, dict) else _count(value)
        if kept is not None and kept != {}:
            counted[inner] = kept
    return counted


def _count(value: JsonValue) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return int(number) if math.isfinite(number) and 0 <= number <= _MOST else None


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


def join_texts(parts: Iterable[UserContent], where_images: str) -> str:
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
