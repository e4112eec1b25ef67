"""Builds the permission engine of each folder that the conversation works in."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from agent_tui.cli.arguments import Arguments
from agent_tui.cli.command_sandbox import ProgramSandbox, view_of_commands
from agent_tui.cli.folders import project_store
from agent_tui.cli.unread_rules import rules_in_force
from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.errors import ConfigError, UsageError
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.rule_book import RUN_SOURCE
from agent_tui.permissions.rule_sources import RuleSources, add_rules
from agent_tui.permissions.rules import Rule, parse_rule, rules_for_names
from agent_tui.permissions.trust import FolderTrust
from agent_tui.tools.files.home_links import linked_settings


class EngineMaker:
    """Builds engines. What can no longer be read of the rules stays as it was read before.

    Args:
        arguments: The command line, which may have rules.
        trust: Says which project settings are in force.
        rules_of: The rules in the settings in force in a folder.
        sandbox: Decides what commands can read.
        own_folders: Where the program keeps its settings and sessions.
        added: Other working folders.
        is_interactive: Whether a user can answer questions.
    """

    def __init__(
        self,
        arguments: Arguments,
        trust: FolderTrust,
        rules_of: Callable[[Path], PermissionSettings],
        sandbox: ProgramSandbox,
        *,
        own_folders: tuple[Path, ...],
        added: Sequence[Path],
        is_interactive: bool,
    ) -> None:
        self._arguments = arguments
        self._trust = trust
        self._rules_of = rules_of
        self._sandbox = sandbox
        self._own_folders = own_folders
        self._added = added
        self._is_interactive = is_interactive
        self._sources = RuleSources()

    def make(self, workspace: Path, mode: PermissionMode) -> PermissionEngine:
        """The engine for `workspace` in `mode`, or in mode ask if deny rules are missing.

        Raises:
            UsageError: A rule of the command line is not valid.
        """
        is_demo = self._arguments.is_demo
        read = rules_in_force(self._sources, self._trust, workspace, is_demo=is_demo)
        permissions = PermissionEngine(
            mode=mode,
            rules=add_rules(self._rules_of(workspace), read.earlier),
            workspace=workspace,
            project_rules_file=project_store(workspace) / "permissions.toml",
            own_folders=self._own_folders,
            is_interactive=self._is_interactive,
            git_risk=self._trust.git_risk,
        )
        linked = linked_settings((workspace, *self._added), os.environ)
        permissions.work_in(self._added, view_of_commands(self._sandbox, workspace), linked)
        permissions.book.add_run_rules(_rules_of_run(self._arguments))
        permissions.book.unread = read.unread
        permissions.mode = permissions.book.limit_mode(mode)
        return permissions


def _rules_of_run(arguments: Arguments) -> tuple[Rule, ...]:
    """The rules of ``--deny``, ``--allow`` and ``--allow-net``.

    Raises:
        UsageError: One is not a valid rule.
    """
    try:
        return (
            *(parse_rule(text, "deny", RUN_SOURCE) for text in arguments.denied),
            *(parse_rule(text, "allow", RUN_SOURCE) for text in arguments.allowed),
            *(rule for text in arguments.allowed_net for rule in rules_for_names(text, RUN_SOURCE)),
        )
    except ConfigError as error:
        raise UsageError(error.message, error.advice) from error
