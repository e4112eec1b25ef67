"""``/account``: the user's accounts, and which of them requests use."""

from collections.abc import Iterator

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Choice, Front, Listing
from agent_tui.features.login.named import NamedAccounts
from agent_tui.features.login.part import use_account
from agent_tui.providers.account_switch import account_switch
from agent_tui.providers.rate_limits import rate_limits, tightest_of_plan

_NONE = (
    "No named accounts. Add one with agent-tui login, such as: agent-tui login anthropic --as work"
)


def _accounts(front: Front) -> NamedAccounts | None:
    return account_switch(front.runtime.services.provider, NamedAccounts)


def _names(front: Front) -> Iterator[Completion]:
    accounts, provider = _accounts(front), front.runtime.conversation.model.provider
    for name in accounts.names(provider) if accounts is not None else ():
        yield Completion(name, f"use this account of {provider}")


@command(
    "[name]",
    completions=_names,
    refusal="Cannot change the account while the agent works. {stop}",
)
async def account(front: Front, argument: str) -> None:
    """Show your accounts, or switch to another for the provider of the model."""
    accounts, model = _accounts(front), front.runtime.conversation.model
    name = argument.strip()
    if accounts is None:
        front.say(_NONE)
        return
    if not name:
        front.say("\n".join(_lines(front, accounts)) or _NONE)
        if not (front.can_pick and accounts.others(model)):
            return
        choices = tuple(
            Choice(each, each, details="in use" if each == accounts.in_use(model.provider) else "")
            for each in accounts.names(model.provider)
        )
        title = f"The account for {model.provider}"
        name = await front.pick(Listing(title, choices, "", is_grave=True)) or ""
    if name:
        front.say(use_account(front.runtime.conversation, accounts, model.provider, name))


def _lines(front: Front, accounts: NamedAccounts) -> Iterator[str]:
    model = front.runtime.conversation.model
    for provider in accounts.providers:
        in_use = accounts.in_use(provider)
        names = (
            f"{name} (in use)" if name == in_use else name for name in accounts.names(provider)
        )
        yield f"{provider}: {', '.join(names)}"
    limit = tightest_of_plan(rate_limits(front.runtime.services.provider, model))
    if limit is not None:
        yield f"{limit.left_percent}% is left of the {limit.name} limit of {model.provider}."
