"""The model that would be talked to, model servers, and models on this machine."""

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from agent_tui.cli.doctor.check import (
    Check,
    Environment,
    State,
    ask_program,
    listed,
    shown_path,
)
from agent_tui.cli.doctor.machine import is_musl, package_version
from agent_tui.errors import ConfigError
from agent_tui.installation import install_command
from agent_tui.local_models.addresses import is_loopback, shown_address
from agent_tui.local_models.model import OFFERS, LocalModel, size_text
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.providers.keys import KEY_VARIABLES
from agent_tui.providers.local.local_catalog import LOCAL
from agent_tui.providers.servers.find import RunningServer, find_servers, server_at
from agent_tui.providers.servers.kinds import ServerAddress, start_command

_MODEL = "model"
_KEYLESS_WAYS = ("azure", "bedrock")
"""Providers that also take the login of a person or a machine instead of a key."""
_SOURCES: Final[dict[Literal["setting", "server", "table", "guess"], str]] = {
    "setting": "from the settings",
    "server": "from its server",
    "table": "from litellm's table",
    "guess": "assumed; the real size is unknown",
}
_SERVERS = "servers"
_CONNECT_WITHIN_S = 2.0
_USUAL_PORTS = {"http": 80, "https": 443}
_MAX_NAMES = 3
_LOCAL_MODELS = "local models"
_SERVER_PACKAGE = "xllamacpp"
_IMPORT_WITHIN_S = 2.5
_MEMORY_BESIDE_BYTES = 300_000_000
"""The server itself and the memory of an 8,192-token window: a 98 MB model takes 380 MB in all."""


def check_model(env: Environment) -> Iterator[Check]:
    """The model a start without ``--model`` would take, its window and its key."""
    settings = env.loaded.settings
    if settings.base_url and not settings.model and not is_loopback(settings.base_url):
        found = f"the first model at {shown_address(settings.base_url)}, not contacted"
        yield Check(_MODEL, "default", "info", found)
        return
    try:
        ref = env.catalog.default_model()
    except ConfigError as error:
        advice = error.hint or "Choose another in config.toml or with --model."
        yield Check(_MODEL, "default", "bad", error.message, advice)
        return
    if ref is None:
        yield _no_model_check(env)
        return
    yield Check(_MODEL, "default", "ok", f"{ref.name}, {_why(env, ref)}")
    yield _window_check(ref, _info(env, ref))
    yield from _key_checks(env, ref)


def check_summary_model(env: Environment) -> Iterator[Check]:
    """The model of ``compaction.model``, if one is set."""
    name = env.loaded.settings.compaction.model
    if not name:
        return
    try:
        found = env.catalog.resolve(name).name
    except ConfigError as error:
        advice = error.hint or "Choose another as compaction.model in config.toml."
        yield Check(_MODEL, "for summaries", "bad", error.message, advice)
        return
    yield Check(_MODEL, "for summaries", "ok", f"{found}, set as compaction.model")


def check_local_model(env: Environment) -> Iterator[Check]:
    """The model of ``--local``, if there is one or the settings name one."""
    try:
        ref = env.catalog.local.default()
    except ConfigError as error:
        advice = error.hint or "Choose another as model of [local] in config.toml."
        yield Check(_MODEL, "with --local", "bad", error.message, advice)
        return
    if ref is not None:
        yield Check(_MODEL, "with --local", "ok", ref.name)


def _no_model_check(env: Environment) -> Check:
    """No model is chosen: fine as long as there is one to choose."""
    served = [model for server in find_servers(env.server_addresses) for model in server.models]
    if served:
        found = f"none set; {len(served)} on running servers"
        return Check(_MODEL, "default", "info", found, "Choose one with /model.")
    return Check(
        _MODEL,
        "default",
        "bad",
        "none: no key, no running server, no local model",
        "Set a provider's key such as ANTHROPIC_API_KEY, name your server with --base-url, or "
        "download a small local model: agent-tui --local",
    )


def _why(env: Environment, ref: ModelRef) -> str:
    settings = env.loaded.settings
    if settings.model:
        is_environment = "AGENT_TUI_MODEL" in env.environ
        return "set by AGENT_TUI_MODEL" if is_environment else "set in config.toml"
    if ref.base_url:
        return f"the first model at {shown_address(ref.base_url)}"
    if ref.provider == LOCAL:
        return "because no key and no server is set"
    variable = _present_key(env, ref)
    is_kept = variable in env.kept.places
    return f"because {variable or 'a key'} is {'stored' if is_kept else 'set'}"


def _info(env: Environment, ref: ModelRef) -> ModelInfo:
    """What is known of `ref`; its server is asked if it is on this machine."""
    if ref.base_url and not is_loopback(ref.base_url):
        return env.catalog.info(ref)
    return asyncio.run(env.catalog.learn(ref))


