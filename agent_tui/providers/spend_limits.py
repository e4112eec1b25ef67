"""Limits on what requests cost: of a run, and those that features bring."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Protocol, TypeVar, runtime_checkable
from urllib.parse import urlsplit

from agent_tui.config.model_addresses import is_loopback
from agent_tui.messages import Usage
from agent_tui.providers.accounts import own_accounts
from agent_tui.providers.base import ModelInfo, ModelRef, ModelRequest
from agent_tui.providers.limits import BudgetSpent
from agent_tui.tokens import TokenCounter

LimitT = TypeVar("LimitT")


class SpendLimit(Protocol):
    """A limit on what requests cost, in US dollars. Features bring some.

    Attributes:
        name: What sets it, as the user types it.
        advice: What the user can do when it stops a request.
    """

    name: str
    advice: str

    @property
    def is_set(self) -> bool:
        """Whether there is a limit now."""
        ...

    def why_spent(self) -> str:
        """Why no request may be sent; empty if one may. Blocking."""
        ...

    def pay(self, cost_usd: float) -> None:
        """Count the cost of a request, as far as its provider reported it. Blocking."""
        ...


@dataclass(slots=True)
class Budget:
    """The cost limit of all requests of a run, including summaries and helpers.

    Attributes:
        limit_usd: The limit; None for no limit.
        spent_usd: Spent so far, as far as providers report it.
    """

    limit_usd: float | None = None
    spent_usd: float = 0.0
    name: str = "--max-cost"
    advice: str = "Start again with a higher --max-cost, or without it."

    @property
    def is_set(self) -> bool:
        """See `SpendLimit.is_set`."""
        return self.limit_usd is not None

    def why_spent(self) -> str:
        """See `SpendLimit.why_spent`."""
        if self.limit_usd is None or self.spent_usd < self.limit_usd:
            return ""
        return f"Stopped: ${self.spent_usd:.4f} spent, {self.name} is ${self.limit_usd:g}."

    def pay(self, cost_usd: float) -> None:
        """See `SpendLimit.pay`."""
        self.spent_usd += cost_usd


def has_price(model: ModelRef, info: ModelInfo) -> bool:
    """Whether the cost of requests to `model` is known.

    Nothing is paid for a request to this machine or to a private network, whose servers are the
    user's own, nor for one that an account's subscription covers.
    """
    return (
        info.input_price is not None
        or model.runs_here
        or _is_private(model.base_url)
        or (not model.base_url and model.provider in own_accounts())
    )


def _is_private(address: str) -> bool:
    """Whether `address` is of this machine, or a number of a private network (RFC 1918, 4193)."""
    try:
        return is_loopback(address) or ip_address(urlsplit(address).hostname or "").is_private
    except ValueError:
        return False


def why_unpriced(limit: SpendLimit, model: ModelRef, info: ModelInfo) -> str:
    """Why `limit` cannot be enforced for `model`; empty if it can."""
    if not limit.is_set or has_price(model, info):
        return ""
    return f"The price of {model.name} is unknown, so {limit.name} cannot be enforced."


def check_limits(limits: Iterable[SpendLimit], model: ModelRef, info: ModelInfo) -> None:
    """Return if all of `limits` allow a request to `model`. Blocking.

    Raises:
        BudgetSpent: One does not.
    """
    for limit in limits:
        if why := why_unpriced(limit, model, info):
            raise BudgetSpent(why, "Choose a model whose price is known, or remove the limit.")
        if limit.is_set and (why := limit.why_spent()):
            raise BudgetSpent(why, limit.advice)


UNSTATED: Final = Usage(is_estimate=True)
"""The usage of a reply whose service sent none."""


def estimate_input(usage: Usage, request: ModelRequest, info: ModelInfo) -> Usage:
    """`usage` with an estimate of the input, if the service did not count it. Blocking.

    Without it, a service that sends no counts would exhaust no limit, however much it reads. If it
    sends nothing at all, only replies that come to their end are estimated.
    """
    if not usage.is_estimate or usage.input or info.input_price is None:
        return usage
    counter = TokenCounter()
    tokens = counter.count_text(request.system) + counter.count_tools(request.tools)
    tokens += counter.count_messages(request.messages)
    cost_usd = tokens * info.input_price / 1_000_000
    total_usd = usage.cost.total + cost_usd
    cost = usage.cost.model_copy(update={"input": cost_usd, "total": total_usd})
    changes = {"input": tokens, "total_tokens": tokens + usage.output, "cost": cost}
    return usage.model_copy(update=changes)


@runtime_checkable
class LimitedProvider(Protocol):
    """A provider whose requests have limits."""

    @property
    def spend_limits(self) -> Sequence[SpendLimit]:
        """The limits on what they cost."""
        ...


def spend_limit(provider: object, kind: type[LimitT]) -> LimitT | None:
    """The limit of a feature on what the requests to `provider` cost; None if it has none."""
    limits = provider.spend_limits if isinstance(provider, LimitedProvider) else ()
    return next((limit for limit in limits if isinstance(limit, kind)), None)
