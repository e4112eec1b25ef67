"""Checks the program's parts and folders, the programs it starts, the sandbox, the network."""

import os
import platform
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from agent_tui import paths
from agent_tui._version import __version__
from agent_tui.agent.prompt.context_files import load_context_files
from agent_tui.cli.folders import load_trust
from agent_tui.cli.own_files import find_shared_files
from agent_tui.cli.settings import session_root
from agent_tui.commands.core.checks import Check, check_version, path_text
from agent_tui.commands.core.short_words import count_text, size_text
from agent_tui.features.doctor.check import Environment
from agent_tui.installation import COMMAND, DISTRIBUTION, foreign_program, install_command
from agent_tui.safe_paths import find_program

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
    files = count_text(sum(1 for _ in root.rglob("*.jsonl")), "session file")
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


_TOLD_APART = ("textual", "litellm")
"""Packages whose versions a bug report needs."""
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


def check_program(env: Environment) -> Iterator[Check]:
    """Report this program, Python and the machine."""
    yield Check(COMMAND, "ok", __version__)
    problem, advice = foreign_program()
    if problem:
        yield Check("name", "warning", problem, advice)
    python = f"{platform.python_version()} ({path_text(Path(sys.executable), env)})"
    yield Check("Python", "ok", python)
    libc = " ".join(platform.libc_ver())
    system = f"{platform.system()} {platform.release()}, {platform.machine()}, {libc}"
    yield Check("platform", "info", system.strip(", "))


def check_packages(_env: Environment) -> Iterator[Check]:
    """Check the installed packages against the requirements in agent-tui's metadata."""
    try:
        wanted = [Requirement(line) for line in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError:
        found = f"{DISTRIBUTION} runs from source and is not installed; requirements are unknown"
        yield Check("packages", "info", found)
        return
    present: dict[str, str] = {}
    for one in wanted:
        if one.marker is not None and not one.marker.evaluate({"extra": ""}):
            continue
        try:
            present[one.name] = version(one.name)
        except PackageNotFoundError:
            yield Check(one.name, "bad", "not installed", _reinstall())
            continue
        if not one.specifier.contains(present[one.name], prereleases=True):
            found = f"{present[one.name]}, but {one.specifier} is required"
            yield Check(one.name, "bad", found, _reinstall())
    told = ", ".join(f"{name} {present[name]}" for name in _TOLD_APART if name in present)
    yield Check("packages", "ok", f"{len(present)} found: {told} and others")


def _reinstall() -> str:
    return f"Reinstall: {install_command(again=True)}"


def check_tools(env: Environment) -> Iterator[Check]:
    """Check the programs that agent-tui starts: git and bash."""
    path = env.environ.get("PATH", os.defpath)
    git, bash = find_program("git", path), find_program("bash", path)
    advice = "Install git. Without it, agent-tui cannot tell which files a command changed."
    yield check_version(env, "git", git) or Check("git", "warning", "not found on PATH", advice)
    found, advice = "not found on PATH; commands run with /bin/sh", "Install bash. Models use it."
    yield check_version(env, "bash", bash) or Check("bash", "warning", found, advice)


def check_own_files(env: Environment) -> Iterator[Check]:
    """Report files of this program that commands could change under a second name."""
    if not (shared := find_shared_files()):
        return
    found = f"{count_text(len(shared), 'file')} with a second name, such as {shared[0]}"
    if not any(os.access(path, os.W_OK) for path in shared):
        yield Check("own files", "info", f"{found}; they are read-only")
    elif all(os.access(path.parent, os.W_OK) for path in shared):
        yield Check("own files", "info", f"{found}; agent-tui replaces them when it starts")
    else:
        found += "; agent-tui cannot replace them by copies, and commands may change them there"
        yield Check("own files", "warning", found, f"UV_LINK_MODE=copy {install_command()}")


def check_network(env: Environment) -> Iterator[Check]:
    """Report proxies and certificates by name; no provider is called."""
    yield Check("providers", "info", "not checked; keys are tried only when used")
    names = (spelling for name in _PROXIES for spelling in (name, name.lower()))
    if proxies := [name for name in names if env.environ.get(name)]:
        yield Check("proxy", "info", f"{', '.join(proxies)} set")
    for name in _CERTIFICATES:
        place = env.environ.get(name)
        if place and not Path(place).exists():
            found = f"{name} points to a missing file or folder; no provider can be reached"
            yield Check(name, "bad", found, f"Fix it, or: unset {name}")
