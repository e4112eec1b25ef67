"""What a check of ``agent-tui doctor`` looks at and reports; features bring checks, too."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.commands.core.plugins import Plugins
from agent_tui.config.loading import LoadedSettings
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.kept_keys import FilledIn
from agent_tui.providers.keys import secret_values, secret_variables
from agent_tui.safe_paths import keep_trusted

CheckState: TypeAlias = Literal["ok", "info", "warning", "bad"]
"""``info`` is neutral; ``warning`` works, but not as well as it could; ``bad`` does not work."""
_ANSWER_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report; the section of its check is added.

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
class CheckContext:
    """The machine and the settings as they are now; `cwd` is None if it was removed.

    `kept` are the keys in `environ` that agent-tui stores for the user.
    """

    environ: Mapping[str, str]
    cwd: Path | None
    loaded: LoadedSettings
    catalog: ModelCatalog
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


def ask_program(
    context: CheckContext, *argv: str, timeout_s: float = _ANSWER_WITHIN_S
) -> subprocess.CompletedProcess[str] | None:
    """Run `argv` outside the project and without keys; its output is in ``stdout``.

    It finds no programs in folders that commands may write.

    Returns:
        None if it cannot be started, or was killed after `timeout_s` seconds.
    """
    secret = context.key_names
    environ = {name: text for name, text in context.environ.items() if name not in secret}
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
            env={**environ, "PATH": keep_trusted(context.environ.get("PATH"))},
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def check_version(context: CheckContext, name: str, program: Path | str | None) -> Check | None:
    """The first line that `program` prints for ``--version``; None without a program."""
    if program is None:
        return None
    answer = ask_program(context, str(program), "--version")
    if answer is None or answer.returncode != 0:
        return Check(name, "warning", f"{program} --version failed", f"Reinstall {name}.")
    return Check(name, "ok", answer.stdout.strip().partition("\n")[0])


def path_text(path: Path, context: CheckContext) -> str:
    """`path` with the home folder shown as ``~``."""
    home = context.environ.get("HOME", "")
    if home not in ("", "/") and path.is_relative_to(home):
        return str(Path("~", path.relative_to(home)))
    return str(path)
