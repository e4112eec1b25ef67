"""What the program needs to know about an account."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_tui.providers.accounts.device import DeviceService


@dataclass(frozen=True, slots=True)
class Account:
    """An account whose tokens litellm renews.

    Attributes:
        name: Its name for ``agent-tui login``.
        provider: The prefix before the slash in the names of its models.
        title: Its usual name.
        files: The files that hold its tokens, given the environment.
        has_token: Whether the first of these files holds a token; it may have been revoked.
        service: The service to sign in with, given the environment.
    """

    name: str
    provider: str
    title: str
    files: Callable[[Mapping[str, str]], tuple[Path, ...]]
    has_token: Callable[[Path], bool]
    service: Callable[[Mapping[str, str]], DeviceService]

    def is_signed_in(self, environ: Mapping[str, str]) -> bool:
        """Whether a token is stored; only a request shows whether it is still valid."""
        return self.has_token(self.files(environ)[0])

    def sign_out(self, environ: Mapping[str, str]) -> bool:
        """Remove the stored tokens; returns whether there were any."""
        was_in = self.is_signed_in(environ)
        for file in self.files(environ):
            file.unlink(missing_ok=True)
        return was_in
