"""The provider keys that agent-tui stores for the user."""

import getpass
import os
import sys

from agent_tui import paths
from agent_tui.errors import AgentTuiError, UsageError
from agent_tui.providers.accounts import own_accounts
from agent_tui.providers.kept_keys import KEEPABLE, FilledIn, KeptKeys
from agent_tui.providers.keys import what_is_wrong_with


def key_store() -> KeptKeys:
    """The user's stored keys."""
    return KeptKeys(paths.user_data_dir() / "keys")


def login_names() -> tuple[str, ...]:
    """What ``agent-tui login`` and ``agent-tui logout`` take."""
    return (*(account.name for account in own_accounts().values()), *KEEPABLE)


def use_stored_keys() -> FilledIn:
    """Add stored keys to the environment if it lacks them."""
    return key_store().fill(os.environ)


def read_key(variable: str) -> str:
    """Read a key that the user types without echo, or the first line of standard input.

    Raises:
        UsageError: It cannot be a key.
    """
    if sys.stdin.isatty():
        key = getpass.getpass(f"Key (as in {variable}, not shown): ").strip()
    else:
        key = sys.stdin.readline().strip()
    if not key:
        raise UsageError("No key given.", f"Type it, pipe it in, or set {variable}.")
    if wrong := what_is_wrong_with(key):
        raise UsageError(f"Not a key: it {wrong}.")
    return key


def keep(provider: str, key: str, *, in_keyring: bool, name: str = "") -> str:
    """Store `key` for the account called `name`; returns where.

    Raises:
        AgentTuiError: It could not be stored.
    """
    kept = key_store()
    try:
        kept.keep(provider, key, in_keyring=in_keyring, name=name)
    except OSError as error:
        raise AgentTuiError(f"Cannot store the key: {error}.") from error
    return kept.place(provider, name)
