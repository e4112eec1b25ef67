"""What the catalog knows about models at servers: found ones, and those in the settings."""

import asyncio
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from agent_tui.config import Settings
from agent_tui.config.addresses import address_problem
from agent_tui.config.model_addresses import display_address, is_loopback
from agent_tui.errors import ConfigError
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef, reply_limit
from agent_tui.providers.servers.client import PATIENCE_S, REMOTE_PATIENCE_S, ServerClient
from agent_tui.providers.servers.kinds import (
    HOST,
    Ports,
    ServerAddress,
    read_any,
    read_models,
    usual_addresses,
)
from agent_tui.providers.servers.models import GUESSED_WINDOW, ServedModel


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

    def list_models(self) -> tuple[FoundModel, ...]:
        """Its models as choices."""
        return tuple(m.at_address(self.base_url, self.via, self.api_key_env) for m in self.models)


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
    return _running_server(server, kind or "server", base_url, models, api_key_env)


def _server_of_kind(address: ServerAddress, patience_s: float) -> RunningServer | None:
    """The server at `address`: of the kind that is usual there, or another."""
    server = ServerClient(address.base_url, patience_s=patience_s)
    kind, models = address.kind, read_models(server, address.kind)
    if not models:
        other, models = read_any(server)
        kind = (other or "server") if models else kind
    return _running_server(server, kind, address.base_url, models)


def _running_server(
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


class ServerCatalog:
    """Models of servers, by how they are reached; remembers what a server reported.

    Args:
        settings: ``base_url``, ``api_key_env`` and the addresses in ``[models]``.
        environ: Holds the keys for those addresses, and the addresses of some kinds.
        ports: Where servers are searched for on this machine; None for the usual ports.
        patience_s: Seconds that the search may take.
    """

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        ports: Ports | None,
        patience_s: float,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._ports = ports
        self._patience_s = patience_s
        self._known: dict[ModelRef, ModelInfo] = {}
        self._added: list[str] = []

    def info(self, ref: ModelRef) -> ModelInfo:
        """What its server reported about `ref`, else a guess."""
        guess = ModelInfo(ref.name, GUESSED_WINDOW, reply_limit(GUESSED_WINDOW))
        return self._known.get(ref, guess)

    def find_model(self, name: str) -> ModelRef | None:
        """The first model found so far that its server or a session calls `name`.

        A tag ``:latest`` and the folder of a file may be left out.
        """
        refs = (ref for ref in self._known if ref.provider == "openai")
        return next((ref for ref in refs if name in _names_of(ref)), None)

    async def learn(self, ref: ModelRef) -> None:
        """Query the server of `ref`, unless it has already stated its window.

        A window that it only assumes (the model is not loaded yet) is queried again each time.
        """
        if ref not in self._known or self._known[ref].source == "guess":
            key = self._environ.get(ref.api_key_env, "")
            server = await asyncio.to_thread(server_at, ref.base_url, key, ref.api_key_env)
            self._remember(server.list_models() if server else ())

    def find_running(self) -> tuple[RunningServer, ...]:
        """The servers that run now; their models can then be found by name. Blocking."""
        addresses = usual_addresses(self._environ, self._ports)
        servers = find_servers(addresses, patience_s=self._patience_s)
        for server in servers:
            self._remember(server.list_models())
        return servers

    async def list_models(self) -> tuple[FoundModel, ...]:
        """The models at the addresses in the settings, then of other running servers."""
        running, named = await asyncio.gather(
            asyncio.to_thread(self.find_running), self._at_named_addresses()
        )
        places = {_place(server.base_url) for server in named}
        others = (server for server in running if _place(server.base_url) not in places)
        found = [model for server in (*named, *others) for model in server.list_models()]
        self._remember(found)
        return tuple(found)

    async def find_at(self, address: str) -> tuple[FoundModel, ...]:
        """The models of the server at `address`; `list_models` lists them from now on.

        The address may lack its scheme and its ``/v1``.

        Raises:
            ConfigError: It lists none.
        """
        address = address.rstrip("/") if "://" in address else f"http://{address}".rstrip("/")
        if problem := address_problem(address):
            raise ConfigError(f"{display_address(address)} {problem}.", "Check it for typos.")
        problem = ""
        for base_url in dict.fromkeys((f"{address.removesuffix('/v1')}/v1", address)):
            server = await asyncio.to_thread(server_at, base_url)
            if server is not None and server.models:
                found = server.list_models()
                self._remember(found)
                self._added.append(base_url)
                return found
            problem = problem or (server.problem if server else "")
        raise ConfigError(
            f"The server at {display_address(address)} lists no models.",
            f"It {problem}." if problem else "Check the address, and that the server is running.",
        )

    def first_at_base_url(self) -> ModelRef:
        """The first model that the server at ``base_url`` lists. Blocking.

        Raises:
            ConfigError: It lists none.
        """
        base_url, key_env = self._settings.base_url, self._settings.api_key_env
        server = server_at(base_url, self._environ.get(key_env, ""), key_env)
        if server is None or not server.models:
            problem = f" It {server.problem}." if server and server.problem else ""
            raise ConfigError(
                f"The server at {display_address(base_url)} lists no models.{problem}",
                "Choose one with {model}.",
            )
        found = server.list_models()
        self._remember(found)
        return found[0].ref

    async def _at_named_addresses(self) -> list[RunningServer]:
        settings = self._settings
        named = [(settings.base_url, settings.api_key_env)]
        named += [(own.base_url or "", own.api_key_env or "") for own in settings.models.values()]
        named += [(base_url, "") for base_url in self._added]
        asks = (self._ask(*address) for address in dict.fromkeys(named) if address[0])
        return [server for server in await asyncio.gather(*asks) if server is not None]

    async def _ask(self, base_url: str, key_env: str) -> RunningServer | None:
        key = self._environ.get(key_env, "")
        ask = partial(server_at, base_url, key, key_env, patience_s=self._patience_s)
        try:
            async with asyncio.timeout(2 * self._patience_s):  # a name lookup has no limit
                return await asyncio.to_thread(ask)
        except TimeoutError:
            return None

    def _remember(self, models: Iterable[FoundModel]) -> None:
        """Remember what servers reported, under both names by which a model may be called."""
        for model in models:
            for name in (model.ref.model_id, model.ref.name):
                ref = dataclasses.replace(model.ref, name=name)
                self._known[ref] = dataclasses.replace(model.info, name=name)


def _names_of(ref: ModelRef) -> tuple[str, ...]:
    file_name = ref.model_id.rpartition("/")[2]
    by_file = (file_name,) if file_name.endswith(".gguf") else ()
    return (ref.name, ref.model_id, ref.model_id.removesuffix(":latest"), *by_file)


def _place(base_url: str) -> str:
    """An address in a comparable form: this machine has several names."""
    place = urlsplit(base_url).netloc.rpartition("@")[2]
    return re.sub(r"^(?:localhost|\[::1\])(?=:|$)", HOST, place)
