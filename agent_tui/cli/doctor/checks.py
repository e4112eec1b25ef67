"""Every check there is, in the order of the report."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

from agent_tui.cli.doctor import (
    folders,
    keys,
    local_models,
    mcp,
    model,
    network,
    servers,
    settings,
    terminal,
    tools,
    versions,
    workspace,
)
from agent_tui.cli.doctor.check import Check, Probe
from agent_tui.cli.doctor.surroundings import Surroundings

_Look: TypeAlias = Callable[[Surroundings], Iterable[Check]]

_LOOKS: tuple[tuple[str, str, _Look], ...] = (
    ("versions", "program", versions.check_program),
    ("versions", "packages", versions.check_packages),
    ("versions", "pip", versions.check_pip),
    ("versions", "vocabulary", versions.check_counting),
    ("settings", "file", settings.check_settings),
    ("settings", "environment", settings.check_environment),
    ("settings", "permissions", settings.check_rules),
    ("keys", "variables", keys.check_keys),
    ("keys", "settings", keys.check_named_variables),
    ("keys", "addresses", keys.check_addresses),
    ("model", "at start", model.check_model),
    ("model", "for summaries", model.check_summary_model),
    ("model", "with --local", model.check_local_model),
    ("servers", "base_url", servers.check_base_urls),
    ("local models", "extra local", local_models.check_server_package),
    ("local models", "library", local_models.check_library),
    ("local models", "room", local_models.check_room),
    ("tools", "git", tools.check_git),
    ("tools", "rg", tools.check_ripgrep),
    ("tools", "bash", tools.check_bash),
    ("tools", "sandbox", tools.check_sandbox),
    ("tools", "editor", tools.check_editor),
    ("mcp", "servers", mcp.check_servers),
    ("terminal", "terminal", terminal.check_terminal),
    ("terminal", "looks", terminal.check_looks),
    ("terminal", "multiplexer", terminal.check_multiplexer),
    ("terminal", "clipboard", terminal.check_clipboard),
    ("folders", "sessions in it", folders.check_sessions),
    ("folders", "log file", folders.check_log),
    ("folders", "disk", folders.check_disk),
    ("working folder", "folder", workspace.check_workspace),
    ("network", "network", network.check_network),
)
_SECTIONS = tuple(dict.fromkeys(section for section, _, _ in _LOOKS))


def all_probes(around: Surroundings) -> tuple[Probe, ...]:
    """The probes for `around`, those of one section together."""
    own = around.folders
    places = {
        "config": own.config,
        "data": own.data,
        "sessions": own.sessions,
        "models": own.models,
        "cache": own.cache,
        "log": own.log_file.parent,
    }
    probes = [
        Probe("folders", name, partial(folders.check_folder, around, name, path))
        for name, path in places.items()
        if path is not None
    ]
    for address in around.server_addresses:
        look = partial(servers.check_server, around, address)
        probes.append(Probe("servers", address.kind, look))
    probes += [Probe(section, name, partial(look, around)) for section, name, look in _LOOKS]
    return tuple(sorted(probes, key=lambda probe: _SECTIONS.index(probe.section)))
