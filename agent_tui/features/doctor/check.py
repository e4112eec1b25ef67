"""What a probe is, what it looks at, and how probes run in parallel."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from agent_tui.cli.folders import present_folder_or_none
from agent_tui.cli.key_store import key_store
from agent_tui.cli.plugins import load_plugins
from agent_tui.cli.settings import user_config_path
from agent_tui.commands.core.checks import Check, CheckContext
from agent_tui.commands.core.plugin_kinds import PROVIDERS
from agent_tui.config.loading import load_settings
from agent_tui.errors import AgentTuiError
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.local_models import own_local_models
from agent_tui.providers.registry import providers_with
from agent_tui.providers.servers.kinds import Ports, ServerAddress, usual_addresses

TIME_LIMIT_S = 15.0
"""Seconds: a busy machine needs several for its own files; servers have a limit as well."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing to examine. `run` may block and may raise; `name` labels its failure."""

    section: str
    name: str
    run: Callable[[], Iterable[Check]]


def run_probes(probes: Sequence[Probe], time_limit_s: float = TIME_LIMIT_S) -> tuple[Check, ...]:
    """Run all `probes` in parallel; returns their checks in the order of `probes`.

    A probe that raises or takes longer than `time_limit_s` becomes a line that says so; its thread
    is abandoned and does not keep the program from ending.
    """
    found: dict[Probe, Sequence[Check]] = {}

    def run(probe: Probe) -> None:
        found[probe] = _outcome(probe)

    threads = [threading.Thread(target=run, args=(probe,), daemon=True) for probe in probes]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + time_limit_s
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    return tuple(
        replace(check, section=probe.section)
        for probe in probes
        for check in found.get(probe, (_no_answer(probe, time_limit_s),))
    )


def _no_answer(probe: Probe, time_limit_s: float) -> Check:
    why = f"check failed: no answer within {time_limit_s:g} s"
    advice = "The machine may be busy, or a disk or server may not respond. Try again."
    return Check(probe.name, "warning", why, advice)


def _outcome(probe: Probe) -> Sequence[Check]:
    try:
        return tuple(probe.run())
    except AgentTuiError as error:
        advice = error.hint or "Fix it, then run agent-tui doctor again."
        return (Check(probe.name, "bad", error.message, advice),)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        why = f"check failed: {where}{error.strerror or error}"
        advice = "Check that path, then run agent-tui doctor again."
        return (Check(probe.name, "warning", why, advice),)
    except Exception as error:  # noqa: BLE001 - the pump: one broken check must not hide the rest
        why = f"check failed: {type(error).__name__}: {error}"
        advice = "The other checks are complete. If this happens again, please report it."
        return (Check(probe.name, "warning", why, advice),)


@dataclass(frozen=True, slots=True)
class Environment(CheckContext):
    """What the checks of this feature also look at: servers on this machine."""

    server_addresses: tuple[ServerAddress, ...]


def read_environment(server_ports: Ports | None = None) -> Environment:
    """The environment of this process; creates nothing, and queries only the keyring.

    The plugins in the settings are imported here, as at a start: it moves the search path of
    Python, which probes use in their threads.

    Args:
        server_ports: Where to look for servers on this machine; None for the usual ports.
    """
    environ = dict(os.environ)
    kept = key_store().fill(environ)
    loaded = load_settings(user_config_path(), environ)
    cwd = present_folder_or_none()
    plugins = load_plugins(loaded.settings.plugins, (cwd,) if cwd else ())
    return Environment(
        environ=environ,
        cwd=cwd,
        loaded=loaded,
        catalog=ModelCatalog(
            loaded.settings,
            environ,
            server_ports=server_ports,
            local=own_local_models(loaded.settings, environ),
            own=providers_with(plugins.of(PROVIDERS)),
        ),
        server_addresses=usual_addresses(environ, server_ports),
        kept=kept,
        plugins=plugins,
    )
