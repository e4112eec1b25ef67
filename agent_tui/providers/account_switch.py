"""Which of several accounts of a service requests use."""

from collections.abc import Callable, MutableMapping
from typing import Protocol, TypeVar, runtime_checkable

SwitchT = TypeVar("SwitchT")


class AccountSwitch(Protocol):
    """Decides which of several accounts of a service requests use. A feature brings one.

    Attributes:
        on_switch: Called with the provider whose account was changed.
    """

    on_switch: Callable[[str], object]

    @property
    def environ(self) -> MutableMapping[str, str]:
        """What the accounts in use put before the environment; it changes with them."""
        ...


@runtime_checkable
class HasAccounts(Protocol):
    """A provider whose requests use accounts."""

    @property
    def accounts(self) -> AccountSwitch | None:
        """Decides which; None if nothing does."""
        ...


def account_switch(provider: object, kind: type[SwitchT]) -> SwitchT | None:
    """What decides on the accounts of requests to `provider`, if a feature brings that `kind`."""
    switch = provider.accounts if isinstance(provider, HasAccounts) else None
    return switch if isinstance(switch, kind) else None
