"""The table of accounts: a new one is a line here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agent_tui.providers.accounts.chatgpt import CHATGPT
from agent_tui.providers.accounts.copilot import COPILOT
from agent_tui.providers.accounts.device import Account

ACCOUNTS: Final[Mapping[str, Account]] = MappingProxyType(
    {account.provider: account for account in (COPILOT, CHATGPT)}
)
"""Accounts by the provider whose models they give access to."""


def login_command(account: Account) -> str:
    """The command with which the user signs in."""
    return f"agent-tui login {account.name}"
