"""``agent-tui permissions``: shows what the permission engine decides, and the rules in force."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from pydantic import JsonValue

from agent_tui import paths
from agent_tui.cli.command_parser import CommandParser, subcommand_parser
from agent_tui.cli.command_sandbox import ProgramSandbox, command_sandbox, view_of_commands
from agent_tui.cli.folders import existing_folder, load_trust, present_folder, project_store
from agent_tui.cli.output import complain, write_json, write_text
from agent_tui.cli.settings import read_settings, session_root
from agent_tui.cli.unread_rules import refuse_unread, rules_in_force
from agent_tui.config import PermissionMode, Settings
from agent_tui.errors import ConfigError, ToolError, UsageError
from agent_tui.messages import JsonObject
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.project_files import config_files
from agent_tui.permissions.rule_book import RUN_SOURCE
from agent_tui.permissions.rule_sources import RuleSources
from agent_tui.permissions.rules import Decision, Rule, parse_rule
from agent_tui.permissions.verdict import Verdict
from agent_tui.safe_text import safe_text
from agent_tui.tool_names import is_remote
from agent_tui.tools.base import Intent, Toolbox, ToolContext
from agent_tui.tools.files.home_links import linked_settings
from agent_tui.tools.files.memory import FileMemory
from agent_tui.tools.registry import default_toolbox

_DESCRIPTION = "Check what the permission rules decide, and list or remove rules."
_CHECK_EPILOG = """\
--stdin reads a JSON list of calls and prints a list of decisions:
  [{"tool": NAME, "arguments": {...}}, ...]
  [{"decision": "allow|ask|deny", "why": TEXT, "parts": [TEXT, ...]}, ...]
Of a command, "where" is where it would run ("inside" the sandbox or "outside")
and "meets" what the sandbox would keep from it, as far as its text tells.
A call that cannot run (unknown tool, wrong arguments, missing file) is "deny".

