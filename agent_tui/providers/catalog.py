"""Which models exist, how large they are, their order in lists, and which one a name means."""

import asyncio
import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from agent_tui.config import ModelSettings, Settings
from agent_tui.errors import ConfigError
from agent_tui.messages import JsonObject
from agent_tui.providers.accounts import Account, own_accounts
from agent_tui.providers.base import (
    LOCAL,
    FoundModel,
    ModelInfo,
    ModelRef,
    model_name,
    reply_limit,
)
from agent_tui.providers.keys import KEY_VARIABLES, secret_variables
from agent_tui.providers.local_models import LocalModels, NoLocalModels
from agent_tui.providers.registry import OwnProvider, providers_with
from agent_tui.providers.servers.client import PATIENCE_S
from agent_tui.providers.servers.kinds import Ports
from agent_tui.providers.servers.models import GUESSED_WINDOW
from agent_tui.providers.servers.server_catalog import ServerCatalog
from agent_tui.providers.table import FAMILIES, ModelTable, read_bundled_table

_DATE: Final = re.compile(
    r"[-@.](?:20\d\d-?[01]\d-?[0-3]\d|[01]\d-20\d\d|\d{4})(?=$|[-:@.])"  # 20251101, 10-2025, 0613
)
_VERSION: Final = re.compile(
    r"(?:^|[^\d.])(\d{1,3}(?:\.\d{1,3})*)(?![\d.]|[bm](?:$|\W)|x\d)((?:-\d{1,2}(?![\w.]))*)"
)
"""A version number, not a size as in ``27b`` or ``8x7b``; including parts after dashes."""


def newest_first(names: Iterable[str]) -> list[str]:
    """`names` (``provider/model``) by version, the highest first; those without one at the end.

    Names of one version stay together: the plain name, then its variants.
    """
    return sorted(names, key=_age)


def is_aside(name: str, names: Collection[str]) -> bool:
    """Whether `name` is rarely wanted: a fine-tune, or the snapshot of a model in `names`."""
    model_id = name.partition("/")[2] or name
    undated = without_date(name)
    return model_id.startswith("ft:") or (undated != name and undated in names)


def without_date(name: str) -> str:
    """A model's name without a snapshot date; unchanged if it has none."""
    return _DATE.sub("", name)


def version_of(name: str) -> tuple[int, ...]:
    """The first version in a model's name: (4, 5) for ``claude-opus-4-5``; empty without one.

    Digits after a point are a fraction: ``grok-4.20`` came before ``grok-4.3``.
    """
    found = _VERSION.search(without_date(name.rpartition("/")[2]).lower())
    numbers = re.findall(r"[.-]?\d+", "".join(found.groups())) if found else ()
    return tuple(_number(text) for text in numbers)


def _number(text: str) -> int:
    digits = text.lstrip(".-")
    return int((digits.rstrip("0") or "0") if text.startswith(".") else digits)


def _age(name: str) -> tuple[bool, Sequence[int], str]:
    version = version_of(name)
    return not version, [*(-number for number in version), 1], name  # the 1 sorts 5 after 5.5


UNKNOWN_WINDOW = 128_000
_UNKNOWN_MAX_OUTPUT = 8_192
"""The window of an unknown model, in tokens: what most recent services offer at least."""

_CALLS_ONLY_BY_PROTOCOL: Final = frozenset(
    {
        "anthropic",
        "azure",
        "bedrock",
        "chatgpt",
        "cohere",
        "gemini",
        "github_copilot",
        "mistral",
        "openai",
        "scripted",
        "vertex_ai",
        "xai",
    }
)
"""Services whose own models never write a tool call as text: the service converts calls into the
protocol's form. What looks like one in their replies is a quotation."""

_NEAR_MATCHES = 3
_NEAR_SCORE = 60
"""Out of 100; unrelated names reach about 50."""
_RESELLER = "openrouter"


