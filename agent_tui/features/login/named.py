"""Accounts with names: several sign-ins to a service, or several keys of a provider."""

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui import paths
from agent_tui.cli.key_store import key_store
from agent_tui.config import Settings
from agent_tui.errors import AgentTuiError, ConfigError
from agent_tui.features.login.settings import AccountSettings
from agent_tui.providers.accounts import Account, own_accounts
from agent_tui.providers.base import ModelRef
from agent_tui.providers.kept_keys import KEEPABLE, KeptKeys, KeyringError, is_account_name
from agent_tui.providers.keys import KEY_VARIABLES

DEFAULT: Final = "default"
"""The account without a name of its own: the usual sign-in, and the key in the environment."""


class NamedAccounts:
    """The user's accounts, and which of them each provider's requests use.

    A named account is the usual one in an environment with another folder or key. Of accounts with
    one name, one for each provider is used; nothing switches without the user.

    Args:
        environ: The environment without them.
        keys: The stored keys.
        folder: Has the tokens of named sign-ins.

    Attributes:
        environ: See `AccountSwitch`.
        on_switch: See `AccountSwitch`.
    """

    def __init__(self, environ: Mapping[str, str], keys: KeptKeys, folder: Path) -> None:
        self.environ: MutableMapping[str, str] = {}
        self.on_switch: Callable[[str], object] = str
        self._environ = environ
        self._keys = keys
        self._folder = folder
        self._used: dict[str, str] = {}

    def begin(self, wanted: str) -> None:
        """Use the accounts called `wanted`; without a name, those that are a provider's only ones.

        Raises:
            AgentTuiError: No account is called that, or its key cannot be read.
        """
        having = [provider for provider in self.providers if wanted in self.names(provider)]
        if wanted and wanted != DEFAULT and not having:
            raise ConfigError(
                f"No account is called {wanted!r}.", "agent-tui login lists your accounts."
            )
        for provider in self.providers:
            if provider in having:
                self.use(provider, wanted)
            elif len(names := self.names(provider)) == 1 and not wanted:
                with suppress(KeyringError):  # the request says that a key is missing
                    self.use(provider, names[0])

    @property
    def providers(self) -> tuple[str, ...]:
        """The providers with an account, the sign-ins first."""
        return tuple(name for name in (*own_accounts(), *KEEPABLE) if self.names(name))

    def names(self, provider: str) -> tuple[str, ...]:
        """The names of a provider's accounts, `DEFAULT` first."""
        account = own_accounts().get(provider)
        if account is None:
            has_key = any(self._environ.get(name) for name in KEY_VARIABLES.get(provider, ()))
            return (*[DEFAULT] * has_key, *self._keys.names(provider))
        there = (each.name for each in _folders_in(self._folder / account.name))
        named = (name for name in there if account.is_signed_in(self.environ_of(account, name)))
        return (*[DEFAULT] * account.is_signed_in(self._environ), *sorted(named))

    def environ_of(self, account: Account, name: str) -> Mapping[str, str]:
        """The environment in which `account` is the one called `name`."""
        if name == DEFAULT:
            return self._environ
        folder = str(self._folder / account.name / name)
        return ChainMap({account.folder_variable: folder}, dict(self._environ))

    def others(self, model: ModelRef) -> tuple[str, ...]:
        """The accounts that requests to `model` could use instead of the present one."""
        if model.base_url or model.api_key_env:
            return ()
        in_use = self.in_use(model.provider)
        return tuple(name for name in self.names(model.provider) if name != in_use)

    def in_use(self, provider: str) -> str:
        """The name of the account that requests use."""
        return self._used.get(provider, DEFAULT)

    def use(self, provider: str, name: str) -> None:
        """Use another account from the next request on.

        Raises:
            AgentTuiError: There is none of that name, or its key cannot be read.
        """
        if name not in self.names(provider):
            raise AgentTuiError(
                f"{provider} has no account called {name!r}.", _how_to_add(provider)
            )
        changes: dict[str, str] = {}
        account = own_accounts().get(provider)
        if name != DEFAULT and account is not None:
            changes[account.folder_variable] = str(self._folder / account.name / name)
        elif name != DEFAULT:
            if not (key := self._keys.key(provider, name)):
                raise AgentTuiError(
                    f"The key of the {provider} account {name} is gone.", _how_to_add(provider)
                )
            changes = dict.fromkeys(KEY_VARIABLES[provider], "") | {KEEPABLE[provider]: key}
        for variable in (account.folder_variable,) if account else KEY_VARIABLES[provider]:
            self.environ.pop(variable, None)
        self.environ.update(changes)
        self._used[provider] = name
        self.on_switch(provider)


def make_switch(settings: Settings, environ: Mapping[str, str]) -> NamedAccounts:
    """The accounts of the user.

    Raises:
        AgentTuiError: The setting names an account that does not exist or cannot be used.
    """
    accounts = NamedAccounts(environ, key_store(), accounts_folder())
    accounts.begin(settings.of(AccountSettings).account)
    return accounts


def accounts_folder() -> Path:
    """The folder with the tokens of named sign-ins."""
    return paths.user_data_dir() / "accounts"


def _folders_in(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if is_account_name(entry.name)]
    except OSError:
        return []


def _how_to_add(provider: str) -> str:
    account = own_accounts().get(provider)
    return f"Add one with agent-tui login {account.name if account else provider} --as NAME."
