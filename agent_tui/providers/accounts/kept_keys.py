"""Provider keys that the user has stored, for when the environment has none."""

import json
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from agent_tui.atomic_files import replace_private_file
from agent_tui.messages import JsonObject
from agent_tui.providers.accounts.device import as_object
from agent_tui.providers.accounts.keyring import Keyring, KeyringError, SystemKeyring
from agent_tui.providers.keys import KEY_VARIABLES
from agent_tui.providers.wires.fields import text_at
from agent_tui.regular_files import read_regular_file

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


class KeptKeys:
    """One file per provider: holds its key, or says that the keyring does.

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

    def keep(self, provider: str, key: str, *, in_keyring: bool) -> None:
        """Store `key` for `provider`, replacing a previous one.

        Raises:
            KeyringError: The keyring does not accept it.
            OSError: The file cannot be written.
        """
        if in_keyring:
            self._keyring().write(provider, key)
        else:
            with suppress(KeyringError):  # it stays there unused
                self.forget(provider)
        entry: JsonObject = _IN_KEYRING if in_keyring else {"key": key}
        replace_private_file(self._file(provider), json.dumps(entry))

    def forget(self, provider: str) -> bool:
        """Delete the key of `provider`; returns whether there was one.

        Raises:
            KeyringError: The keyring cannot delete it; it is no longer used anyway.
            OSError: The file cannot be removed.
        """
        entry = self._read(provider)
        self._file(provider).unlink(missing_ok=True)
        if "is_in_keyring" in entry:
            self._keyring().remove(provider)
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
                key = self._key(provider)
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

    def _key(self, provider: str) -> str:
        entry = self._read(provider)
        if "is_in_keyring" in entry:
            return self._keyring().read(provider)
        return text_at(entry, "key")

    def _file(self, provider: str) -> Path:
        return self._folder / f"{provider}.json"

    def _read(self, provider: str) -> JsonObject:
        try:
            return as_object(json.loads(read_regular_file(self._file(provider))))
        except (OSError, ValueError):
            return {}