class ModelCatalog:
    """Models by name. The table is read on first use: call `load` off the event loop first.

    Args:
        settings: ``model``, ``base_url``, ``api_key_env`` and ``[models]``.
        environ: Holds the keys, and says where accounts store their tokens; only their presence
            matters here.
        table: For tests; None reads the table in litellm's wheel.
        server_ports: Where servers are searched for on this machine; None for the usual ports.
        local: The models on this machine; None for none.
        patience_s: Seconds that the search for servers may take.
        own: The program's own providers, and those of plugins.

    Attributes:
        local: The models on this machine.
    """

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        *,
        table: ModelTable | None = None,
        server_ports: Ports | None = None,
        local: LocalModels | None = None,
        patience_s: float = PATIENCE_S,
        own: Mapping[str, OwnProvider] | None = None,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._table = table
        self._own = own = providers_with() if own is None else own
        self._own_models = {model.name: model for one in own.values() for model in one.models}
        self.local = local or NoLocalModels()
        self._servers = ServerCatalog(settings, environ, server_ports, patience_s)

    def load(self) -> None:
        """Read the table; does nothing the second time."""
        if self._table is None:
            self._table = read_bundled_table()

    def entry(self, name: str) -> JsonObject:
        """See `ModelTable.entry`; reads the table the first time."""
        return self._loaded.entry(name)

    def info(self, ref: ModelRef) -> ModelInfo:
        """What is known of `ref`; settings override, and an unknown model gets a marked guess."""
        return self._with_settings(ref, self._look_up(ref))

    async def learn(self, ref: ModelRef) -> ModelInfo:
        """As `info`, after querying the model's own server if it has one.

        A server that does not respond changes nothing; the request itself will show the failure.
        """
        await asyncio.to_thread(self.load)
        if ref.is_local:
            await self.local.learn(ref)
        elif ref.base_url:
            await self._servers.learn(ref)
        return self.info(ref)

    def resolve(self, name: str) -> ModelRef:
        """The model that `name` means: exact, without its provider, or part of a name.

        A name under a known provider is accepted as it is, since new models appear daily. With a
        ``base_url`` in the settings, any other name is taken for a model of that server. Models of
        running servers are known by name after `list_models` has run.

        Raises:
            ConfigError: Nothing matches; the hint has the nearest names.
        """
        name = name.strip()
        is_local = name.startswith(f"{LOCAL}/") or name in self.local.names()
        if is_local and not self._ref(name).base_url:
            return self.local.resolve(name)
        if name in self._settings.models or name in self._own_models or name in self._loaded:
            return self._ref(name)
        if (served := self._servers.find_model(name)) is not None:
            return served
        if name and self._settings.base_url:
            return ModelRef(name, self._settings.base_url, self._settings.api_key_env)
        if self._is_known(name):
            return self._ref(name)
        if (best := self._best_match(name)) is not None:
            return self._ref(best)
        raise ConfigError(f"No model named {name!r}.", self._nearest(name))

    def resolve_exact(self, name: str) -> ModelRef:
        """The model whose name is exactly `name`, or the one that ``base_url`` has by that name.

        Nothing is guessed, so that a conversation goes nowhere else.

        Raises:
            ConfigError: There is none; the hint has the nearest names.
        """
        if name and (self._settings.base_url or self._is_listed(name)):
            return self.resolve(name)
        raise ConfigError(
            f"No model is named exactly {name!r}.",
            "A name begins with its provider; for a server of your own, give its base_url. "
            f"{self._nearest(name)}".strip(),
        )

    def default_model(self) -> ModelRef | None:
        """The model to begin with.

        That of the setting; else the first of the server at ``base_url``; else a good one of the
        first key found; else one on this machine. Blocks while querying a server.

        Raises:
            ConfigError: The setting names no model, or the server at ``base_url`` lists none.
        """
        if name := self._settings.model:
            if not self._settings.base_url and not self._is_exact(name):
                self._servers.find_running()
            return self.resolve(name)
        if self._settings.base_url:
            return self._servers.first_at_base_url()
        for provider in self._providers_with_keys():
            if (model := self.working_model(provider)) is not None:
                return model
        return self.local.default()

    def working_model(self, provider: str) -> ModelRef | None:
        """The newest of a provider's models for everyday work; None if none is known."""
        name = self._of_family(provider, is_cheap=False)
        return self._ref(name) if name is not None else None

    def cheap_model(self, ref: ModelRef) -> ModelRef | None:
        """The cheap model of `ref`'s provider, for summaries; None if there is no other."""
        if ref.base_url:
            return None
        name = self._of_family(self._provider_of(ref.name), is_cheap=True)
        if name is None or name in (ref.name, f"{self._provider_of(ref.name)}/{ref.name}"):
            return None
        return ModelRef(name, api_key_env=ref.api_key_env)

    async def list_models(self) -> tuple[FoundModel, ...]:
        """Every model that can be chosen now.

        First models on this machine and of our own providers, then of running servers, then of
        providers with a key, newest first. Rarely wanted ones come last: fine-tunes, dated
        snapshots, models not meant for text. Waits at most `patience_s` for a server that does not
        respond.
        """
        _, local, served = await asyncio.gather(
            asyncio.to_thread(self.load),
            asyncio.to_thread(self.local.list_models),
            self._servers.list_models(),
        )
        there = (
            dataclasses.replace(model, info=self._with_settings(model.ref, model.info))
            for model in (*local, *self._list_offers(), *served)
        )
        everything = (*there, *self._with_keys())
        names = {model.ref.name for model in everything}
        return tuple(sorted(everything, key=lambda model: self._is_aside(model.ref.name, names)))

    async def find_at(self, address: str) -> tuple[FoundModel, ...]:
        """The models of the server at `address`; `list_models` lists them from now on.

        Raises:
            ConfigError: It lists none.
        """
        await asyncio.to_thread(self.load)
        found = await self._servers.find_at(address)
        return tuple(
            dataclasses.replace(model, info=self._with_settings(model.ref, model.info))
            for model in found
        )

    def _is_aside(self, name: str, names: Collection[str]) -> bool:
        return is_aside(name, names) or self._loaded.is_other_kind(name)

    def secret_env_names(self) -> frozenset[str]:
        """The providers' key variables, which no command of the model needs.

        Amazon's are excluded: they are general credentials for the user's tools.
        """
        own = {self._settings.api_key_env}
        own |= {model.api_key_env or "" for model in self._settings.models.values()}
        general = {name for name in secret_variables() if name.startswith("AWS_")}
        return (secret_variables() - general) | (own - {""})

    @property
    def _loaded(self) -> ModelTable:
        self.load()
        assert self._table is not None
        return self._table

    def _of_family(self, provider: str, *, is_cheap: bool) -> str | None:
        family = FAMILIES.get(provider)
        if family is None:
            return None
        name = self._loaded.newest(provider, *(family.cheap if is_cheap else family.working))
        if name is None and family.unlisted:
            name = f"{provider}/{family.unlisted[is_cheap]}"
        return name

    def _with_settings(self, ref: ModelRef, known: ModelInfo) -> ModelInfo:
        by_protocol = self._provider_of(ref.name) in _CALLS_ONLY_BY_PROTOCOL and not ref.base_url
        if ref.name not in self._own_models:
            known = dataclasses.replace(known, writes_calls=not by_protocol)
        override = self._override(ref.name)
        if override.sees_images is not None:
            known = dataclasses.replace(known, sees_images=override.sees_images)
        if override.window is None and override.max_output is None:
            return known
        window = override.window or known.window
        return dataclasses.replace(
            known,
            window=window,
            max_output=override.max_output or min(known.max_output, reply_limit(window)),
            source="setting",
        )

    def _is_exact(self, name: str) -> bool:
        """Whether `name` identifies one model without a search."""
        return name in self._settings.models or self._is_listed(name)

    def _is_listed(self, name: str) -> bool:
        """Whether `name` is a full name, without a look at the settings."""
        return (
            name in self._loaded
            or name in self._own_models
            or name in self.local.names()
            or self._is_known(name)
        )

    def _look_up(self, ref: ModelRef) -> ModelInfo:
        if ref.base_url:
            return self._with_table_window(self._servers.info(ref))
        if ref.is_local:
            return self.local.info(ref)
        if (own := self._own_models.get(ref.name)) is not None:
            return own
        names = [ref.name, model_name(ref.provider, ref.model_id)]
        names.append(f"{self._provider_of(ref.name)}/{ref.name}")
        if ref.provider == _RESELLER:  # "claude-sonnet-4.5" there is "-4-5" at home
            names += [ref.model_id, ref.model_id.replace(".", "-")]
        entries = (self._loaded.info(name) for name in names)
        entry = next((entry for entry in entries if entry is not None), None)
        if entry is None:
            return ModelInfo(ref.name, UNKNOWN_WINDOW, _UNKNOWN_MAX_OUTPUT)
        return dataclasses.replace(entry, name=ref.name)

    def _with_table_window(self, known: ModelInfo) -> ModelInfo:
        """`known`, with the table's window for that model name if its server states none.

        Gateways put more before the model's own name: the last part counts.
        """
        if known.source != "guess" or known.window != GUESSED_WINDOW:
            return known
        last = known.name.rpartition("/")[2]
        spellings = dict.fromkeys((last, last.replace(".", "-")))
        homes = [*FAMILIES]
        alike = [name for spelling in spellings for name in self._loaded.ending(spelling)]
        alike.sort(key=lambda name: _position(name.partition("/")[0], homes))
        entry = next(filter(None, map(self._loaded.info, alike)), None)
        if entry is None:
            return known
        window, max_output = entry.window, entry.max_output
        return dataclasses.replace(known, window=window, max_output=max_output, source="table")

    def _ref(self, name: str) -> ModelRef:
        override = self._override(name)
        is_main = name == self._settings.model
        return ModelRef(
            name,
            base_url=override.base_url or (self._settings.base_url if is_main else ""),
            api_key_env=override.api_key_env or (self._settings.api_key_env if is_main else ""),
        )

    def _override(self, name: str) -> ModelSettings:
        return self._settings.models.get(name, ModelSettings())

    def _is_known(self, name: str) -> bool:
        """Whether `name` is a full name: in the table, or of a provider that accepts any."""
        ref = ModelRef(name)
        provider = ref.provider
        if not provider or not ref.model_id:
            return False
        return provider in KEY_VARIABLES or any(self._loaded.of_provider(provider))

    def _provider_of(self, name: str) -> str:
        """The provider of a name, which may lack it; empty if unknown."""
        if "/" in name:
            return ModelRef(name).provider
        with_it = (full for full in self._loaded.ending(name) if full.partition("/")[2] == name)
        return next(with_it, "/").partition("/")[0]

    def _providers_with_keys(self) -> list[str]:
        return [
            provider
            for provider, variables in KEY_VARIABLES.items()
            if any(self._environ.get(variable) for variable in variables)
        ]

    def _with_keys(self) -> list[FoundModel]:
        """Models of providers with a key, then of accounts that are signed in."""
        opened_by = {
            provider: next(v for v in KEY_VARIABLES[provider] if self._environ.get(v))
            for provider in self._providers_with_keys()
        }
        opened_by |= {account.provider: account.title for account in self._accounts()}
        models: list[FoundModel] = []
        for provider, via in opened_by.items():
            listed = filter(self._loaded.calls_tools, self._loaded.of_provider(provider))
            unlisted = FAMILIES[provider].unlisted if provider in FAMILIES else ()
            names = newest_first(listed) or [f"{provider}/{model_id}" for model_id in unlisted]
            for ref in map(self._ref, names):
                models.append(FoundModel(ref, self.info(ref), via))
        return models

    def _list_offers(self) -> Iterator[FoundModel]:
        for provider in self._own.values():
            for model in provider.models if provider.via else ():
                yield FoundModel(ModelRef(model.name), model, provider.via)

    def _accounts(self) -> list[Account]:
        return [one for one in own_accounts().values() if one.is_signed_in(self._environ)]

    def _nearest(self, name: str) -> str:
        """A hint with the names most similar to `name`."""
        from rapidfuzz import process  # 4 MB and 20 ms, and seldom needed

        usual = [full for full in self._loaded.names if full.partition("/")[0] in FAMILIES]
        usual += self._own_models
        near = process.extract(name, usual, limit=_NEAR_MATCHES, score_cutoff=_NEAR_SCORE)
        listed = "List all with agent-tui models."
        return f"Nearest: {', '.join(match[0] for match in near)}. {listed}" if near else listed

    def _best_match(self, query: str) -> str | None:
        accounts = (account.provider for account in self._accounts())
        preferred = list(dict.fromkeys([*self._providers_with_keys(), *accounts, *FAMILIES]))
        return best_match(query, self._loaded.names, preferred)


