"""Amazon's credentials: signed requests, and framed event streams.

botocore comes with litellm and has no types; its import takes 0.4 s.
"""

import importlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.providers.wires.base import (
    Framing,
    InTime,
    MalformedReplyError,
    MissingKeyError,
    RefusedError,
)

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

    Args:
        region: The region to sign for.

    Raises:
        MissingKeyError: There are none.
    """

    def __init__(self, region: str) -> None:
        self.is_for_one_address = True
        self._region = region
        self._auth: Any = importlib.import_module("botocore.auth")
        self._requests: Any = importlib.import_module("botocore.awsrequest")
        sessions: Any = importlib.import_module("botocore.session")
        self._credentials = sessions.Session().get_credentials()
        if self._credentials is None:
            raise MissingKeyError(_KEY_VARIABLE)

    def headers(self, url: str, content: bytes) -> dict[str, str]:
        """The headers that sign a POST of JSON; blocks while credentials are renewed."""
        request = self._requests.AWSRequest(
            method="POST", url=url, data=content, headers={"content-type": "application/json"}
        )
        frozen = self._credentials.get_frozen_credentials()
        self._auth.SigV4Auth(frozen, _SERVICE, self._region).add_auth(request)
        return dict(request.headers.items())


@dataclass(frozen=True, slots=True)
class AwsSigning:
    """Opens the account that signs requests to a region."""

    region: str

    def __call__(self, _environ: Mapping[str, str]) -> AwsAccount:
        """Find the credentials; blocks."""
        return AwsAccount(self.region)


async def _read_frames(
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


FRAMES: Final = Framing("application/vnd.amazon.eventstream", _read_frames)
"""How Bedrock sends the events of a reply."""
