"""Checks that the program's folders and the working folder exist, are writable and private."""

import os
import shlex
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from agent_tui import paths
from agent_tui.agent.prompt.context_files import load_context_files
from agent_tui.cli.doctor.check import Check, Environment, counted, path_text
from agent_tui.cli.folders import load_trust
from agent_tui.cli.settings import session_root
from agent_tui.local_models.model import size_text

_MIN_FREE_BYTES = 200_000_000


def check_folders(env: Environment) -> Iterator[Check]:
    """Check each of agent-tui's folders except the sessions', which the settings may move."""
    yield _folder_check(env, "config", paths.user_config_dir())
    yield _folder_check(env, "data", paths.user_data_dir())
    yield _folder_check(env, "models", paths.models_dir())
    yield _folder_check(env, "cache", paths.user_cache_dir())
    yield _folder_check(env, "log", paths.log_file().parent)


def check_sessions(env: Environment) -> Iterator[Check]:
    """Check the folder of sessions, how many there are, and the free space."""
    root = session_root(env.loaded.settings)
    yield _folder_check(env, "sessions", root)
    nearest = next(folder for folder in (root, *root.parents) if folder.is_dir())
    free = shutil.disk_usage(nearest).free
    files = counted(sum(1 for _ in root.rglob("*.jsonl")), "session file")
    found = f"{files}, {size_text(free)} free on the disk"
    if free >= _MIN_FREE_BYTES:
        yield Check("disk", "ok", found)
    else:
        yield Check("disk", "warning", found, "Free some space. A full disk stops the session.")


def _folder_check(env: Environment, name: str, path: Path) -> Check:
    """Check the folder that holds what `name` says."""
    shown = path_text(path, env)
    is_config = name == "config"
    if why := paths.why_not_writable(path):
        advice = "Make it a folder that you can write to, or set AGENT_TUI_HOME to another one."
        state = "warning" if is_config else "bad"
        return Check(name, state, f"cannot write to {shown}: {why}", advice)
    if not path.exists():
        return Check(name, "info", f"{shown}, created when needed")
    # Others may read the settings but not change them; everything else is private.
    if stat.S_IMODE(path.stat().st_mode) & (0o022 if is_config else 0o077):
        found = f"{shown}: others on this machine can {'change' if is_config else 'read'} it"
        advice = f"chmod {'go-w' if is_config else '700'} {shlex.quote(str(path))}"
        return Check(name, "warning", found, advice)
    return Check(name, "ok", shown)


def check_workspace(env: Environment) -> Iterator[Check]:
    """Check that the working folder exists and is writable, its repository, and instructions."""
    cwd = env.cwd
    if cwd is None:
        advice = "Change to another folder, or name one with --cwd."
        yield Check("folder", "bad", "no longer exists", advice)
        return
    shown = path_text(cwd, env)
    if os.access(cwd, os.W_OK | os.X_OK):
        yield Check("folder", "ok", shown)
    else:
        advice = "The model can only read here. Work in a folder that you can write to."
        yield Check("folder", "warning", f"cannot write to {shown}", advice)
    # Git itself is not run: a folder that is not trusted yet may make it run programs.
    if not any((folder / ".git").exists() for folder in (cwd, *cwd.parents)):
        advice = "To review and revert changes with git: git init"
        yield Check("repository", "info", "not in a git repository", advice)
    trust = load_trust()
    files = load_context_files(paths.user_config_dir(), cwd, trust.may_obey)
    names = ", ".join(path_text(file.path, env) for file in files)
    yield Check("AGENTS.md", "ok" if files else "info", names or "none")
    if withheld := trust.withheld(cwd):
        names = ", ".join(path_text(file.path, env) for file in withheld)
        advice = "If you trust their author: agent-tui trust add"
        yield Check("not read", "info", f"{names}: {withheld[0].why}", advice)
