"""The account at Google that its own tools would take; google-auth comes with the extra."""

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
    """Gives tokens as long as they are good, and fetches new ones after that.

    It is the account of ``VERTEXAI_CREDENTIALS`` (a file, or what is in one) or
    ``GOOGLE_APPLICATION_CREDENTIALS``, else of ``gcloud auth application-default login``, else of
    the machine.

    Args:
        environ: Where the variables are looked for.

    Raises:
        MissingKeyError: there is none, or google-auth is not installed.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        try:
            auth: Any = importlib.import_module("google.auth")
            transport: Any = importlib.import_module("google.auth.transport.requests")
        except ImportError:
            hint = f"google-auth is not installed: {install_command('vertex')}"
            raise MissingKeyError(f"{_ELSE} {hint}") from None
        self._request = transport.Request()
        given = next(filter(None, map(environ.get, _VARIABLES)), "")
        try:
            self._credentials: Any = _named(given) if given else auth.default(scopes=_SCOPES)[0]
        except (auth.exceptions.GoogleAuthError, OSError, ValueError) as error:
            raise MissingKeyError(f"{_ELSE} no Google account was found: {error}") from error
        self._error: type[Exception] = auth.exceptions.GoogleAuthError

    def headers(self) -> dict[str, str]:
        """The header with a token; blocks while one is fetched.

        Raises:
            MissingKeyError: Google gives none.
        """
        if not self._credentials.valid:
            try:
                self._credentials.refresh(self._request)
            except self._error as error:
                raise MissingKeyError(f"{_ELSE} Google returned no token: {error}") from error
        return {"authorization": f"Bearer {self._credentials.token}"}


def _named(given: str) -> object:
    """The credentials in a file, or in the JSON of one.

    Raises:
        OSError: there is no such file.
        ValueError: they are of no kind that is known.
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