def _window_check(ref: ModelRef, info: ModelInfo) -> Check:
    is_from_file = ref.provider == LOCAL and info.source == "table"
    source = "from its file and [local]" if is_from_file else _SOURCES[info.source]
    found = f"{info.window:,} tokens, {source}"
    if info.source != "guess":
        return Check(_MODEL, "window", "ok", found)
    line = f'models."{ref.name}".window = {info.window}'
    advice = f"If you know it, add this before the sections of config.toml: {line}"
    return Check(_MODEL, "window", "warning", found, advice)


def _key_checks(env: Environment, ref: ModelRef) -> Iterator[Check]:
    variables = KEY_VARIABLES.get(ref.provider, ())
    needs_none = ref.base_url or ref.api_key_env or ref.provider in _KEYLESS_WAYS
    if needs_none or not variables or _present_key(env, ref):
        return
    found = f"{variables[0]} is not set; {ref.provider} requires a key"
    advice = f"export {variables[0]}=... or choose another model with --model."
    yield Check(_MODEL, "key", "bad", found, advice)


def _present_key(env: Environment, ref: ModelRef) -> str:
    variables = KEY_VARIABLES.get(ref.provider, ())
    return next((name for name in variables if env.environ.get(name)), "")


def check_server(_env: Environment, address: ServerAddress) -> Iterator[Check]:
    """One of the usual servers, at its usual place; asked without a key."""
    for server in find_servers((address,)):
        if server.problem:
            found = f"at {address.place}: {server.problem}"
        else:
            other = "" if server.title == address.kind else f"{server.title} "
            found = f"{other}at {address.place}, {_models(server)}"
        yield Check(_SERVERS, address.kind, "info" if server.problem else "ok", found)
        return
    if not _takes_connections(address.root):
        found = f"not running at {address.place}"
        yield Check(_SERVERS, address.kind, "info", found)
        return
    found = f"a server at {address.place} lists no models"
    advice = f"If it is {address.kind}, load a model."
    yield Check(_SERVERS, address.kind, "info", found, advice)


def check_base_urls(env: Environment) -> Iterator[Check]:
    """The ``base_url`` of the settings; only a server on this machine is asked for its models."""
    settings = env.loaded.settings
    named = [("base_url", settings.base_url, settings.api_key_env)]
    for name, own in settings.models.items():
        key_name = own.api_key_env or settings.api_key_env
        named.append((f'models."{name}"', own.base_url or "", key_name))
    for setting, base_url, key_name in named:
        if base_url:
            api_key = env.environ.get(key_name, "")
            yield _address_check(setting, base_url, api_key)


def _address_check(setting: str, base_url: str, api_key: str) -> Check:
    shown = shown_address(base_url)
    server = server_at(base_url, api_key) if is_loopback(base_url) else None
    if server is not None and not server.problem:
        return Check(_SERVERS, setting, "ok", f"{shown}, {_models(server)}")
    if server is None and not _takes_connections(base_url):
        state, advice = _how_to_reach(base_url)
        return Check(_SERVERS, setting, state, f"cannot connect to {shown}", advice)
    if not is_loopback(base_url):
        found = f"{shown} accepts connections; its models were not checked"
        return Check(_SERVERS, setting, "ok", found)
    answer = server.problem if server is not None else "accepts connections, but lists no models"
    advice = (
        "Check that the address ends as the server expects (usually /v1), that api_key_env names "
        "its key, and that a model is loaded."
    )
    return Check(_SERVERS, setting, "warning", f"{shown} {answer}", advice)


