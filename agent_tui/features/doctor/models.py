"""Checks the model in use and model servers."""

import asyncio
from collections.abc import Iterator
from typing import Final, Literal

from agent_tui.commands.core.checks import Check
from agent_tui.commands.core.short_words import count_text
from agent_tui.config.model_addresses import display_address, is_loopback
from agent_tui.feature import local_option
from agent_tui.features.doctor.check import Environment
from agent_tui.providers.base import LOCAL, ModelInfo, ModelRef
from agent_tui.providers.keys import KEY_VARIABLES
from agent_tui.providers.servers.kinds import start_command
from agent_tui.providers.servers.server_catalog import RunningServer, find_servers, server_at

_KEYLESS_WAYS = ("azure", "bedrock")
"""Providers that also accept a user's or machine's login instead of a key."""
_SOURCES: Final[dict[Literal["setting", "server", "table", "guess"], str]] = {
    "setting": "from the settings",
    "server": "from its server",
    "table": "from litellm's table",
    "guess": "assumed; the real size is unknown",
}
_ANSWER_WITHIN_S = 2.0
_MAX_NAMES = 3


def check_model(env: Environment) -> Iterator[Check]:
    """Check the model that a start without ``--model`` would use, its window and its key."""
    settings = env.loaded.settings
    if settings.base_url and not settings.model and not is_loopback(settings.base_url):
        found = f"the first model at {display_address(settings.base_url)}, not contacted"
        yield Check("default", "info", found)
        return
    ref = env.catalog.default_model()
    if ref is None:
        yield _no_model_check(env)
        return
    yield Check("default", "ok", f"{ref.name}, {_why(env, ref)}")
    yield _window_check(ref, _info(env, ref))
    yield from _key_checks(env, ref)


def check_summary_model(env: Environment) -> Iterator[Check]:
    """Report the model of ``compaction.model``, if it is set."""
    if name := env.loaded.settings.compaction.model:
        found = env.catalog.resolve(name).name
        yield Check("for summaries", "ok", f"{found}, set as compaction.model")


def _no_model_check(env: Environment) -> Check:
    """Report that no model is chosen: fine if there is one to choose."""
    served = [model for server in find_servers(env.server_addresses) for model in server.models]
    if served:
        found = f"none set; {len(served)} on running servers"
        return Check("default", "info", found, "Choose one with /model.")
    found, name = "none: no key, no running server", "name your server with --base-url"
    set_key = "Set a provider's key such as ANTHROPIC_API_KEY"
    if (option := local_option()) is None:
        return Check("default", "bad", found, f"{set_key}, or {name}")
    download = f"download a small local model: agent-tui --{option.name}"
    return Check("default", "bad", f"{found}, no local model", f"{set_key}, {name}, or {download}")


def _why(env: Environment, ref: ModelRef) -> str:
    settings = env.loaded.settings
    if settings.model:
        is_environment = "AGENT_TUI_MODEL" in env.environ
        return "set by AGENT_TUI_MODEL" if is_environment else "set in config.toml"
    if ref.base_url:
        return f"the first model at {display_address(ref.base_url)}"
    if ref.provider == LOCAL:
        return "because no key and no server is set"
    variable = _present_key(env, ref)
    is_kept = variable in env.kept.places
    return f"because {variable or 'a key'} is {'stored' if is_kept else 'set'}"


def _info(env: Environment, ref: ModelRef) -> ModelInfo:
    """What is known about `ref`; its server is queried if it is on this machine."""
    if ref.base_url and not is_loopback(ref.base_url):
        return env.catalog.info(ref)
    return asyncio.run(env.catalog.learn(ref))


def _window_check(ref: ModelRef, info: ModelInfo) -> Check:
    is_from_file = ref.provider == LOCAL and info.source == "table"
    source = "from its file and [local]" if is_from_file else _SOURCES[info.source]
    found = f"{info.window:,} tokens, {source}"
    if info.source != "guess":
        return Check("window", "ok", found)
    line = f'models."{ref.name}".window = {info.window}'
    advice = f"If you know it, add this before the sections of config.toml: {line}"
    return Check("window", "warning", found, advice)


def _key_checks(env: Environment, ref: ModelRef) -> Iterator[Check]:
    variables = KEY_VARIABLES.get(ref.provider, ())
    needs_none = ref.base_url or ref.api_key_env or ref.provider in _KEYLESS_WAYS
    if needs_none or not variables or _present_key(env, ref):
        return
    found = f"{variables[0]} is not set; {ref.provider} requires a key"
    advice = f"export {variables[0]}=... or choose another model with --model."
    yield Check("key", "bad", found, advice)


def _present_key(env: Environment, ref: ModelRef) -> str:
    variables = KEY_VARIABLES.get(ref.provider, ())
    return next((name for name in variables if env.environ.get(name)), "")


def check_servers(env: Environment) -> Iterator[Check]:
    """Check the usual servers at their usual addresses, without sending a key."""
    running = {server.base_url: server for server in find_servers(env.server_addresses)}
    for address in env.server_addresses:
        server = running.get(address.base_url)
        if server is None:
            found = f"not running, or without models, at {address.place}"
            yield Check(address.kind, "info", found)
        elif server.problem:
            yield Check(address.kind, "info", f"at {address.place}: {server.problem}")
        else:
            other = "" if server.title == address.kind else f"{server.title} "
            found = f"{other}at {address.place}, {_models(server)}"
            yield Check(address.kind, "ok", found)


def check_base_urls(env: Environment) -> Iterator[Check]:
    """Check the servers in the settings; only one on this machine is sent its key."""
    settings = env.loaded.settings
    named = [("base_url", settings.base_url, settings.api_key_env)]
    for name, own in settings.models.items():
        key_name = own.api_key_env or settings.api_key_env
        named.append((f'models."{name}"', own.base_url or "", key_name))
    for setting, base_url, key_name in named:
        if base_url:
            yield _address_check(setting, base_url, env.environ.get(key_name, ""))


def _address_check(setting: str, base_url: str, api_key: str) -> Check:
    shown, is_here = display_address(base_url), is_loopback(base_url)
    server = server_at(base_url, api_key if is_here else "", patience_s=_ANSWER_WITHIN_S)
    if server is not None and not server.problem:
        return Check(setting, "ok", f"{shown}, {_models(server)}")
    if not is_here:
        if server is not None:
            return Check(setting, "ok", f"{shown} answers; its models were not checked")
        advice = (
            "If replies fail, check the address and that the server is running. Behind a proxy "
            "this may be fine: requests use it, this check does not."
        )
        return Check(setting, "warning", f"{shown} lists no models", advice)
    if server is not None:
        advice = "Name the variable with its key as api_key_env, or wait until it has loaded."
        return Check(setting, "warning", f"{shown} {server.problem}", advice)
    command = f" ({started})" if (started := start_command(base_url)) else ""
    advice = (
        f"Start the server{command} and load a model, or change the address in config.toml, "
        "which usually ends in /v1."
    )
    return Check(setting, "bad", f"{shown} lists no models", advice)


def _models(server: RunningServer) -> str:
    """How many models `server` has, and the names of the first few."""
    names = [model.id for model in server.models]
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{count_text(len(names), 'model')}: {', '.join(names[:_MAX_NAMES])}{more}"
