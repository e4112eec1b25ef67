"""Whether the provider's cache still holds the conversation, and what a cold cache costs."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.agent.conversation import Conversation
from agent_tui.providers.base import ModelInfo
from agent_tui.providers.prompt_cache import cache_lifetime
from agent_tui.sessions.context_size import newest_figure

Warmth: TypeAlias = Literal["warm", "unsure", "cold"]

LEAST_USD = 0.10
"""Below this price of reading the context again, no notice is shown."""

_CHOICE_TOKENS = 2_500
"""Typical length of a model's reply: the notes and the list of what to keep."""

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class CacheState:
    """`left_s`: seconds for which the prefix is certain to stay cached; 0 unless it is warm."""

    warmth: Warmth
    left_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ColdPrice:
    """What the next request costs in US dollars with a cold cache.

    `small_usd` is the price of compacting and of what that leaves; None if it is unknown or saves
    nothing.
    """

    whole_usd: float
    small_usd: float | None

    @property
    def sentence(self) -> str:
        """For example "… costs about $0.61 whole, $0.07 made small (/compact)."."""
        whole = f"The cache is cold: the next message costs about ${self.whole_usd:.2f}"
        if self.small_usd is None:
            return f"{whole}."
        return f"{whole} whole, ${self.small_usd:.2f} made small (/compact)."


def cache_state(conversation: Conversation) -> CacheState | None:
    """The state of the newest request in the provider's cache.

    None if the provider does not state how long it keeps a prefix, or if no request to the present
    model had the context as it is now.
    """
    lifetime = cache_lifetime(conversation.model)
    context = conversation.context()
    found = newest_figure(context, conversation.model.name)
    if lifetime is None or found is None:
        return None
    # The provider counts from the request; after a restart, only the time of the reply is known.
    replied_s = context.messages[found[0]].message.timestamp / 1_000
    sent_s = conversation.requests.sent_s or replied_s
    used_s = max(min(sent_s, replied_s), conversation.prefix_read_s)
    age_s = conversation.services.wall_clock() - used_s
    if age_s < lifetime.least_s:
        return CacheState("warm", lifetime.least_s - age_s)
    return CacheState("unsure" if age_s < lifetime.most_s else "cold")


def cold_price(
    conversation: Conversation, reader: ModelInfo | None, *, is_ready: bool
) -> ColdPrice | None:
    """What the next request costs; None unless the cache is cold and the price is worth a notice.

    Args:
        conversation: The conversation.
        reader: The model that ``/compact`` would ask; None if it would ask none.
        is_ready: Whether that model has already answered.
    """
    state, price = cache_state(conversation), _write_price(conversation.model_info)
    if state is None or state.warmth != "cold" or price is None:
        return None
    used, left = conversation.usage.used, conversation.limits.target
    whole = used * price / _MILLION
    if whole < LEAST_USD:
        return None
    asking = 0.0 if is_ready or reader is None else _asking_usd(reader, used)
    small = None if asking is None else asking + left * price / _MILLION
    return ColdPrice(whole, small if small is not None and small < whole else None)


def idle_price_usd(conversation: Conversation) -> float | None:
    """What asking the model what to keep costs while the cache is warm; None if not known."""
    info = conversation.model_info
    if info.cache_read_price is None or info.output_price is None:
        return None
    read = conversation.usage.used * info.cache_read_price
    return (read + _CHOICE_TOKENS * info.output_price) / _MILLION


def whole_price_usd(conversation: Conversation) -> float:
    """What reading the context costs with a cold cache; 0 if no price is known."""
    price = _write_price(conversation.model_info)
    return conversation.usage.used * (price or 0.0) / _MILLION


def _write_price(info: ModelInfo) -> float | None:
    return info.cache_write_price or info.input_price


def _asking_usd(reader: ModelInfo, used: int) -> float | None:
    if reader.input_price is None or reader.output_price is None:
        return None
    return (used * reader.input_price + _CHOICE_TOKENS * reader.output_price) / _MILLION
