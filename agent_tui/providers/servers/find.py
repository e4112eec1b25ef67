"""Finds model servers: which run on this machine, their models and windows.

A server that does not respond in time, or responds with something else, counts as absent.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from agent_tui.local_models.addresses import is_loopback
from agent_tui.providers.base import FoundModel
from agent_tui.providers.servers.client import PATIENCE_S, REMOTE_PATIENCE_S, ServerClient
from agent_tui.providers.servers.kinds import ServerAddress
from agent_tui.providers.servers.models import ServedModel, read_any, read_models


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that responded.

    Attributes:
        title: Its kind, ``server`` if unknown.
        base_url: Where it speaks OpenAI's protocol.
        models: Its chat models.
        problem: Why there are none, in words for the user; empty if nothing is wrong.
        api_key_env: The variable with the key it was sent; empty for none.
    """

    title: str
    base_url: str
    models: tuple[ServedModel, ...]
    problem: str = ""
    api_key_env: str = ""

    @property
    def via(self) -> str:
        """Kind and address, for the user."""
        return f"{self.title} at {urlsplit(self.base_url).netloc.rpartition('@')[2]}"

    def found_models(self) -> tuple[FoundModel, ...]:
        """Its models as choices."""
        return tuple(m.found_at(self.base_url, self.via, self.api_key_env) for m in self.models)


def find_servers(
    addresses: Sequence[ServerAddress], *, patience_s: float = PATIENCE_S
) -> tuple[RunningServer, ...]:
    """The servers that respond at `addresses`; blocks for at most `patience_s` seconds.

    All are queried in parallel, without a key.
    """
    if not addresses:
        return ()
    with ThreadPoolExecutor(len(addresses), "servers") as pool:
        found = pool.map(partial(_server_of_kind, patience_s=patience_s), addresses)
        return tuple(server for server in found if server is not None)


def server_at(
    base_url: str, api_key: str = "", api_key_env: str = "", *, patience_s: float | None = None
) -> RunningServer | None:
    """The server at `base_url`, of any kind; None if nothing responds there. Blocking.

    Args:
        base_url: As for ``--base-url``, with its ``/v1``.
        api_key: Sent to this address only; empty for none.
        api_key_env: The variable it comes from, for the models' references.
        patience_s: Seconds for all queries; None for a default that depends on its location.
    """
    if patience_s is None:
        patience_s = PATIENCE_S if is_loopback(base_url) else REMOTE_PATIENCE_S
    server = ServerClient(base_url, api_key, patience_s=patience_s)
    kind, models = read_any(server)
    return _found(server, kind or "server", base_url, models, api_key_env)


def _server_of_kind(address: ServerAddress, patience_s: float) -> RunningServer | None:
    """The server at `address`: of the kind that is usual there, or another."""
    server = ServerClient(address.base_url, patience_s=patience_s)
    kind, models = address.kind, read_models(server, address.kind)
    if not models:
        other, models = read_any(server)
        kind = (other or "server") if models else kind
    return _found(server, kind, address.base_url, models)


def _found(
    server: ServerClient,
    title: str,
    base_url: str,
    models: tuple[ServedModel, ...],
    api_key_env: str = "",
) -> RunningServer | None:
    """The server that responded; None if it is not a model server."""
    problem = "" if models else _problem(server)
    if not models and not problem:
        return None
    return RunningServer(title, base_url, models, problem, api_key_env)


def _problem(server: ServerClient) -> str:
    if server.wants_key:
        return "needs an API key: name its variable with --base-url and --api-key-env"
    return "is loading its model" if server.is_loading else ""
