"""The provider keys that agent-tui stores for the user."""

import os

from agent_tui import paths
from agent_tui.providers.accounts import own_accounts
from agent_tui.providers.kept_keys import KEEPABLE, FilledIn, KeptKeys


def key_store() -> KeptKeys:
    """The user's stored keys."""
    return KeptKeys(paths.user_data_dir() / "keys")


def login_names() -> tuple[str, ...]:
    """What ``agent-tui login`` and ``agent-tui logout`` take."""
    return (*(account.name for account in own_accounts().values()), *KEEPABLE)


def use_stored_keys() -> FilledIn:
    """Add stored keys to the environment if it lacks them."""
    return key_store().fill(os.environ)
