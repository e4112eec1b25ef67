"""What a check is, what it looks at, and how checks are run side by side."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui import paths
from agent_tui.cli.folders import present_folder_or_none
from agent_tui.cli.login.keys import kept_keys
from agent_tui.cli.settings import session_root
from agent_tui.config import LoadedSettings, load_settings
from agent_tui.errors import AgentTuiError, UsageError
from agent_tui.local_models.library import ModelLibrary
from agent_tui.providers.accounts.kept_keys import FilledIn
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.keys import secret_values, secret_variables
from agent_tui.providers.servers.kinds import PORTS, ServerAddress, usual_addresses

State: TypeAlias = Literal["ok", "info", "warning", "bad"]
"""``info`` is neither good nor wrong; ``warning`` works, but not as well as it could; ``bad``
does not work."""
TIME_LIMIT_S = 3.0
_PROGRAM_FAULT = "The other checks are complete. If this happens again, please report it."
_AROUND_A_KEY = " \t\r\n\"'`"
_ANSWER_WITHIN_S = 2.0
_MAX_NAME_CHARS = 32


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report.

    Raises:
        ValueError: something is wrong and nothing is said about what to do.
    """

    section: str
    name: str
    state: State
    found: str
    advice: str = ""

    def __post_init__(self) -> None:
        if self.state in ("warning", "bad") and not self.advice:
            raise ValueError(f"{self.section}/{self.name}: no advice")


@dataclass(frozen=True, slots=True)
class Probe:
    """Something to look at. `run` may block, and may raise."""

    section: str
    name: str
    run: Callable[[], Iterable[Check]]


def run_probes(probes: Sequence[Probe], time_limit_s: float = TIME_LIMIT_S) -> tuple[Check, ...]:
    """The checks of all `probes`, looked at side by side, in the order of `probes`.

    One that raises, or takes longer than `time_limit_s`, becomes a line that says so; its thread
    is left behind and does not keep the program from ending.
    """
    found: dict[int, Sequence[Check]] = {}

    def run(number: int, probe: Probe) -> None:
        found[number] = _outcome(probe)

    threads = [
        threading.Thread(target=run, args=(number, probe), daemon=True)
        for number, probe in enumerate(probes)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + time_limit_s
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    return tuple(
        check
        for number, probe in enumerate(probes)
        for check in found.get(number, (_too_slow(probe, time_limit_s),))
    )


def _outcome(probe: Probe) -> Sequence[Check]:
    try:
        return tuple(probe.run())
    except AgentTuiError as error:
        return (_not_checked(probe, error.message, error.hint or _PROGRAM_FAULT),)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        why = f"{where}{error.strerror or error}"
        return (_not_checked(probe, why, "Check that path, then run agent-tui doctor again."),)
    except Exception as error:  # noqa: BLE001 - the pump: one broken check must not hide the rest
        return (_not_checked(probe, f"{type(error).__name__}: {error}", _PROGRAM_FAULT),)


def _too_slow(probe: Probe, time_limit_s: float) -> Check:
    return _not_checked(
        probe,
        f"no answer within {time_limit_s:g} s",
        "The machine may be busy, or a disk or server may not respond. Run agent-tui doctor again.",
    )


def _not_checked(probe: Probe, why: str, advice: str) -> Check:
    return Check(probe.section, probe.name, "warning", f"check failed: {why}", advice)


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
class Environment:
    """The machine, the settings and the terminal as they are now; `cwd` is None if removed.

    `kept` are the keys of `environ` that the person had this program keep.
    """

    environ: Mapping[str, str]
    cwd: Path | None
    loaded: LoadedSettings
    folders: Folders
    terminal: TerminalFacts
    catalog: ModelCatalog
    library: ModelLibrary
    server_addresses: tuple[ServerAddress, ...]
    kept: FilledIn

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


def read_environment(server_ports: Mapping[str, int] = PORTS) -> Environment:
    """The environment of this process; makes nothing, and asks no one but the keyring.

    Args:
        server_ports: Where servers are looked for on this machine.
    """
    environ = dict(os.environ)
    kept = kept_keys().fill(environ)
    loaded = load_settings(paths.user_config_dir() / "config.toml", environ)
    library = ModelLibrary(paths.models_dir())
    return Environment(
        environ=environ,
        cwd=present_folder_or_none(),
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
        catalog=ModelCatalog(loaded.settings, environ, server_ports=server_ports, library=library),
        library=library,
        server_addresses=usual_addresses(environ, server_ports),
        kept=kept,
    )


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


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program printed, stdout and stderr together. A negative `exit_code` is a signal."""

    exit_code: int
    text: str

    @property
    def first_line(self) -> str:
        """The first line with something on it, the way versions are given."""
        return next((line.strip() for line in self.text.splitlines() if line.strip()), "")

    @property
    def last_line(self) -> str:
        """The last line with something on it, where Python names an error."""
        return next((line.strip() for line in self.text.splitlines()[::-1] if line.strip()), "")


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """Where `name` is on the person's ``PATH``."""
    return shutil.which(name, path=environ.get("PATH", os.defpath))


def ask_program(
    argv: Sequence[str], environ: Mapping[str, str], timeout_s: float = _ANSWER_WITHIN_S
) -> Answer | None:
    """Run `argv` outside the project; None if it cannot be started or does not end in time.

    Args:
        argv: Program and arguments; no shell looks at them.
        environ: Its whole environment; keep keys out of it.
        timeout_s: After that it is killed with all it started.
    """
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=os.sep,
            env=dict(environ),
            start_new_session=True,
        )
    except (OSError, ValueError):
        return None
    with child:
        try:
            printed, _ = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return None
    return Answer(child.returncode, printed.decode("utf-8", "replace"))


def shown_path(path: Path, environ: Mapping[str, str]) -> str:
    """`path` with the home folder as ``~``."""
    home = environ.get("HOME", "")
    if home not in ("", "/") and path.is_relative_to(home):
        return str(Path("~", path.relative_to(home)))
    return str(path)


def listed(names: list[str], limit: int = 8) -> str:
    """`names` with commas, long ones by their ends, those beyond `limit` as a number.

    Servers call models by the path of their file, which ends in what tells them apart.
    """
    shown = (
        name if len(name) <= _MAX_NAME_CHARS else f"...{name[-_MAX_NAME_CHARS + 3 :]}"
        for name in names[:limit]
    )
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(shown) + more
