"""Which addresses models may be downloaded from, and how addresses are shown without secrets."""

import re
from ipaddress import ip_address
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from agent_tui.config.addresses import address_problem
from agent_tui.errors import ModelFileError

_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY: Final = re.compile(r"(?<=[?])[^\s'\")>]+")
_LATER_PART: Final = re.compile(r"-\d{5}-of-\d{5}\.gguf$")


def is_address(what: str) -> bool:
    """Whether `what` is an address rather than a name."""
    return "://" in what


def is_loopback(address: str) -> bool:
    """Whether `address` points to this machine."""
    try:
        host = urlsplit(address).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(address: str) -> None:
    """Refuse an address that is not allowed: only https, or http from this machine.

    Raises:
        ModelFileError: The address is of another kind, or names one part of a split model.
    """
    parts = _split(address)
    if address_problem(address) or not (parts.scheme == "https" or _is_plain_loopback(parts)):
        raise ModelFileError(
            f"Cannot download {display_address(address)}: only https URLs are supported.",
            "Download the file yourself, then: agent-tui models add PATH",
        )
    if _LATER_PART.search(parts.path):
        raise ModelFileError(
            f"{display_address(address)} is one of several files of a split model.",
            "Download all of them, then add the first: agent-tui models add PATH",
        )


def next_address(address: str, location: str) -> str:
    """The address that a redirect of `address` to `location` (may be relative) leads to.

    Raises:
        ModelFileError: It leads to what `check_address` refuses, or from https to plain http.
    """
    try:
        target = urljoin(address, location)
    except ValueError as error:
        raise ModelFileError(
            f"{display_address(address)} redirects to an invalid URL.", "Try another URL."
        ) from error
    parts = _split(target)
    was_plain = _split(address).scheme == "http"
    is_allowed = parts.scheme == "https" or (was_plain and _is_plain_loopback(parts))
    if parts.hostname and is_allowed:
        return target
    raise ModelFileError(
        f"{display_address(address)} redirects to {display_address(target)}, which is not allowed.",
        "Try another URL.",
    )


def display_address(address: str) -> str:
    """`address` without user, password, query and fragment."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return without_secrets(address)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl()


def without_secrets(text: str) -> str:
    """`text` with credentials and queries masked in its addresses."""
    return _QUERY.sub("****", _CREDENTIALS.sub("****@", text))


def file_stem(address: str) -> str:
    """The last part of the address's path, without its suffix."""
    return PurePosixPath(unquote(_split(address).path)).stem


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError as error:
        raise ModelFileError(
            f"{without_secrets(address)} is not a valid URL.", "Check it for typos."
        ) from error


def _is_plain_loopback(parts: SplitResult) -> bool:
    return parts.scheme == "http" and is_loopback(parts.geturl())