Options come before COMMAND. Put -- before a command that begins with a dash.
Exit codes: 0 for every decision, 2 for wrong usage or if deny rules cannot be
read."""
_MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui permissions``."""
    parser = subcommand_parser("permissions", _DESCRIPTION)
    add = parser.verb_adder()
    _add_check_options(
        add("check", "check a command or a list of calls without running it", _CHECK_EPILOG)
    )
    listing = add("list", "list the mode and the rules in effect here")
    removing = add("remove", "remove a rule of this project")
    removing.add_argument("rule", metavar="RULE", help="rule, as permissions list shows it")
    for each in (listing, removing):
        each.add_argument("--cwd", type=Path, metavar="DIR", help="folder of the project")
    listing.add_json()
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui permissions`` with the arguments after that word; returns the exit code.

    Raises:
        UsageError: The folder does not exist, or standard input is not a list of calls.
        ConfigError: A rule is invalid, or the rule to remove does not exist.
    """
    arguments = build_parser().parse_args(list(argv))
    match arguments.verb:
        case "check":
            return _check(arguments)
        case "list":
            return _list(arguments)
        case _:
            return _remove(arguments)


def _add_check_options(check: CommandParser) -> None:
    check.add_argument(
        "--mode", choices=_MODES, help="permission mode (default: from the settings)"
    )
    for kind, example in (("allow", ", such as 'bash(git status)'"), ("deny", ""), ("ask", "")):
        article = "a" if kind == "deny" else "an"
        check.add_argument(
            f"--{kind}",
            action="append",
            default=[],
            metavar="RULE",
            help=f"add {article} {kind} rule{example}",
        )
    check.add_argument("--cwd", type=Path, metavar="DIR", help="folder to work in")
    check.add_argument(
        "--outside",
        action="store_true",
        help="judge COMMAND as the model would ask to run it outside the sandbox",
    )
    check.add_argument(
        "--no-wall",
        action="store_false",
        dest="has_wall",
        help="judge as on a machine without a sandbox",
    )
    check.add_json()
    check.add_argument(
        "--stdin", action="store_true", dest="reads_stdin", help="read calls from standard input"
    )
    check.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="shell command")


def _check(arguments: argparse.Namespace) -> int:
    words = cast("list[str]", arguments.command)
    if words[:1] == ["--"]:
        words = words[1:]
    if bool(words) == bool(arguments.reads_stdin):
        raise UsageError("Name one command, or pipe a list of calls to --stdin.")
    workspace = _workspace(arguments)
    permissions = _permissions(arguments, workspace)
    refuse_unread(permissions.book.missing)
    sandbox = ProgramSandbox()
    if arguments.has_wall:
        sandbox = command_sandbox(_settings(workspace), os.environ)
    linked = linked_settings((workspace,), os.environ)
    permissions.work_in((), view_of_commands(sandbox, workspace), linked)
    judge = _Judge(permissions, default_toolbox(sandbox=sandbox), workspace)
    if arguments.reads_stdin:
        calls = _calls_from(sys.stdin.buffer.read())
        write_json([judge.decide(call) for call in calls])
        return 0
    given: JsonObject = {"command": " ".join(words)}
    if arguments.outside:
        given |= {"outside": True, "why": "--outside"}
    decided = judge.decide({"tool": "bash", "arguments": given})
    if arguments.is_json:
        write_json(decided)
    else:
        write_text(_readable(decided))
    return 0


def _list(arguments: argparse.Namespace) -> int:
    permissions = _permissions(arguments, _workspace(arguments))
    rows: list[JsonValue] = [
        {"decision": rule.decision, "rule": str(rule), "source": rule.source}
        for rule in permissions.book.rules
    ]
    problems = permissions.book.problems
    unread = [one.problem for one in permissions.book.unread]
    if arguments.is_json:
        write_json({"mode": permissions.mode, "rules": rows, "problems": [*problems, *unread]})
        return 0
    lines = [f"mode: {permissions.mode}"]
    lines += [f"{rule.decision:5}  {rule}  ({rule.source})" for rule in permissions.book.rules]
    lines += [f"ignored: {problem}" for problem in problems]
    lines += [f"cannot be read: {problem}" for problem in unread]
    write_text(safe_text("\n".join(lines)) + "\n")
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    permissions = _permissions(arguments, _workspace(arguments))
    wanted = cast(str, arguments.rule)
    for rule in permissions.book.rules:
        if str(rule) == wanted and rule.source == "project":
            permissions.book.remove_rule(rule)
            write_text(safe_text(f"Removed: {rule.decision} {rule}") + "\n")
            return 0
    raise ConfigError(f"This project has no rule {wanted}.", "See agent-tui permissions list.")


def _workspace(arguments: argparse.Namespace) -> Path:
    return existing_folder(cast("Path | None", arguments.cwd) or present_folder())


def _settings(workspace: Path) -> Settings:
    return read_settings(None, tuple(filter(load_trust().may_obey, config_files(workspace))))


def _permissions(arguments: argparse.Namespace, workspace: Path) -> PermissionEngine:
    """The engine as the program would build it here, plus the rules on the command line."""
    settings = _settings(workspace)
    permissions = PermissionEngine(
        mode=cast("PermissionMode | None", getattr(arguments, "mode", None))
        or settings.permission_mode,
        rules=settings.permissions,
        workspace=workspace,
        project_rules_file=project_store(workspace) / "permissions.toml",
        own_folders=(paths.user_config_dir(), paths.user_data_dir(), session_root(settings)),
        git_risk=load_trust().git_risk,
    )
    permissions.work_in((), find_linked=linked_settings((workspace,), os.environ))
    permissions.book.add_run_rules(tuple(_rules_from(arguments)))
    read = rules_in_force(RuleSources(), load_trust(), workspace, is_demo=False)
    permissions.book.unread = read.unread
    for problem in permissions.book.problems:
        complain(problem)
    return permissions


def _rules_from(arguments: argparse.Namespace) -> Iterator[Rule]:
    """The rules of ``--deny``, ``--ask`` and ``--allow``.

    Raises:
        UsageError: One is not a valid rule.
    """
    for kind in get_args(Decision):
        for text in cast("list[str]", getattr(arguments, kind, [])):
            try:
                yield parse_rule(text, kind, RUN_SOURCE)
            except ConfigError as error:
                raise UsageError(f"--{kind}: {error.message}", error.advice) from error


def _calls_from(text: bytes) -> list[JsonValue]:
    try:
        calls, why = cast(JsonValue, json.loads(text)), "a list of calls"
    except (ValueError, RecursionError) as error:
        calls, why = None, f"JSON: {error}"
    if isinstance(calls, list):
        return calls
    hint = 'Give it [{"tool": ..., "arguments": {...}}].'
    raise UsageError(f"Standard input is not {why}.", hint)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Passes calls to the engine as if the model had made them."""

    permissions: PermissionEngine
    toolbox: Toolbox
    workspace: Path

    def decide(self, call: JsonValue) -> JsonObject:
        """The engine's decision on one call."""
        match call:
            case {"tool": str() as name, "arguments": dict() as given}:
                return self._of_call(name, given)
            case {"tool": str() as name, **rest} if "arguments" not in rest:
                return self._of_call(name, {})
            case _:
                return _verdict_json(
                    Verdict("deny", 'A call is an object with "tool" and "arguments".')
                )

    def _of_call(self, name: str, given: JsonObject) -> JsonObject:
        try:
            intent = self._intent(name, given)
        except ToolError as error:
            return _verdict_json(Verdict("deny", str(error)))
        except (OSError, RuntimeError, ValueError) as error:
            return _verdict_json(Verdict("deny", f"Cannot be checked: {error}"))
        verdict = self.permissions.judge(name, intent)
        decided = _verdict_json(verdict)
        if intent.access == "execute":
            where = "inside" if intent.place == "inside" else "outside"
            decided |= {"where": where, "meets": [*verdict.meets]}
        return decided

    def _intent(self, name: str, given: JsonObject) -> Intent:
        if is_remote(name):  # its server is not asked whether it has such a tool
            return Intent(title=name, access="outside")
        context = ToolContext(
            cwd=self.workspace,
            emit=lambda _text, _skipped=0: None,
            files=FileMemory(),
            output_dir=paths.cache_folder("outputs"),
            environ=dict(os.environ),
            todos=[],
        )
        return self.toolbox.prepare(name, given, context).intent


def _verdict_json(verdict: Verdict) -> JsonObject:
    return {"decision": verdict.decision, "why": verdict.why, "parts": [*verdict.parts]}


def _readable(decided: JsonObject) -> str:
    """The decision, the reason, and the parts that were examined, for the user."""
    why = f": {decided['why']}" if decided["why"] else ""
    parts = cast("list[str]", decided["parts"])
    where = f" ({decided['where']} the sandbox)" if decided.get("where") == "inside" else ""
    lines = [f"{decided['decision']}{where}{why}"]
    if len(parts) > 1:
        lines += [f"  {part}" for part in parts]
    return safe_text("\n".join(lines)) + "\n"
