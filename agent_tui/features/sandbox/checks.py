"""What ``agent-tui doctor`` checks for the sandbox."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.cli.command_sandbox import SandboxHost
from agent_tui.commands.core.checks import Check, CheckContext, path_text
from agent_tui.commands.core.short_words import size_text
from agent_tui.features.sandbox.services import build_sandbox, caches_folder, homes_folder
from agent_tui.features.sandbox.settings import SandboxSettings

_WALLED: Final = "commands write only in the working folder, without network but by name"
_INSTALL: Final = "Install bubblewrap and allow it to use user namespaces."
_IN_PROJECT: Final = "Start agent-tui in the folder of a project."


def check_sandbox(env: CheckContext) -> Iterator[Check]:
    """Check the sandbox that protects this machine from the model's commands."""
    settings = env.loaded.settings.of(SandboxSettings)
    if settings.sandbox == "off":
        found = "off; commands run unconfined and permission rules are the only protection"
        yield Check("sandbox", "warning", found, "Set sandbox to auto.")
        return
    host = SandboxHost(env.loaded.settings, env.environ)
    walls, cwd = build_sandbox(host), env.cwd or Path("/")
    state = walls.state(cwd)
    match state.backend:
        case "bubblewrap":
            yield Check("sandbox", "ok", f"bubblewrap; {_WALLED}")
        case "landlock":
            found = f"Landlock, without bubblewrap; {_WALLED}, but cannot hide files in it"
            yield Check("sandbox", "ok", found)
        case "none":
            advice = _IN_PROJECT if walls.why_useless(cwd) else _INSTALL
            is_on = settings.sandbox == "on"
            then = "the model cannot run commands" if is_on else "commands run unconfined"
            severity = "bad" if is_on else "warning"
            yield Check("sandbox", severity, f"{state.problem}; {then}", advice)


def check_caches(env: CheckContext) -> Iterator[Check]:
    """Check the package caches that commands write: the user's own, or separate ones."""
    settings = env.loaded.settings.of(SandboxSettings)
    if settings.sandbox == "off":
        return
    if (homes := homes_folder()).is_dir():
        found = f"{_size_below(homes)} in {path_text(homes, env)}"
        advice = "Delete it while no session runs. Environments that use a Python there break."
        yield Check("homes of commands", "info", found, advice)
    if "sandbox_caches" in settings.model_fields_set:
        if names := ", ".join(f"~/{name}" for name in settings.sandbox_caches):
            found = f"commands in the sandbox write {names}; programs outside use what is there"
            advice = "To give commands separate caches: agent-tui config unset sandbox_caches"
            yield Check("caches", "warning", found, advice)
        return
    folder = caches_folder()
    found = f"{_size_below(folder)} in {path_text(folder, env)}; you may delete it"
    yield Check("caches", "info", found)


def _size_below(folder: Path) -> str:
    files = (entry for entry in _entries_below(folder) if not entry.is_dir(follow_symlinks=False))
    return size_text(sum(map(_size_of, files)))


def _size_of(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:  # it was removed meanwhile
        return 0


def _entries_below(place: Path) -> Iterator[os.DirEntry[str]]:
    """All that is in a folder, as far as its paths can be used; links are not followed."""
    pending = [os.fspath(place)]
    for folder in pending:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                yield entry
