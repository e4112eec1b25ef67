"""What a check and a probe are, what they look at, and how probes run in parallel."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui import paths
from agent_tui.cli.folders import present_folder_or_none
from agent_tui.cli.key_store import key_store
from agent_tui.cli.plugins import load_plugins
from agent_tui.cli.settings import user_config_path
from agent_tui.commands.core.plugin_kinds import PROVIDERS
from agent_tui.commands.core.plugins import Plugins
from agent_tui.config import LoadedSettings, load_settings
from agent_tui.errors import AgentTuiError
from agent_tui.local_models.library import ModelLibrary
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.kept_keys import FilledIn
from agent_tui.providers.keys import secret_values, secret_variables
from agent_tui.providers.registry import providers_with
from agent_tui.providers.servers.kinds import PORTS, ServerAddress, usual_addresses
from agent_tui.safe_paths import keep_trusted

CheckState: TypeAlias = Literal["ok", "info", "warning", "bad"]
"""``info`` is neutral; ``warning`` works, but not as well as it could; ``bad`` does not work."""
TIME_LIMIT_S = 3.0
_ANSWER_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report; `run_probes` adds its section.

    Raises:
        ValueError: It is a warning or bad, and there is no advice.
    """

    name: str
    state: CheckState
    found: str
    advice: str = ""
    section: str = ""

    def __post_init__(self) -> None:
        if self.state in ("warning", "bad") and not self.advice:
            raise ValueError(f"{self.name}: no advice")


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
class Environment:
    """The machine and the settings as they are now; `cwd` is None if it was removed.

    `kept` are the keys in `environ` that agent-tui stores for the user.
    """

    environ: Mapping[str, str]
    cwd: Path | None
    loaded: LoadedSettings
    catalog: ModelCatalog
    library: ModelLibrary
    server_addresses: tuple[ServerAddress, ...]
    kept: FilledIn
    plugins: Plugins

    @property
    def key_names(self) -> frozenset[str]:
        """Every variable that may hold a key, including those named in the settings."""
        return secret_variables() | self.catalog.secret_env_names()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown, longest first."""
        return secret_values(self.environ, self.key_names)


def read_environment(server_ports: Mapping[str, int] = PORTS) -> Environment:
    """The environment of this process; creates nothing, and queries only the keyring.

    The plugins in the settings are imported here, as at a start: it moves the search path of
    Python, which probes use in their threads.

    Args:
        server_ports: Where to look for servers on this machine.
    """
    environ = dict(os.environ)
    kept = key_store().fill(environ)
    loaded = load_settings(user_config_path(), environ)
    library = ModelLibrary(paths.models_dir())
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
            library=library,
            own=providers_with(plugins.of(PROVIDERS)),
        ),
        library=library,
        server_addresses=usual_addresses(environ, server_ports),
        kept=kept,
        plugins=plugins,
    )


def ask_program(
    env: Environment, *argv: str, timeout_s: float = _ANSWER_WITHIN_S
) -> subprocess.CompletedProcess[str] | None:
    """Run `argv` outside the project and without keys; its output is in ``stdout``.

    It finds no programs in folders that commands may write.

    Returns:
        None if it cannot be started, or was killed after `timeout_s` seconds.
    """
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            encoding="utf-8",
            errors="replace",
            cwd=os.sep,
            env={
                **{name: text for name, text in env.environ.items() if name not in env.key_names},
                "PATH": keep_trusted(env.environ.get("PATH")),
            },
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def path_text(path: Path, env: Environment) -> str:
    """`path` with the home folder shown as ``~``."""
    home = env.environ.get("HOME", "")
    if home not in ("", "/") and path.is_relative_to(home):
        return str(Path("~", path.relative_to(home)))
    return str(path)