def _how_to_reach(base_url: str) -> tuple[State, str]:
    if is_loopback(base_url):
        command = start_command(base_url)
        start = f"Start the server ({command})" if command else "Start the server"
        return "bad", f"{start}, or change the address in config.toml."
    return "warning", (
        "Start the server, or change the address in config.toml. Behind a proxy this may be "
        "fine: requests use the proxy, this check does not."
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


def _models(server: RunningServer) -> str:
    number = len(server.models)
    names = listed([model.id for model in server.models], limit=_MAX_NAMES)
    return f"{number} model{'' if number == 1 else 's'}: {names}"


def check_server_package(env: Environment) -> Iterator[Check]:
    """The package that serves local models, imported in a process of its own.

    A wheel built for another processor ends the process that imports it.
    """
    version = package_version(_SERVER_PACKAGE)
    if not version:
        advice = f"To run local models: {install_command('local')}"
        if is_musl():
            advice = "There is no wheel for musl: use a model server such as Ollama instead."
        yield Check(_LOCAL_MODELS, "llama.cpp", "info", "not installed (optional)", advice)
        return
    argv = (sys.executable, "-P", "-c", f"import {_SERVER_PACKAGE}")
    answer = ask_program(argv, env.keyless_environ, _IMPORT_WITHIN_S)
    if answer is not None and answer.exit_code == 0:
        yield Check(_LOCAL_MODELS, "llama.cpp", "ok", f"{_SERVER_PACKAGE} {version}")
        return
    if answer is None:
        why, state = f"took longer than {_IMPORT_WITHIN_S:g} s to import", "warning"
    elif answer.exit_code < 0:
        why, state = f"crashes with {_signal_name(-answer.exit_code)} on import", "bad"
    else:
        why, state = f"cannot be imported: {answer.last_line}", "bad"
    again = install_command("local", again=True)
    advice = f"Other models work without it. Reinstall: {again}"
    yield Check(_LOCAL_MODELS, "llama.cpp", state, f"{_SERVER_PACKAGE} {version} {why}", advice)


def check_library(env: Environment) -> Iterator[Check]:
    """Every model that is known, and whether its file is there and whole."""
    listing = env.library.listing()
    for problem in listing.problems:
        advice = "If a model is missing, add or pull it again."
        yield Check(_LOCAL_MODELS, "library", "bad", problem, advice)
    if not listing.models:
        offer = OFFERS[0]
        advice = f"agent-tui models pull {offer.name} ({size_text(offer.download_bytes)})"
        yield Check(_LOCAL_MODELS, "library", "info", "no models yet", f"To download one: {advice}")
        return
    for model in listing.models:
        yield _model_check(env, model)


def check_room(env: Environment) -> Iterator[Check]:
    """Disk space to pull a model, memory to run the largest there is."""
    offer = OFFERS[0]
    needed = offer.download_bytes + offer.size_bytes
    free = shutil.disk_usage(_nearest_folder(env.folders.models)).free
    found = f"{size_text(free)} free"
    if free >= needed:
        yield Check(_LOCAL_MODELS, "disk", "ok", found)
    else:
        advice = f"Free some space. Pulling {offer.name} temporarily needs {size_text(needed)}."
        yield Check(_LOCAL_MODELS, "disk", "warning", found, advice)
    yield from _memory_checks(env)


def _model_check(env: Environment, model: LocalModel) -> Check:
    path = shown_path(model.path, env.environ)
    try:
        size = model.path.stat().st_size
    except OSError as error:
        advice = f"Restore the file, or remove the model: agent-tui models remove {model.name}"
        if model.name in {offer.name for offer in OFFERS}:
            advice = f"Download it again: agent-tui models pull {model.name}"
        return Check(_LOCAL_MODELS, model.name, "warning", f"{path}: {error.strerror}", advice)
    if model.is_ours and size != model.size_bytes:
        found = f"{path} has {size:,} of {model.size_bytes:,} bytes"
        advice = f"agent-tui models remove {model.name}, then pull it again."
        return Check(_LOCAL_MODELS, model.name, "bad", found, advice)
    window = f", window {model.trained_window:,} tokens" if model.trained_window else ""
    return Check(_LOCAL_MODELS, model.name, "ok", f"{size_text(model.size_bytes)}{window}, {path}")


def _memory_checks(env: Environment) -> Iterator[Check]:
    free = available_memory()
    if free is None:
        return
    models = [model for model in env.library.models() if model.is_there]
    wanted = max((model.size_bytes for model in models), default=OFFERS[0].size_bytes)
    needed = wanted + _MEMORY_BESIDE_BYTES
    found = f"{size_text(free)} free"
    if free >= needed:
        yield Check(_LOCAL_MODELS, "memory", "ok", found)
        return
    found += f", the largest model needs about {size_text(needed)}"
    advice = "Close other programs, use a smaller model, or lower context in [local]."
    yield Check(_LOCAL_MODELS, "memory", "warning", found, advice)


def available_memory(
    proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Bytes of memory that can be had now, of the machine and of the container; None: unknown."""
    amounts = [
        amount for amount in (_of_machine(proc), _of_container(cgroup)) if amount is not None
    ]
    return min(amounts, default=None)


def _of_machine(proc: Path) -> int | None:
    try:
        lines = (proc / "meminfo").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        lines = []
    for line in lines:
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    try:  # macOS: all there is, the nearest that can be asked for without a program
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _of_container(cgroup: Path) -> int | None:
    try:
        limit = (cgroup / "memory.max").read_text(encoding="ascii").strip()
        used = (cgroup / "memory.current").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return max(int(limit) - int(used), 0) if limit.isdigit() and used.isdigit() else None


def _nearest_folder(path: Path) -> Path:
    return next((folder for folder in (path, *path.parents) if folder.is_dir()), Path(os.sep))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
