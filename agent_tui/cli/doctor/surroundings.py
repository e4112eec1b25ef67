"""What the checks look at, gathered once so that each check is a function of it."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_tui import paths
from agent_tui.cli.session_root import session_root
from agent_tui.config import LoadedSettings, load_settings
from agent_tui.errors import UsageError
from agent_tui.local_models.library import ModelLibrary
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.keys import secret_values, secret_variables
from agent_tui.providers.servers.kinds import PORTS, ServerAddress, usual_addresses

_AROUND_A_KEY = " \t\r\n\"'`"


@dataclass(frozen=True, slots=True)
class TerminalFacts:
    """What only the standard streams can tell. `columns` and `rows` are 0 where unknown."""

    reads_from_terminal: bool
    writes_to_terminal: bool
    columns: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the program keeps its files. `sessions` is None where the setting leads nowhere."""

    config: Path
    data: Path
    sessions: Path | None
    cache: Path
    models: Path
    log_file: Path


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The machine, the settings and the terminal as they are now; `cwd` is None if removed."""

    environ: Mapping[str, str]
    cwd: Path | None
    loaded: LoadedSettings
    folders: Folders
    terminal: TerminalFacts
    catalog: ModelCatalog
    library: ModelLibrary
    server_addresses: tuple[ServerAddress, ...]

    @property
    def config_file(self) -> Path:
        """The person's settings; may be missing."""
        return self.folders.config / "config.toml"

    @property
    def key_names(self) -> frozenset[str]:
        """Every variable that may hold a key, the settings' own among them."""
        return secret_variables() | self.catalog.secret_env_names()

    @property
    def keyless_environ(self) -> dict[str, str]:
        """The environment for programs that are asked: they need no keys."""
        return {name: text for name, text in self.environ.items() if name not in self.key_names}

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown, longest first: keys as they are, and without what mars them."""
        whole = secret_values(self.environ, self.key_names)
        bare = (value.strip(_AROUND_A_KEY) for value in whole)
        found = {*whole, *(value for value in bare if value)}
        return tuple(sorted(found, key=len, reverse=True))


def look_around(server_ports: Mapping[str, int] = PORTS) -> Surroundings:
    """The surroundings of this process; makes nothing and asks no one.

    Args:
        server_ports: Where servers are looked for on this machine.
    """
    loaded = load_settings(paths.user_config_dir() / "config.toml", os.environ)
    library = ModelLibrary(paths.models_dir())
    return Surroundings(
        environ=os.environ,
        cwd=_present_folder(),
        loaded=loaded,
        folders=Folders(
            config=paths.user_config_dir(),
            data=paths.user_data_dir(),
            sessions=_session_folder(loaded),
            cache=paths.user_cache_dir(),
            models=paths.models_dir(),
            log_file=paths.log_file(),
        ),
        terminal=_terminal_facts(),
        catalog=ModelCatalog(
            loaded.settings, os.environ, server_ports=server_ports, library=library
        ),
        library=library,
        server_addresses=usual_addresses(os.environ, server_ports),
    )


def _present_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:
        return None


def _session_folder(loaded: LoadedSettings) -> Path | None:
    try:
        return session_root(loaded.settings)
    except UsageError:
        return None


def _terminal_facts() -> TerminalFacts:
    columns, rows = 0, 0
    for descriptor in (1, 2, 0):
        with suppress(OSError):
            columns, rows = os.get_terminal_size(descriptor)
            break
    return TerminalFacts(sys.stdin.isatty(), sys.stdout.isatty(), columns, rows)
