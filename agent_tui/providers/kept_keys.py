"""Provider keys that the user has stored, in a file or the system keyring."""

import importlib
import json
import re
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, TypeVar, cast

from agent_tui.atomic_files import replace_private_file
from agent_tui.errors import AgentTuiError
from agent_tui.installation import install_command
from agent_tui.messages import JsonObject
from agent_tui.providers.keys import KEY_VARIABLES
from agent_tui.providers.wires.parts import as_object, text_at
from agent_tui.regular_files import read_regular_file

_T = TypeVar("_T")

_SERVICE: Final = "agent-tui"
_PROBE: Final = "is it there"


class KeyringError(AgentTuiError):
    """The keyring cannot be used; says why."""


class Keyring(Protocol):
    """Texts by name, stored by the system."""

    def read(self, name: str) -> str:
        """The text stored as `name`; empty if there is none.

        Raises:
            KeyringError: The keyring cannot be read.
        """
        ...

    def write(self, name: str, text: str) -> None:
        """Store `text` as `name`.

        Raises:
            KeyringError: It could not be stored.
        """
        ...

    def remove(self, name: str) -> None:
        """Delete the text stored as `name`.

        Raises:
            KeyringError: It could not be deleted.
        """
        ...


class _Module(Protocol):
    def get_password(self, service: str, name: str) -> str | None: ...
    def set_password(self, service: str, name: str, text: str) -> None: ...
    def delete_password(self, service: str, name: str) -> None: ...


class SystemKeyring:
    """The keyring of this system.

    Raises:
        KeyringError: There is none, it is locked, or the package is not installed.
    """

    def __init__(self) -> None:
        try:
            self._module = cast(_Module, importlib.import_module("keyring"))
        except ModuleNotFoundError as error:
            raise KeyringError(
                "Using the system keyring requires the package keyring.", install_command("keyring")
            ) from error
        self.read(_PROBE)

    def read(self, name: str) -> str:
        """See `Keyring.read`."""
        return _ask(lambda: self._module.get_password(_SERVICE, name)) or ""

    def write(self, name: str, text: str) -> None:
        """See `Keyring.write`."""
        _ask(lambda: self._module.set_password(_SERVICE, name, text))
        if self.read(name) != text:
            raise KeyringError("The system keyring did not store the key.")

    def remove(self, name: str) -> None:
        """See `Keyring.remove`."""
        if self.read(name):
            _ask(lambda: self._module.delete_password(_SERVICE, name))


def _ask(ask: Callable[[], _T]) -> _T:
    try:
        return ask()
    except Exception as error:  # backends raise errors of D-Bus or the Keychain
        if type(error).__name__ == "NoKeyringError":
            raise KeyringError(
                "This machine has no usable keyring (Keychain, Secret Service, KWallet)."
            ) from error
        why = str(error) or type(error).__name__
        raise KeyringError(f"Cannot use the system keyring: {why}.") from error


KEEPABLE: Final[Mapping[str, str]] = MappingProxyType(
    {name: variables[0] for name, variables in KEY_VARIABLES.items() if name != "bedrock"}
)
"""Providers whose key is one text, and its variable. Amazon's is two, and not only for models."""

_IN_KEYRING: Final[JsonObject] = {"is_in_keyring": True}


@dataclass(frozen=True, slots=True)
class FilledIn:
    """The result of adding stored keys to the environment.

    Attributes:
        places: Where each key comes from, by the variable it was put into.
        problems: What could not be read, for the user.
    """

    places: Mapping[str, str]
    problems: tuple[str, ...]


NAME_RULE: Final = "1 to 32 lower-case letters, digits, - and _, a letter or digit first"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


def is_account_name(name: str) -> bool:
    """Whether an account can have that name, which is part of the names of files."""
    return _NAME.fullmatch(name) is not None


