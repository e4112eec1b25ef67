"""What happens at a start if deny rules cannot be read: a script ends, a person is asked."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent_tui.cli.arguments import Arguments
from agent_tui.cli.folders import launch_folder, project_store
from agent_tui.cli.settings import config_files_in_effect, user_config_path
from agent_tui.errors import UsageError
from agent_tui.permissions.rule_book import UnreadRules
from agent_tui.permissions.rule_sources import RuleSources, RulesRead
from agent_tui.permissions.trust import FolderTrust

NO_RULES: Final = (
    "Mode ask for this session: some of your deny rules cannot be read and are not in force."
)
_FIX_OWN: Final = "Fix the file: agent-tui config edit."
_FIX: Final = "Fix the file."
_FIX_VARIABLE: Final = "Fix or unset the variable."


def rules_in_force(
    sources: RuleSources, trust: FolderTrust, workspace: Path, *, is_demo: bool
) -> RulesRead:
    """Read the deny rules that apply in `workspace`; a demo reads no project's."""
    projects = () if is_demo else config_files_in_effect(workspace, trust)
    stored = project_store(workspace) / "permissions.toml"
    return sources.read((user_config_path(), *projects), stored, os.environ)


def find_unread(arguments: Arguments, trust: FolderTrust) -> tuple[UnreadRules, ...]:
    """The deny rules that cannot be read in the folder to begin in.

    Raises:
        UsageError: There is no such folder.
    """
    folder, is_demo = launch_folder(arguments), arguments.is_demo
    return rules_in_force(RuleSources(), trust, folder, is_demo=is_demo).unread


def refuse_unread(unread: Sequence[UnreadRules]) -> None:
    """Refuse to start without deny rules.

    Raises:
        UsageError: There are `unread` rules; names the file, the line or the key.
    """
    if not unread:
        return
    first, *others = unread
    advice = _FIX_VARIABLE
    if first.file is not None:
        advice = _FIX_OWN if first.file == user_config_path() else _FIX
    more = f" (and {len(others)} more)" if others else ""
    problem = first.problem.rstrip(".")
    raise UsageError(f"Deny rules cannot be read, so nothing runs{more}: {problem}.", advice)