def _position(provider: str, order: Sequence[str]) -> int:
    return order.index(provider) if provider in order else len(order)


def best_match(query: str, names: Iterable[str], providers: Sequence[str]) -> str | None:
    """The likeliest full name that contains the words of `query` in order.

    Args:
        query: The typed text.
        names: As ``provider/model``.
        providers: Providers that may be meant, the likeliest first.
    """
    words = _words(query)
    if not words:
        return None
    fitting = [
        name
        for name in names
        if name.partition("/")[0] in providers and _holds(_words(name), words)
    ]
    return min(fitting, key=lambda name: _rank(name, query, providers), default=None)


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+", name.lower())


def _holds(words: list[str], part: list[str]) -> bool:
    return any(words[i : i + len(part)] == part for i in range(len(words) - len(part) + 1))


def _rank(name: str, query: str, preferred: Sequence[str]) -> tuple[object, ...]:
    """A sort key, the likeliest first: exact, a provider with a key, a plain and new name."""
    provider, _, model_id = name.partition("/")
    words = _words(model_id)
    numbers = [int(word) for word in words if word.isdigit()]
    is_dated = any(number > 1_000 for number in numbers)
    letters = sum(len(word) for word in words if word.isalpha())
    return (
        model_id != query,
        preferred.index(provider),
        is_dated,
        letters,
        [*(-number for number in numbers), 1],  # the 1 sorts "5" after "5.5"
        name,
    )
