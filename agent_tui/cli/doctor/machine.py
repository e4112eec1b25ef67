"""Checks the program's own parts, the programs it starts, the sandbox and the network."""

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

from agent_tui import __version__
from agent_tui.cli.doctor.check import Check, Environment, ask_program, shown_path
from agent_tui.cli.tool_services import command_sandbox
from agent_tui.installation import COMMAND, DISTRIBUTION, foreign_program, install_command
from agent_tui.safe_paths import find_program
from agent_tui.tools.files.ripgrep import ripgrep_program

_TOLD_APART = ("textual", "litellm")
"""Packages whose versions a bug report needs."""
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_WALLED: Final = "commands write only in the working folder, without network but by name"


def check_program(env: Environment) -> Iterator[Check]:
    """Report this program, Python and the machine."""
    yield Check(COMMAND, "ok", __version__)
    problem, advice = foreign_program()
    if problem:
        yield Check("name", "warning", problem, advice)
    python = f"{platform.python_version()} ({shown_path(Path(sys.executable), env)})"
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
    """Check the programs that agent-tui starts: git, ripgrep (the user's or the wheel's), bash."""
    path = env.environ.get("PATH", os.defpath)
    git, bash = find_program("git", path), find_program("bash", path)
    advice = "Install git. Without it, agent-tui cannot tell which files a command changed."
    yield _version_check(env, "git", git) or Check("git", "warning", "not found on PATH", advice)
    found, advice = (
        "not found; files cannot be searched",
        f"Reinstall: {install_command(again=True)}",
    )
    ripgrep = ripgrep_program(env.environ)
    yield _version_check(env, "rg", ripgrep) or Check("rg", "bad", found, advice)
    found, advice = "not found on PATH; commands run with /bin/sh", "Install bash. Models use it."
    yield _version_check(env, "bash", bash) or Check("bash", "warning", found, advice)


def _version_check(env: Environment, name: str, program: Path | str | None) -> Check | None:
    """The first line that `program` prints for ``--version``; None if there is none."""
    if program is None:
        return None
    answer = ask_program(env, str(program), "--version")
    if answer is None or answer.returncode != 0:
        return Check(name, "warning", f"{program} --version failed", f"Reinstall {name}.")
    return Check(name, "ok", answer.stdout.strip().partition("\n")[0])


def check_sandbox(env: Environment) -> Iterator[Check]:
    """Check the sandbox that protects this machine from the model's commands."""
    settings = env.loaded.settings
    if settings.sandbox == "off":
        found = "off; commands run unconfined and permission rules are the only protection"
        yield Check("sandbox", "warning", found, "Set sandbox to auto.")
        return
    state = command_sandbox(settings, env.environ).state(env.cwd or Path("/"))
    match state.backend:
        case "bubblewrap":
            yield Check("sandbox", "ok", f"bubblewrap; {_WALLED}")
        case "landlock":
            found = f"Landlock, without bubblewrap; {_WALLED}, but cannot hide files in it"
            yield Check("sandbox", "ok", found)
        case "none":
            advice = "Install bubblewrap and allow it to use user namespaces."
            is_on = settings.sandbox == "on"
            then = "the model cannot run commands" if is_on else "commands run unconfined"
            severity = "bad" if is_on else "warning"
            yield Check("sandbox", severity, f"{state.problem}; {then}", advice)


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
