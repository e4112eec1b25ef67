"""Tokens of a Google account. google-auth has no types."""

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_tui.installation import install_command
from agent_tui.providers.wires.base import MissingKeyError

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_VARIABLES = ("VERTEXAI_CREDENTIALS", "VERTEX_CREDENTIALS")
_ELSE = "VERTEX_API_KEY, and"


class GoogleAccount:
    """Returns a token while it is valid, and fetches a new one after that.

    The account is that of ``VERTEXAI_CREDENTIALS`` (a file, or its content) or
    ``GOOGLE_APPLICATION_CREDENTIALS``, else of ``gcloud auth application-default login``, else of
    the machine.

    Args:
        environ: Holds the variables.

    Raises:
        MissingKeyError: There is none, or google-auth is not installed.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.is_for_one_address = False
        try:
            auth: Any = importlib.import_module("google.auth")
            transport: Any = importlib.import_module("google.auth.transport.requests")
        except ImportError:
            hint = f"google-auth is not installed: {install_command('vertex')}"
            raise MissingKeyError(f"{_ELSE} {hint}") from None
        self._request = transport.Request()
        given = next(filter(None, map(environ.get, _VARIABLES)), "")
        try:
            self._credentials: Any = (
                _load_credentials(given) if given else auth.default(scopes=_SCOPES)[0]
            )
        except (auth.exceptions.GoogleAuthError, OSError, ValueError) as error:
            raise MissingKeyError(f"{_ELSE} no Google account was found: {error}") from error
        self._error: type[Exception] = auth.exceptions.GoogleAuthError

    def headers(self, _url: str, _content: bytes) -> dict[str, str]:
        """The header with a token; blocks while one is fetched.

        Raises:
            MissingKeyError: Google issues none.
        """
        if not self._credentials.valid:
            try:
                self._credentials.refresh(self._request)
            except self._error as error:
                raise MissingKeyError(f"{_ELSE} Google returned no token: {error}") from error
        return {"authorization": f"Bearer {self._credentials.token}"}


def _load_credentials(given: str) -> object:
    """The credentials in a file, or in the JSON content of one.

    Raises:
        OSError: There is no such file.
        ValueError: Their kind is unknown.
    """
    text = given if given.lstrip().startswith("{") else Path(given).read_text(encoding="utf-8")
    info = json.loads(text)
    match info:
        case {"type": "service_account"}:
            accounts: Any = importlib.import_module("google.oauth2.service_account")
            return accounts.Credentials.from_service_account_info(info, scopes=_SCOPES)
        case {"type": "authorized_user"}:
            users: Any = importlib.import_module("google.oauth2.credentials")
            return users.Credentials.from_authorized_user_info(info, scopes=_SCOPES)
        case _:
            raise ValueError("neither a service account nor an authorized user")
