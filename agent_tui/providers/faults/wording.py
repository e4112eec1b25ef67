"""What went wrong in plain words: without class names, HTML, and the libraries' own texts."""

import re
from collections.abc import Iterable

_MAX_DETAIL_CHARS = 400
_NO_REASON = "it gave no reason."

_PREFIXES = re.compile(
    r"^(?:litellm\.)?(?:[A-Za-z_]*(?:Error|Exception|Timeout)(?: Timeout)?(?:: | - |:$)"
    r"|Timeout Error: )+"
)
_ADVICE = re.compile(r"\s*Handle with `litellm\.\w+`\.?")
_AS_BYTES = re.compile(r"b(['\"])(.*)\1\.?", re.S)
_NOTHING = re.compile(r"(?:Error code: \d+)?\.?")

_CAUSES = (
    (("ClientConnectorDNSError", "gaierror"), "its name was not found."),
    (
        ("ClientConnectorCertificateError", "SSLCertVerificationError"),
        "its certificate is not one that this machine trusts.",
    ),
    (("ClientConnectorSSLError", "SSLError"), "it does not speak TLS, or not as it should."),
    (("ConnectionRefusedError",), "it refused the connection."),
    (("ConnectTimeout", "ConnectionTimeoutError"), "it did not answer in time."),
    (
        (
            "BrokenPipeError",
            "ClientOSError",
            "ClientPayloadError",
            "ConnectionResetError",
            "ReadError",
            "RemoteProtocolError",
            "ServerDisconnectedError",
            "TransferEncodingError",
            "WriteError",
        ),
        "the connection was lost.",
    ),
    (("JSONDecodeError",), "it sent something that is not valid JSON."),
)
"""Classes of exceptions, and what they mean; the first that fits counts."""


def plain_detail(text: str) -> str:
    """A server's text as one short sentence, without litellm's class names and HTML."""
    first = _ADVICE.sub("", text.split(" Original exception: ")[0])
    while (shorter := _PREFIXES.sub("", first, count=1)) != first:
        first = shorter
    if quoted := _AS_BYTES.fullmatch(first):
        first = quoted[2]
    if re.search(r"<(?:!doctype|html|head|body)\b", first, re.I):
        title = re.search(r"<title>(.*?)</title>", first, re.I | re.S)
        first = title[1] if title else "a page of HTML instead of an answer"
    first = " ".join(first.split())
    if _NOTHING.fullmatch(first):
        return _NO_REASON
    if len(first) > _MAX_DETAIL_CHARS:
        return first[: _MAX_DETAIL_CHARS - 1] + "…"
    return first if first.endswith((".", "!", "?")) else first + "."


def connection_detail(causes: Iterable[str]) -> str:
    """What classes of exceptions say of a connection, as a sentence; empty when nothing.

    Their texts are not for people: "Cannot connect to host … ssl:<ssl.SSLContext object …>".
    """
    found = frozenset(causes)
    return next((words for names, words in _CAUSES if not found.isdisjoint(names)), "")
