"""Model servers: the usual ones on this machine, and those the settings name."""

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from agent_tui.cli.doctor.check import Check, State
from agent_tui.cli.doctor.surroundings import Surroundings
from agent_tui.cli.doctor.wording import listed, shown_address
from agent_tui.providers.base import is_loopback
from agent_tui.providers.servers.find import FoundServer, find_servers, server_at
from agent_tui.providers.servers.kinds import ServerAddress, start_command

_SECTION = "servers"
_CONNECT_WITHIN_S = 2.0
_USUAL_PORTS = {"http": 80, "https": 443}
_MAX_NAMES = 3


def check_server(_around: Surroundings, address: ServerAddress) -> Iterator[Check]:
    """One of the usual servers, at its usual place; asked without a key."""
    for server in find_servers((address,)):
        if server.problem:
            found = f"at {address.place}: {server.problem}"
        else:
            other = "" if server.title == address.kind else f"{server.title} "
            found = f"{other}at {address.place}, {_models(server)}"
        yield Check(_SECTION, address.kind, "info" if server.problem else "ok", found)
        return
    if not _takes_connections(address.root):
        found = f"not running at {address.place}"
        yield Check(_SECTION, address.kind, "info", found)
        return
    found = f"something listens at {address.place}, but lists no models"
    advice = f"If that is {address.kind}, load a model into it."
    yield Check(_SECTION, address.kind, "info", found, advice)


def check_base_urls(around: Surroundings) -> Iterator[Check]:
    """The ``base_url`` of the settings; only a server on this machine is asked for its models."""
    settings = around.loaded.settings
    named = [("base_url", settings.base_url, settings.api_key_env)]
    for name, own in settings.models.items():
        key_name = own.api_key_env or settings.api_key_env
        named.append((f'models."{name}"', own.base_url or "", key_name))
    for setting, base_url, key_name in named:
        if base_url:
            api_key = around.environ.get(key_name, "")
            yield _address_check(setting, base_url, api_key)


def _address_check(setting: str, base_url: str, api_key: str) -> Check:
    shown = shown_address(base_url)
    if _host_and_port(base_url) is None:
        advice = "Write it whole in config.toml: http://127.0.0.1:8080/v1"
        return Check(_SECTION, setting, "bad", f"{shown} is no address of a server", advice)
    server = server_at(base_url, api_key) if is_loopback(base_url) else None
    if server is not None and not server.problem:
        return Check(_SECTION, setting, "ok", f"{shown}, {_models(server)}")
    if server is None and not _takes_connections(base_url):
        state, advice = _how_to_reach(base_url)
        return Check(_SECTION, setting, state, f"{shown} takes no connection", advice)
    if not is_loopback(base_url):
        found = f"{shown} takes connections; its models were not asked for"
        return Check(_SECTION, setting, "ok", found)
    said = server.problem if server is not None else "takes connections, but lists no models"
    advice = (
        "Look whether the address ends as the server wants it (mostly /v1), whether api_key_env "
        "names its key, and whether a model is loaded."
    )
    return Check(_SECTION, setting, "warning", f"{shown} {said}", advice)


def _how_to_reach(base_url: str) -> tuple[State, str]:
    if is_loopback(base_url):
        command = start_command(base_url)
        start = f"Start the server ({command})" if command else "Start the server"
        return "bad", f"{start}, or change the address in config.toml."
    return "warning", (
        "Start the server, or change the address in config.toml. Behind a proxy this need not be "
        "a fault: requests go through the proxy, this did not."
    )


def _host_and_port(url: str) -> tuple[str, int] | None:
    try:
        address = urlsplit(url)
        port = address.port or _USUAL_PORTS.get(address.scheme)
    except ValueError:
        return None
    return (address.hostname, port) if address.hostname and port else None


def _takes_connections(url: str) -> bool:
    place = _host_and_port(url)
    if place is None:
        return False
    try:
        with socket.create_connection(place, timeout=_CONNECT_WITHIN_S):
            return True
    except (OSError, UnicodeError):  # UnicodeError: a name too odd to be looked up
        return False


def _models(server: FoundServer) -> str:
    number = len(server.models)
    names = listed([model.id for model in server.models], limit=_MAX_NAMES)
    return f"{number} model{'' if number == 1 else 's'}: {names}"
