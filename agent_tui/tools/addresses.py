"""The canonical form of a URL, and which addresses a page may be read from.

For addresses, the resolved address counts, not the name.
"""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from agent_tui.errors import ToolError

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""The IP addresses of a host, by its name and port; raises OSError if there are none."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")


def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of `host`, as the system resolves them.

    Raises:
        OSError: There are none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


_REMEDY = "The user can allow those with the setting fetch_private."


def check_addresses(
    host: str, addresses: Sequence[str], *, may_be_private: bool, remedy: str = _REMEDY
) -> None:
    """Check that all `addresses` of `host` are allowed.

    Args:
        host: The name, for the message.
        addresses: All addresses of the host; a single forbidden one is enough to refuse.
        may_be_private: Whether this machine and private networks are allowed. Link-local addresses
            never are: clouds hand out a machine's keys there.
        remedy: What the model is told to do about a private address.

    Raises:
        ToolError: One is not allowed.
    """
    for text in addresses:
        for address in _addresses_behind(ipaddress.ip_address(text.partition("%")[0])):
            if address.is_link_local or address.is_multicast or address.is_unspecified:
                raise ToolError(f"{host} resolves to {text}, which is never fetched.")
            if not (may_be_private or _is_public(address)):
                raise ToolError(
                    f"{host} resolves to {text}, an address of this machine or a private network. "
                    f"{remedy}"
                )


def check_host(host: str, *, may_be_private: bool, remedy: str = _REMEDY) -> None:
    """Check `host` as far as it says its address, as `check_addresses` does. It asks no server.

    Raises:
        ToolError: The address is not allowed.
    """
    name = host.casefold().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        host = "127.0.0.1"
    with suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
        addresses = [str(address[4][0]) for address in found]
        check_addresses(name, addresses, may_be_private=may_be_private, remedy=remedy)


def _is_public(address: IpAddress) -> bool:
    is_site_local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    return address.is_global and not is_site_local


def _addresses_behind(address: IpAddress) -> list[IpAddress]:
    """`address`, or the IPv4 addresses embedded in it, where packets may end up."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address in _NAT64:
        return [ipaddress.IPv4Address(address.packed[-4:])]
    if address in _LOCAL_NAT64:
        return [ipaddress.IPv4Address("127.0.0.1")]
    carried = [address.sixtofour, *(address.teredo or ())]
    return [address, *(one for one in carried if one is not None)]
