"""The kinds of model servers, which features bring: where each listens, and how it is read."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias, cast
from urllib.parse import urlsplit

from agent_tui.config.model_addresses import is_loopback
from agent_tui.feature import load_object, own_features
from agent_tui.providers.servers.client import ServerClient
from agent_tui.providers.servers.models import ServedModel, ServerListing, only_for_chat

HOST: Final = "127.0.0.1"

Ports: TypeAlias = Mapping[str, tuple[int, ...]]
"""Ports on this machine where servers may listen, by the names of their kinds."""


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A kind of model server.

    Attributes:
        name: Its name for the user.
        rank: Its place among the kinds, which no other has. Servers are searched for and listed
            from the lowest. The highest comes first when the API tells the kind of a server: the
            APIs of common servers are imitated by others.
        ports: Where it listens unless told otherwise.
        start: The command that starts it.
        owner: What it writes as ``owned_by`` in its list of models.
        read: Reads its models; returns none if the server is of another kind.
        has_own_api: Whether `read` recognizes servers that write another `owner`.
        find_root: The address that the environment names, as `ServerAddress.root`; may be empty.
        lacks_model: Matches what it says if it does not have a model.
        get_model: What the user does then; ``{name}`` is that model.
    """

    name: str
    rank: int
    ports: tuple[int, ...]
    start: str
    owner: str
    read: Callable[[ServerClient], Sequence[ServedModel]]
    has_own_api: bool = True
    find_root: Callable[[Mapping[str, str]], str] = lambda _environ: ""
    lacks_model: re.Pattern[str] | None = None
    get_model: str = ""

    def way_to_get(self, problem: str) -> str:
        """`get_model` if `problem` says that a server of this kind lacks a model, else empty."""
        lacks = self.lacks_model is not None and self.lacks_model.search(problem)
        return self.get_model if lacks else ""


@cache
def own_kinds() -> tuple[ServerKind, ...]:
    """The kinds that features of the program bring, by rank."""
    names = (name for feature in own_features() for name in feature.server_kinds)
    return tuple(sorted((cast(ServerKind, load_object(n)) for n in names), key=lambda k: k.rank))


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server of one kind may run; `root` has no path: ``http://127.0.0.1:11434``."""

    kind: str
    root: str

    @property
    def base_url(self) -> str:
        """Where it speaks OpenAI's protocol."""
        return f"{self.root}/v1"

    @property
    def place(self) -> str:
        """Host and port, for the user."""
        return urlsplit(self.root).netloc


def usual_addresses(
    environ: Mapping[str, str], ports: Ports | None = None
) -> tuple[ServerAddress, ...]:
    """Where to look for servers: where the environment says, else at ports of this machine.

    Args:
        environ: May name the addresses of some kinds.
        ports: Which kinds, and their ports; None for all kinds at their usual ones.
    """
    return tuple(
        ServerAddress(kind.name, kind.find_root(environ) or f"http://{HOST}:{port}")
        for kind in own_kinds()
        for port in (kind.ports if ports is None else ports.get(kind.name, ()))
    )


def kind_at(base_url: str) -> ServerKind | None:
    """The kind of server that listens at `base_url` on this machine, by its usual port."""
    try:
        port = urlsplit(base_url).port
    except ValueError:
        return None
    if not is_loopback(base_url):
        return None
    return next((kind for kind in own_kinds() if port in kind.ports), None)


def start_command(base_url: str) -> str:
    """The command that starts the server usually at `base_url`; empty if unknown."""
    kind = kind_at(base_url)
    return kind.start if kind else ""


def read_models(server: ServerClient, kind: str) -> tuple[ServedModel, ...]:
    """The chat models of a server of this kind; none if it is another or does not respond."""
    return next((only_for_chat(k.read(server)) for k in own_kinds() if k.name == kind), ())


def read_any(server: ServerClient) -> tuple[str | None, tuple[ServedModel, ...]]:
    """The kind of an unknown server, if it can be detected, and its chat models.

    If neither its kind nor its windows are known, each kind's own API is tried.
    """
    listing = server.get(server.models_path, ServerListing)
    if listing is None:
        return None, ()
    plain = tuple(ServedModel(m.id, m.window) for m in listing.data)
    by_owner = {kind.owner: kind for kind in own_kinds()}
    kind = next((by_owner[m.owned_by] for m in listing.data if m.owned_by in by_owner), None)
    if not kind and all(m.window for m in plain):
        return None, only_for_chat(plain)
    told_by_api = [kind for kind in reversed(own_kinds()) if kind.has_own_api]
    for guess in [kind] if kind else told_by_api:
        better = {m.id: m for m in guess.read(server)}
        if any(m.id in better for m in plain):
            return guess.name, only_for_chat(better.values())
    return kind and kind.name, only_for_chat(plain)
