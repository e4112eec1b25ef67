"""Which model would be talked to, why that one, and how large its window is."""

import asyncio
from collections.abc import Iterator
from typing import Final, Literal

from agent_tui.cli.doctor.check import Check
from agent_tui.cli.doctor.surroundings import Surroundings
from agent_tui.cli.doctor.wording import shown_address
from agent_tui.errors import ConfigError
from agent_tui.providers.base import ModelInfo, ModelRef, is_loopback
from agent_tui.providers.keys import KEY_VARIABLES
from agent_tui.providers.local.catalog import LOCAL
from agent_tui.providers.servers.find import find_servers

_SECTION = "model"
_KEYLESS_WAYS = ("azure", "bedrock")
"""Providers that also take the login of a person or a machine instead of a key."""

_SOURCES: Final[dict[Literal["setting", "server", "table", "guess"], str]] = {
    "setting": "set in the settings",
    "server": "as its server says",
    "table": "from litellm's table",
    "guess": "a guess: nobody says",
}


def check_model(around: Surroundings) -> Iterator[Check]:
    """The model a start without ``--model`` would take, its window and its key."""
    settings = around.loaded.settings
    if settings.base_url and not settings.model and not is_loopback(settings.base_url):
        found = f"the first that {shown_address(settings.base_url)} lists; not asked"
        yield Check(_SECTION, "at start", "info", found)
        return
    try:
        ref = around.catalog.default_model()
    except ConfigError as error:
        advice = error.hint or "Name another in config.toml, or with --model."
        yield Check(_SECTION, "at start", "bad", error.message, advice)
        return
    if ref is None:
        yield _no_model_check(around)
        return
    yield Check(_SECTION, "at start", "ok", f"{ref.name}, {_why(around, ref)}")
    yield _window_check(ref, _info(around, ref))
    yield from _key_checks(around, ref)


def check_summary_model(around: Surroundings) -> Iterator[Check]:
    """The model of ``compaction.model``, if one is set."""
    name = around.loaded.settings.compaction.model
    if not name:
        return
    try:
        found = around.catalog.resolve(name).name
    except ConfigError as error:
        advice = error.hint or "Name another as compaction.model in config.toml."
        yield Check(_SECTION, "for summaries", "bad", error.message, advice)
        return
    yield Check(_SECTION, "for summaries", "ok", f"{found}, set as compaction.model")


def check_local_model(around: Surroundings) -> Iterator[Check]:
    """The model of ``--local``, if there is one or the settings name one."""
    try:
        ref = around.catalog.default_local()
    except ConfigError as error:
        advice = error.hint or "Name another as model of [local] in config.toml."
        yield Check(_SECTION, "with --local", "bad", error.message, advice)
        return
    if ref is not None:
        yield Check(_SECTION, "with --local", "ok", ref.name)


def _no_model_check(around: Surroundings) -> Check:
    """No model is chosen: fine as long as there is one to choose."""
    served = [model for server in find_servers(around.server_addresses) for model in server.models]
    if served:
        found = f"none is set; {len(served)} on running servers"
        return Check(_SECTION, "at start", "info", found, "Choose one with /model.")
    return Check(
        _SECTION,
        "at start",
        "bad",
        "none: no key, no running server, no model on this machine",
        "Fetch a small one and start: agent-tui --local. Or set a provider's key, such as "
        "ANTHROPIC_API_KEY, or name your server with --base-url.",
    )


def _why(around: Surroundings, ref: ModelRef) -> str:
    settings = around.loaded.settings
    if settings.model:
        is_environment = "AGENT_TUI_MODEL" in around.environ
        return "set by AGENT_TUI_MODEL" if is_environment else "set in config.toml"
    if ref.base_url:
        return f"the first that {shown_address(ref.base_url)} lists"
    if ref.provider == LOCAL:
        return "because no key and no server is set"
    return f"because {_present_key(around, ref) or 'a key'} is set"


def _info(around: Surroundings, ref: ModelRef) -> ModelInfo:
    """What is known of `ref`; its server is asked if it is on this machine."""
    if ref.base_url and not is_loopback(ref.base_url):
        return around.catalog.info(ref)
    return asyncio.run(around.catalog.learn(ref))


def _window_check(ref: ModelRef, info: ModelInfo) -> Check:
    is_from_file = ref.provider == LOCAL and info.source == "table"
    source = "as its file and [local] say" if is_from_file else _SOURCES[info.source]
    found = f"{info.window:,} tokens, {source}"
    if info.source != "guess":
        return Check(_SECTION, "window", "ok", found)
    line = f'models."{ref.name}".window = {info.window}'
    advice = f"If you know better, above the sections of config.toml: {line}"
    return Check(_SECTION, "window", "warning", found, advice)


def _key_checks(around: Surroundings, ref: ModelRef) -> Iterator[Check]:
    variables = KEY_VARIABLES.get(ref.provider, ())
    needs_none = ref.base_url or ref.api_key_env or ref.provider in _KEYLESS_WAYS
    if needs_none or not variables or _present_key(around, ref):
        return
    found = f"{variables[0]} is not set, and {ref.provider} answers no one without a key"
    advice = f"export {variables[0]}=... or choose another model with --model."
    yield Check(_SECTION, "its key", "bad", found, advice)


def _present_key(around: Surroundings, ref: ModelRef) -> str:
    variables = KEY_VARIABLES.get(ref.provider, ())
    return next((name for name in variables if around.environ.get(name)), "")
