"""Asks which account continues when the limit of one is reached. Nothing switches automatically."""

import asyncio
from typing import Final

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.part import Part
from agent_tui.durations import clock_time
from agent_tui.events import Notice
from agent_tui.features.login.named import NamedAccounts
from agent_tui.providers.account_switch import account_switch
from agent_tui.providers.base import ModelRef, ProviderError
from agent_tui.providers.keys import key_values
from agent_tui.providers.limits import BudgetSpent
from agent_tui.tools.form import Elicitation, FormField

_FIELD: Final = "account"
_LIMITS: Final = ("rate_limit", "quota")
"""Errors that another account may not have."""


class AccountPart(Part):
    """The accounts in one conversation."""

    async def at_limit(self, error: ProviderError, model: ModelRef, emit: Emit) -> str | None:
        """Ask the user, with the names of all accounts, until the limit resets.

        Without a user, say which account could continue.
        """
        conversation = self.host.conversation
        accounts = account_switch(conversation.services.provider, NamedAccounts)
        if accounts is None or error.kind not in _LIMITS or isinstance(error, BudgetSpent):
            return None
        if not (others := accounts.others(model)):
            return None
        if not self.host.can_fill_forms:
            return _advice(others)
        began_s, wait_s = conversation.services.wall_clock(), error.retry_after_s
        in_use = accounts.in_use(model.provider)
        form = _form(model.provider, in_use, others, began_s, wait_s)
        try:
            async with asyncio.timeout(wait_s):
                answer = await self.host.fill_form(form)
        except TimeoutError:
            return ""  # the limit has reset
        if wait_s is not None:
            took_s = conversation.services.wall_clock() - began_s
            error.retry_after_s = max(wait_s - took_s, 0.0)
        content = answer.get("content")
        chosen = content.get(_FIELD) if isinstance(content, dict) else None
        name = next((name for name in others if chosen in (name, [name])), "")
        if not name:
            return None
        emit(Notice("info", use_account(conversation, accounts, model.provider, name)))
        return ""


def use_account(
    conversation: Conversation, accounts: NamedAccounts, provider: str, name: str
) -> str:
    """Use another account from the next request on; returns the sentence for the user.

    Raises:
        AgentTuiError: There is none of that name, or its key cannot be read.
    """
    accounts.use(provider, name)
    services = conversation.services
    keys = key_values(accounts.environ)
    services.secrets = (*services.secrets, *(key for key in keys if key not in services.secrets))
    for model in [*conversation.limited_until]:
        if ModelRef(model).provider == provider:
            del conversation.limited_until[model]
    return f"Requests to {provider} now use the account {name}, until you leave or switch again."


def _advice(others: tuple[str, ...]) -> str:
    names = " or ".join(others)
    could = f"The account {names} could continue" if len(others) == 1 else f"{names} could continue"
    return f"{could}: agent-tui -c -p --account {others[0]}"


def _form(
    provider: str, in_use: str, others: tuple[str, ...], now_s: float, wait_s: float | None
) -> Elicitation:
    until = "" if wait_s is None else f" It resets at {clock_time(now_s + wait_s, now_s)}."
    stays = f"{in_use}: wait until it resets" if wait_s is not None else f"{in_use}: stop here"
    choices = ((in_use, stays), *((name, f"{name}: continue with it now") for name in others))
    title = (
        f"The limit of the {provider} account {in_use} is reached.{until} Which account continues?"
    )
    field = FormField(_FIELD, title, "one of", choices=choices)
    return Elicitation("", "", (field,), heading="Limit reached")
