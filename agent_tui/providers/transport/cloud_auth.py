"""Credentials of Amazon and Google: signed requests, framed event streams, and tokens.

botocore comes with litellm and has no types; its import takes 0.4 s.
"""

import importlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from pydantic import JsonValue

from agent_tui.installation import install_command
from agent_tui.messages import JsonObject
from agent_tui.providers.wires.base import (
    InTime,
    MalformedReplyError,
    MissingKeyError,
    RefusedError,
)

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

    def headers(self) -> dict[str, str]:
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


_SERVICE = "bedrock"
_KEY_VARIABLE = "AWS_BEARER_TOKEN_BEDROCK or AWS_ACCESS_KEY_ID"
_STATUS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "modelTimeoutException": 408,
        "serviceUnavailableException": 503,
        "throttlingException": 429,
        "validationException": 400,
    }
)
"""Exceptions in frames that are final; after any other the same request may succeed."""


class AwsAccount:
    """Signs requests (Signature Version 4).

    The credentials are those that Amazon's own tools would use: from the environment, a profile,
    single sign-on, or a role of the machine.

    Raises:
        MissingKeyError: There are none.
    """

    def __init__(self) -> None:
        self._auth: Any = importlib.import_module("botocore.auth")
        self._requests: Any = importlib.import_module("botocore.awsrequest")
        sessions: Any = importlib.import_module("botocore.session")
        self._credentials = sessions.Session().get_credentials()
        if self._credentials is None:
            raise MissingKeyError(_KEY_VARIABLE)

    def headers(self, url: str, content: bytes, region: str) -> dict[str, str]:
        """The headers that sign a POST of JSON; blocks while credentials are renewed."""
        request = self._requests.AWSRequest(
            method="POST", url=url, data=content, headers={"content-type": "application/json"}
        )
        frozen = self._credentials.get_frozen_credentials()
        self._auth.SigV4Auth(frozen, _SERVICE, region).add_auth(request)
        return dict(request.headers.items())


async def read_frames(
    pieces: AsyncIterator[bytes], in_time: InTime
) -> AsyncGenerator[JsonObject, None]:
    """The events in the frames of `pieces`, each an object with its kind as the only name.

    Raises:
        RefusedError: One is an exception.
        MalformedReplyError: A frame is damaged or not JSON.
    """
    eventstream: Any = importlib.import_module("botocore.eventstream")
    frames = eventstream.EventStreamBuffer()
    while (piece := await in_time(anext(pieces, None))) is not None:
        frames.add_data(piece)
        try:
            for frame in frames:
                yield _event(frame.headers, frame.payload)
        except (eventstream.ParserError, ValueError) as error:
            raise MalformedReplyError("its stream holds a malformed frame") from error


def _event(headers: Mapping[str, str], payload: bytes) -> JsonObject:
    value = cast(JsonValue, json.loads(payload or b"{}"))
    if (kind := headers.get(":event-type")) is not None:
        return {kind: value}
    kind = headers.get(":exception-type") or headers.get(":error-code") or "exception"
    said = value.get("message") if isinstance(value, dict) else None
    text = said if isinstance(said, str) else headers.get(":error-message", kind)
    error: JsonObject = {"message": text, "type": kind}
    raise RefusedError(text, _STATUS.get(kind), {"error": error})
