"""The working folder: what the agent would find there."""

import os
from collections.abc import Iterator
from pathlib import Path

from agent_tui.agent.context_files import load_context_files
from agent_tui.cli.doctor.check import Check
from agent_tui.cli.doctor.surroundings import Surroundings
from agent_tui.cli.doctor.wording import shown_path
from agent_tui.cli.folder_trust import kept_trust
from agent_tui.permissions.trust import FolderTrust

_SECTION = "working folder"


def check_workspace(around: Surroundings) -> Iterator[Check]:
    """Whether it is there and can be written, its repository, and the instructions in force."""
    cwd = around.cwd
    if cwd is None:
        advice = "Change to another folder, or name one with --cwd."
        yield Check(_SECTION, "folder", "bad", "was removed", advice)
        return
    shown = shown_path(cwd, around.environ)
    if os.access(cwd, os.W_OK | os.X_OK):
        yield Check(_SECTION, "folder", "ok", shown)
    else:
        advice = "The agent can only read here. Work in a folder that is yours."
        yield Check(_SECTION, "folder", "warning", f"{shown} cannot be written", advice)
    yield _repository_check(around, cwd)
    yield from _instructions(around, cwd, kept_trust())


def _instructions(around: Surroundings, cwd: Path, trust: FolderTrust) -> Iterator[Check]:
    """What the model is told here, and what it is not for want of trust."""
    if trust.problem:
        advice = "It is put aside when the next folder is trusted."
        yield Check(_SECTION, "trust", "warning", trust.problem, advice)
    files = load_context_files(around.folders.config, cwd, trust.may_obey)
    names = ", ".join(shown_path(file.path, around.environ) for file in files)
    yield Check(_SECTION, "AGENTS.md", "ok" if files else "info", names or "none in force")
    for file in files:
        if file.was_cut:
            found = f"{shown_path(file.path, around.environ)}: only its beginning is used"
            yield Check(_SECTION, "AGENTS.md", "warning", found, "Shorten it.")
    if withheld := trust.withheld(cwd):
        names = ", ".join(shown_path(file.path, around.environ) for file in withheld)
        advice = "If you know who wrote them: agent-tui trust add"
        found = f"{names}: {withheld[0].why}"
        yield Check(_SECTION, "not obeyed", "info", found, advice)


def _repository_check(around: Surroundings, cwd: Path) -> Check:
    """Git itself is not asked: a folder nobody trusts yet may tell it to run things."""
    root = next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), None)
    if root is None:
        advice = "With git you can look at what the agent changed and take it back: git init"
        return Check(_SECTION, "repository", "info", "not in a git repository", advice)
    return Check(_SECTION, "repository", "ok", shown_path(root, around.environ))
