"""The programs that the agent's tools and the person's keys start."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from agent_tui.cli.command_sandbox import command_sandbox
from agent_tui.cli.doctor.check import Check
from agent_tui.cli.doctor.programs import ask_program, find_program
from agent_tui.cli.doctor.surroundings import Surroundings

_SECTION = "tools"


def check_git(around: Surroundings) -> Iterator[Check]:
    """Git, without which nothing the agent changes can be compared or taken back."""
    advice = "Install git: without it the agent cannot tell what it changed."
    yield _version_check(around, "git", "git version ") or Check(
        _SECTION, "git", "warning", "not found on PATH", advice
    )


def check_ripgrep(around: Surroundings) -> Iterator[Check]:
    """Ripgrep, which the search tools use where it is."""
    yield _version_check(around, "rg", "ripgrep ") or Check(
        _SECTION,
        "rg",
        "info",
        "not found: the built-in search is used, slower in large projects",
        "For quick searches install ripgrep.",
    )


def check_bash(around: Surroundings) -> Iterator[Check]:
    """The shell that runs the agent's commands."""
    yield _version_check(around, "bash", "GNU bash, version ") or Check(
        _SECTION,
        "bash",
        "warning",
        "not found on PATH: commands run with /bin/sh",
        "Install bash: models write commands for it.",
    )


def check_sandbox(around: Surroundings) -> Iterator[Check]:
    """What stands between a command and this machine."""
    settings = around.loaded.settings
    if settings.sandbox == "off":
        found = "off in the settings: the approvals are the protection"
        yield Check(_SECTION, "sandbox", "info", found)
        return
    problem = command_sandbox(settings, around.environ).state(around.cwd or Path("/")).problem
    if not problem:
        found = "on: the model's commands have no network and write only in the workspace"
        yield Check(_SECTION, "sandbox", "ok", found)
        return
    advice = "Install bubblewrap and allow it user namespaces, or set sandbox to off."
    if settings.sandbox == "on":
        found = f"{problem}; the model can run no command, as sandbox is on in the settings"
        yield Check(_SECTION, "sandbox", "bad", found, advice)
        return
    yield Check(_SECTION, "sandbox", "warning", f"{problem}; commands run without", advice)


def check_editor(around: Surroundings) -> Iterator[Check]:
    """The editor of Ctrl+G."""
    chosen = around.environ.get("VISUAL") or around.environ.get("EDITOR") or ""
    variable = "VISUAL" if around.environ.get("VISUAL") else "EDITOR"
    try:
        words = shlex.split(chosen) if chosen else ["vi"]
    except ValueError:
        words = []
    if not words:
        found = f"${variable} is no command: its quotation marks do not match"
        yield Check(_SECTION, "editor", "warning", found, f"export {variable}=vi, or another.")
        return
    why = f"from ${variable}" if chosen else "$VISUAL and $EDITOR are not set"
    if find_program(words[0], around.environ):
        yield Check(_SECTION, "editor", "ok", f"{words[0]} ({why})")
        return
    found = f"{words[0]} is not found ({why})"
    yield Check(_SECTION, "editor", "warning", found, "export EDITOR=..., an editor that is there.")


def _version_check(around: Surroundings, program: str, before_version: str) -> Check | None:
    """A line with the program's version; None where there is no such program."""
    path = find_program(program, around.environ)
    if path is None:
        return None
    answer = ask_program((path, "--version"), around.keyless_environ)
    if answer is None or answer.exit_code != 0:
        found = f"{path} does not answer to --version"
        return Check(_SECTION, program, "warning", found, f"Install {program} again.")
    return Check(_SECTION, program, "ok", answer.first_line.removeprefix(before_version))
