"""The system keyring (Keychain, Secret Service, KWallet); its package is an extra."""

import importlib
from collections.abc import Callable
from typing import Final, Protocol, TypeVar, cast

from agent_tui.errors import AgentTuiError
from agent_tui.installation import install_command

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
        return _asked(lambda: self._module.get_password(_SERVICE, name)) or ""

    def write(self, name: str, text: str) -> None:
        """See `Keyring.write`."""
        _asked(lambda: self._module.set_password(_SERVICE, name, text))
        if self.read(name) != text:
            raise KeyringError("The system keyring did not store the key.")

    def remove(self, name: str) -> None:
        """See `Keyring.remove`."""
        if self.read(name):
            _asked(lambda: self._module.delete_password(_SERVICE, name))


def _asked(ask: Callable[[], _T]) -> _T:
    try:
        return ask()
    except Exception as error:  # backends raise errors of D-Bus or the Keychain
        if type(error).__name__ == "NoKeyringError":
            raise KeyringError(
                "This machine has no usable keyring (Keychain, Secret Service, KWallet)."
            ) from error
        why = str(error) or type(error).__name__
        raise KeyringError(f"Cannot use the system keyring: {why}.") from error
