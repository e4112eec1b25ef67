"""What an account is to this program."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_tui.providers.accounts.device import DeviceService


@dataclass(frozen=True, slots=True)
class Account:
    """An account, whose tokens litellm renews.

    Attributes:
        name: What ``agent-tui login`` calls it.
        provider: What stands before the slash in the names of its models.
        title: What people call it.
        files: Where its tokens are kept, given the environment.
        has_token: Whether there is one in the first of these files; it may have been revoked.
        service: What it is signed in to with, given the environment.
    """

    name: str
    provider: str
    title: str
    files: Callable[[Mapping[str, str]], tuple[Path, ...]]
    has_token: Callable[[Path], bool]
    service: Callable[[Mapping[str, str]], DeviceService]

    def is_signed_in(self, environ: Mapping[str, str]) -> bool:
        """Whether a token is kept; whether it still holds shows with the first request."""
        return self.has_token(self.files(environ)[0])

    def sign_out(self, environ: Mapping[str, str]) -> bool:
        """Remove what is kept; returns whether there was any."""
        was_in = self.is_signed_in(environ)
        for file in self.files(environ):
            file.unlink(missing_ok=True)
        return was_in