class KeptKeys:
    """One file per provider and account: holds the key, or says that the keyring does.

    An account without a name is the usual one.

    Args:
        folder: The folder of the files, which only the owner may read.
        keyring: Opens the keyring; called only if a key is in it or goes into it.
    """

    def __init__(self, folder: Path, keyring: Callable[[], Keyring] = SystemKeyring) -> None:
        self._folder = folder
        self._keyring = keyring

    def places(self) -> Mapping[str, str]:
        """Where each key is stored, by provider: its file, or ``the keyring``."""
        kept = {provider: self._read(provider) for provider in KEEPABLE}
        return {
            provider: "the keyring" if "is_in_keyring" in entry else str(self._file(provider))
            for provider, entry in kept.items()
            if entry
        }

    def names(self, provider: str) -> tuple[str, ...]:
        """The names of accounts with a key for `provider`, without the usual one."""
        stems = (path.stem for path in self._folder.glob(f"{provider}@*.json"))
        found = (stem.partition("@")[2] for stem in stems)
        return tuple(sorted(name for name in found if self._read(provider, name)))

    def place(self, provider: str, name: str) -> str:
        """Where the key of an account is stored: its file, or ``the keyring``."""
        is_in_keyring = "is_in_keyring" in self._read(provider, name)
        return "the keyring" if is_in_keyring else str(self._file(provider, name))

    def key(self, provider: str, name: str) -> str:
        """The key of an account; empty if it is gone.

        Raises:
            KeyringError: The keyring cannot be read.
        """
        entry = self._read(provider, name)
        if "is_in_keyring" in entry:
            return self._keyring().read(_stem(provider, name))
        return text_at(entry, "key")

    def keep(self, provider: str, key: str, *, in_keyring: bool, name: str = "") -> None:
        """Store `key` for an account, replacing a previous one.

        Raises:
            KeyringError: The keyring does not accept it.
            OSError: The file cannot be written.
        """
        if in_keyring:
            self._keyring().write(_stem(provider, name), key)
        else:
            with suppress(KeyringError):  # it stays there unused
                self.forget(provider, name)
        entry: JsonObject = _IN_KEYRING if in_keyring else {"key": key}
        replace_private_file(self._file(provider, name), json.dumps(entry))

    def forget(self, provider: str, name: str = "") -> bool:
        """Delete the key of an account; returns whether there was one.

        Raises:
            KeyringError: The keyring cannot delete it; it is no longer used anyway.
            OSError: The file cannot be removed.
        """
        entry = self._read(provider, name)
        self._file(provider, name).unlink(missing_ok=True)
        if "is_in_keyring" in entry:
            self._keyring().remove(_stem(provider, name))
        return bool(entry)

    def fill(self, environ: MutableMapping[str, str]) -> FilledIn:
        """Add the stored keys to `environ`.

        A variable of the provider that is already set wins, even an empty one. May wait for the
        user to unlock the keyring.
        """
        found: dict[str, str] = {}
        problems: list[str] = []
        for provider, place in self.places().items():
            if any(variable in environ for variable in KEY_VARIABLES[provider]):
                continue
            try:
                key = self.key(provider, "")
            except KeyringError as error:
                problems.append(f"Cannot read the key of {provider}. {error}")
                continue
            if key:
                environ[KEEPABLE[provider]] = key
                found[KEEPABLE[provider]] = place
            else:
                again = f"Store it again: agent-tui login {provider} --keyring"
                problems.append(f"The keyring no longer has a key for {provider}. {again}")
        return FilledIn(found, tuple(problems))

    def _file(self, provider: str, name: str = "") -> Path:
        return self._folder / f"{_stem(provider, name)}.json"

    def _read(self, provider: str, name: str = "") -> JsonObject:
        try:
            return as_object(json.loads(read_regular_file(self._file(provider, name))))
        except (OSError, ValueError):
            return {}


def _stem(provider: str, name: str) -> str:
    return f"{provider}@{name}" if name else provider
