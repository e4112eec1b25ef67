"""Web addresses of model servers and MCP servers, as written by users."""

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_SCHEMES: Final = ("http", "https")
_MAX_PORT: Final = 65_535
_CREDENTIALS: Final = re.compile(r"(?<=//)[^/@\s]*@")


def address_problem(address: str) -> str:
    """What is wrong with a web address, as text to follow it; empty if nothing."""
    if not address.isprintable() or " " in address:
        return "contains a space or a control character"
    try:
        parts = urlsplit(address)
    except ValueError:
        return "is not a valid URL: check its brackets"
    if parts.scheme not in _SCHEMES:
        return "must begin with http:// or https://"
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        return f"needs a port from 1 to {_MAX_PORT}"
    host = parts.hostname or ""
    return "" if _is_host(host) else "has no valid host"


def check_address(address: str) -> str:
    """Returns `address` if it is valid.

    Raises:
        ValueError: It is not a web address; says why.
    """
    if problem := address_problem(address):
        shown = _CREDENTIALS.sub("", address)
        raise ValueError(f"{shown!r} {problem}")
    return address


def _is_host(host: str) -> bool:
    if ":" in host or host.replace(".", "").isdecimal():
        try:
            ip_address(host)
        except ValueError:
            return False
        return True
    try:
        return bool(host.removesuffix(".").encode("idna"))
    except UnicodeError:
        return False
