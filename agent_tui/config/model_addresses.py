"""Which addresses models may be downloaded from, and how addresses are shown without secrets."""

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY: Final = re.compile(r"(?<=[?])[^\s'\")>]+")


def is_loopback(address: str) -> bool:
    """Whether `address` points to this machine."""
    try:
        host = urlsplit(address).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


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
