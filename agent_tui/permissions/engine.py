"""Deciding whether a tool call may run, must be asked about, or is refused."""

import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_never

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.errors import ConfigError
from agent_tui.permissions.command_judge import (
    CommandFacts,
    CommandJudge,
    named_part,
    path_deniers,
)
from agent_tui.permissions.decision_log import DecidedBy, DecisionLog, DecisionRecord
from agent_tui.permissions.git_settings import git_risk
from agent_tui.permissions.programs.offered_rules import rules_for_part
from agent_tui.permissions.protected_paths import ProtectedPaths, is_inside_git
from agent_tui.permissions.rules import (
    FETCH,
    Decision,
    Rule,
    change_rules_file,
    host_rule,
    outside_rule,
    parse_rule,
    rule_for_command,
    rule_for_host,
    stored_rules,
)
from agent_tui.permissions.shell.parts import ShellParts, split_command
from agent_tui.safe_paths import is_folder
from agent_tui.tools.base import Intent
from agent_tui.tools.sandbox.obeyed import who_obeys

_SCRATCH_FOLDERS = (Path("/tmp"), Path("/var/tmp"))
_PLAN_MODE = (
    "Plan mode is on: you can only read. Describe what you would do; the user leaves plan mode "
    "when they agree."
)
_READING_HELPER = (
    "You can only read here, with commands known to be read-only. Use the other tools to look."
)
_NOBODY_TO_ASK = (
    "This needs the user's approval ({why}), and this run cannot ask. Continue without it, or "
    "say which permission rule or mode would allow it."
)
_MAX_WHYS = 3
_RECURSIVE_TOOLS = ("grep",)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision and its reason, for the person when it asks and for the model when it denies.

    `session_rule` is the rule "for this session" and "always" would add, as text; empty where
    none may be made. `part_rules` allow the parts of a command that ask: with all of them it does
    not ask again. `by` says what decided. `parts` are the commands that were looked at,
    `touched` the files they name, links followed: what an approval of a command is bound to.
    `only_reads`: the call is known to change nothing, so that others may run beside it.
    `fault` is what the judging itself failed with, for the log.
    `unapproved`: why it would have asked, where it is denied because there is nobody to ask.
    `is_compound`: it is about some parts of a command, which `why` names, and not about others.
    """

    decision: Decision
    why: str
    session_rule: str = ""
    part_rules: tuple[str, ...] = ()
    by: DecidedBy = "mode"
    parts: tuple[str, ...] = ()
    touched: tuple[Path, ...] = ()
    only_reads: bool = False
    fault: Exception | None = None
    unapproved: str = ""
    is_compound: bool = False


_ALLOWED = Verdict("allow", "")
_ALLOWED_BY_RULE = Verdict("allow", "", by="rule")
_DECISIONS: tuple[Decision, ...] = ("deny", "ask", "allow")
_PROJECT_SOURCE = "project"
_SESSION_SOURCE = "session"
RUN_SOURCE = "command line"


class PermissionEngine:
    """Decides about the tool calls of one session.

    Reading files is free, also outside the workspace, except for files that hold keys and our
    own. Everything that changes something is up to the mode and the rules; deny rules win, then
    the most specific rule. Protected files and destructive commands ask in every mode, whatever
    a rule allows.

    Attributes:
        mode: The permission mode; it may be changed at any time.
        log: What was decided in this session.
        project_rules_file: Holds the rules that always apply in this project.
    """

    def __init__(
        self,
        *,
        mode: PermissionMode,
        rules: PermissionSettings,
        workspace: Path,
        project_rules_file: Path,
        own_folders: tuple[Path, ...] = (),
        is_interactive: bool = True,
        scratch_folders: tuple[Path, ...] = _SCRATCH_FOLDERS,
        git_risk: Callable[[Path], str] = git_risk,
    ) -> None:
        self.mode: PermissionMode = mode
        self.log = DecisionLog()
        self.project_rules_file = project_rules_file
        self._is_interactive = is_interactive
        self._only_reading = _PLAN_MODE
        self._problems: list[str] = []
        self._guard = ProtectedPaths(
            workspace=workspace.resolve(),
            own_folders=tuple(folder.resolve() for folder in own_folders),
            scratch_folders=tuple(folder.resolve() for folder in scratch_folders),
            home=_home_folder(),
            git_risk=git_risk,
        )
        self._rules = [
            *self._read_settings(rules),
            *self._read_file(project_rules_file),
        ]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules in force: command line, settings, project, session."""
        return tuple(self._rules)

    @property
    def problems(self) -> tuple[str, ...]:
        """Rules that could not be read, for the person."""
        return tuple(self._problems)

    def judge(self, tool_name: str, intent: Intent) -> Verdict:
        """Whether a call that would do `intent` may run; a call that breaks the judging asks."""
        try:
            verdict = self._judge_access(tool_name, intent)
        except Exception as fault:  # noqa: BLE001 - a fault here must neither allow nor end a turn
            verdict = self._unjudged(intent, fault)
        if intent.access != "execute":
            paths = tuple(str(path) for path in intent.paths)
            only_reads = intent.access in ("read", "network")
            verdict = replace(verdict, parts=paths, touched=intent.paths, only_reads=only_reads)
        return self._if_there_is_somebody(verdict)

    def _judge_access(self, tool_name: str, intent: Intent) -> Verdict:
        match intent.access:
            case "none":
                return self._by_rules(tool_name, intent) or _ALLOWED
            case "read":
                return self._judge_read(tool_name, intent)
            case "write":
                return self._judge_write(tool_name, intent)
            case "execute":
                return self._judge_command(intent.command)
            case "network":
                return self._judge_network(intent)
            case "outside":
                return self._judge_outside(tool_name)
            case _:
                assert_never(intent.access)

    def _unjudged(self, intent: Intent, fault: Exception) -> Verdict:
        """The verdict on a call that cannot be judged: only the person can decide."""
        if self.mode == "plan" and intent.access not in ("none", "read"):
            return Verdict("deny", self._only_reading, fault=fault)
        why = f"the permission check failed ({type(fault).__name__})"
        return Verdict("ask", why, by="protection", fault=fault)

    def asked_by_hook(self, verdict: Verdict, why: str) -> Verdict:
        """`verdict` where a hook has the person asked first; what is denied stays so."""
        if verdict.decision == "deny":
            return verdict
        whys = "; ".join(filter(None, (verdict.why, why)))
        asked = replace(
            verdict,
            decision="ask",
            why=whys,
            session_rule="",
            part_rules=(),
            by="hook",
            is_compound=verdict.is_compound and bool(verdict.why),
        )
        return self._if_there_is_somebody(asked)

    def _if_there_is_somebody(self, verdict: Verdict) -> Verdict:
        if verdict.decision == "ask" and not self._is_interactive:
            why = _NOBODY_TO_ASK.format(why=verdict.why)
            return replace(verdict, decision="deny", why=why, unapproved=verdict.why)
        return verdict

    def why_attaching_asks(self, path: Path) -> str:
        """Why a file that a text mentions is not sent unasked: keys, or a deny rule.

        Args:
            path: Absolute, links followed.
        """
        verdict = self._judge_read("read", Intent(title=str(path), access="read", paths=(path,)))
        is_held = verdict.decision == "deny" or verdict.by == "protection"
        return verdict.why if is_held else ""

    def may_show(self, path: Path) -> bool:
        """Whether a rule allows reading `path` by its name, so that commands may see it, too."""
        best: Rule | None = None
        for rule in self._rules:
            is_meant = rule.pattern != "*" and rule.is_for("read", "read")
            if is_meant and rule.matches_path(path, self._guard.workspace):
                best = rule if best is None or _is_stronger(rule, best) else best
        denying = path_deniers(self._rules, "read", self._guard.workspace)
        is_denied = any(denies(path) for _, denies in denying)
        return best is not None and best.decision == "allow" and not is_denied

    def held_in(self, searched: Path) -> Callable[[Path], bool]:
        """Tells which files a search leaves out: a rule denies them, or reading them asks.

        Where the search itself asks, those that ask are in it: the person has agreed to them.

        Args:
            searched: A file or folder, absolute, links followed, and so the paths that are told.
        """
        denying = path_deniers(self._rules, "read", self._guard.workspace)
        why_asks = self._guard.why_reading_asks
        is_agreed = bool(why_asks(searched) or self._guard.why_searching_asks(searched))

        def is_held(path: Path) -> bool:
            is_denied = any(denies(path) for _, denies in denying)
            return is_denied or (not is_agreed and bool(why_asks(path)))

        return is_held

    def why_not_restored(self, path: Path) -> str:
        """Why a file is not put back as a session's file says, which could be anybody's.

        That is what always asks and lies elsewhere, or where git obeys it.

        Args:
            path: Absolute, links followed.
        """
        guard = self._guard
        if guard.may_write_freely(path) and not is_inside_git(path):
            return ""
        return guard.why_writing_asks(path) or guard.why_system_asks(path)

    @property
    def is_interactive(self) -> bool:
        """Whether there is somebody to ask."""
        return self._is_interactive

    def record(self, tool_name: str, intent: Intent, verdict: Verdict) -> None:
        """Keep a decision in the log, where the person can look it up."""
        self.log.add(
            DecisionRecord(
                decided_at=datetime.now(UTC),
                tool=tool_name,
                what=intent.command or intent.title,
                decision=verdict.decision,
                why=verdict.why,
                by=verdict.by,
            )
        )

    def for_reading(self) -> "PermissionEngine":
        """The same rules and the same log for a helper that may only read, and nobody is asked."""
        reading = copy(self)
        reading.mode, reading._is_interactive = "plan", False
        reading._only_reading = _READING_HELPER
        return reading

    def continue_from(self, previous: "PermissionEngine") -> None:
        """Take the log and the session rules of the engine that judged this session until now."""
        self.log = previous.log
        self._rules += [rule for rule in previous.rules if rule.source == _SESSION_SOURCE]

    def work_in(self, added: Sequence[Path]) -> None:
        """Judge the `added` folders as the workspace is judged."""
        resolved = tuple(folder.resolve() for folder in added)
        self._guard = replace(self._guard, added_folders=resolved)

    def add_run_rules(self, rules: Sequence[Rule]) -> None:
        """Go by `rules` of the command line, too."""
        self._rules += rules

    def add_session_rule(self, rule: str, decision: Decision = "allow") -> None:
        """Go by `rule` until the program ends; empty adds nothing.

        Raises:
            ConfigError: It is no rule.
        """
        if rule:
            self._put(parse_rule(rule, decision, _SESSION_SOURCE))

    def add_project_rule(self, rule: str, decision: Decision = "allow") -> None:
        """Go by `rule` in this project from now on; empty adds nothing.

        Raises:
            ConfigError: It is no rule, or the rules file cannot be written; then it holds for
                this session.
        """
        if not rule:
            return
        kept = parse_rule(rule, decision, _PROJECT_SOURCE)
        path = self.project_rules_file
        try:
            for other in _DECISIONS:
                added = (rule,) if other == decision else ()
                change_rules_file(
                    path, other, lambda texts, added=added: [*_without(texts, kept), *added]
                )
        except (OSError, ValueError) as error:
            self._put(replace(kept, source=_SESSION_SOURCE))
            raise ConfigError(
                f"{path}: cannot save the rule: {error}", "It applies to this session only."
            ) from error
        self._put(kept)

    def _put(self, rule: Rule) -> None:
        """Add `rule` in place of what its source said of the same calls."""
        said = (rule.source, str(rule))
        self._rules = [kept for kept in self._rules if (kept.source, str(kept)) != said]
        self._rules.append(rule)

    def remove_rule(self, rule: Rule) -> None:
        """Take a rule of this session or project back.

        Raises:
            ConfigError: it comes from the settings or the command line, or the rules file cannot
                be written.
        """
        if rule.source == RUN_SOURCE:
            raise ConfigError(f"{rule} comes from the command line.", "Start agent-tui without it.")
        if rule.source not in (_SESSION_SOURCE, _PROJECT_SOURCE):
            raise ConfigError(
                f"{rule} comes from the settings.", "Remove it from config.toml: /settings."
            )
        path = self.project_rules_file
        if rule.source == _PROJECT_SOURCE:
            try:
                change_rules_file(path, rule.decision, lambda texts: _without(texts, rule))
            except (OSError, ValueError) as error:
                raise ConfigError(
                    f"{path}: cannot remove the rule: {error}", "Edit that file."
                ) from error
        self._rules = [kept for kept in self._rules if (kept, kept.source) != (rule, rule.source)]

    def _judge_read(self, tool_name: str, intent: Intent) -> Verdict:
        ruled = self._by_rules(tool_name, intent)
        if ruled is not None and ruled.decision == "deny":
            return ruled
        for path in intent.paths:
            searches = tool_name in _RECURSIVE_TOOLS and is_folder(path)
            guard = self._guard
            if why := guard.why_searching_asks(path) if searches else guard.why_reading_asks(path):
                return Verdict("ask", why, by="protection")
        return ruled or _ALLOWED

    def _judge_write(self, tool_name: str, intent: Intent) -> Verdict:
        ruled = self._by_rules(tool_name, intent)
        if ruled is not None and ruled.decision == "deny":
            return ruled
        if self.mode == "plan":
            return Verdict("deny", self._only_reading)
        for path in intent.paths:
            if why := self._guard.why_writing_asks(path) or self._guard.why_system_asks(path):
                return Verdict("ask", why, by="protection")
        if ruled is not None:
            return ruled
        outside = [path for path in intent.paths if not self._guard.may_write_freely(path)]
        obeyed = "; ".join(filter(None, map(self._why_obeyed, intent.paths)))
        if self.mode == "full" or (self.mode == "accept-edits" and not (outside or obeyed)):
            return _ALLOWED
        why = f"writes outside the folder: {outside[0]}" if outside else obeyed or "changes a file"
        return Verdict("ask", why, self._write_rule(intent.paths))

    def _why_obeyed(self, path: Path) -> str:
        """Why changing `path` decides what other programs do."""
        allowed = [rule for rule in self._command_rules() if rule.decision == "allow"]
        root = self._guard.root_of(path)
        shown = path.relative_to(root) if root is not None else path
        who = who_obeys(shown, (rule.program for rule in allowed))
        return f"{path} controls {who}" if who else ""

    def _judge_outside(self, tool_name: str) -> Verdict:
        """A call of another program's tool: nobody knows what it does, so only rules allow it."""
        rule = outside_rule(tool_name, self._rules)
        if rule is not None and rule.decision == "deny":
            return Verdict("deny", f"the deny rule {rule} forbids it", by="rule")
        if self.mode == "plan":
            return Verdict("deny", self._only_reading)
        if rule is None:
            return Verdict("ask", "runs an MCP tool, whose effect is unknown", tool_name)
        if rule.decision == "allow":
            return _ALLOWED_BY_RULE
        return Verdict("ask", f"the ask rule {rule} applies", tool_name, by="rule")

    def judge_host(self, host: str, port: int = 443) -> Verdict:
        """Whether a command inside a wall may connect to `host` (in small letters)."""
        rule = host_rule(FETCH, host, self._rules, port)
        kept = rule_for_host(host, port, may_be_bundle=True)
        verdict = self._by_host_rule(rule, kept)
        if verdict is None and self.mode == "full":
            why = f"full mode connects only to hosts that a rule allows, such as {kept}"
            verdict = Verdict("deny", why)
        verdict = verdict or Verdict("ask", "a command in the sandbox wants it", kept)
        return self._if_there_is_somebody(verdict)

    def _judge_network(self, intent: Intent) -> Verdict:
        """A request of `fetch` to a host, which can carry words out as well as in."""
        rule = host_rule(FETCH, intent.host, self._rules)
        kept = rule_for_host(intent.host)
        if (verdict := self._by_host_rule(rule, kept)) is not None:
            return verdict
        if self.mode == "full":
            if not intent.leaves_sandbox:
                return _ALLOWED
            why = f"full mode asks only hosts that a rule allows, such as {kept}"
            return Verdict("deny", f"{why}, as the sandbox keeps commands from the network")
        beside = ", which the sandbox blocks for commands" if intent.leaves_sandbox else ""
        return Verdict("ask", f"sends a request to {intent.host}{beside}", kept)

    def _by_host_rule(self, rule: Rule | None, kept: str) -> Verdict | None:
        """What `rule` and plan mode say of a host; None where the other modes decide."""
        if rule is not None and rule.decision == "deny":
            return Verdict("deny", f"the deny rule {rule} forbids it", by="rule")
        if rule is not None and rule.decision == "allow":
            return _ALLOWED_BY_RULE
        if self.mode == "plan":
            return Verdict("deny", f"{self._only_reading} Only hosts that a rule allows are asked.")
        if rule is not None:
            return Verdict("ask", f"the ask rule {rule} applies", kept, by="rule")
        return None

    def _by_rules(self, tool_name: str, intent: Intent) -> Verdict | None:
        """What the rules say of a call by its paths: deny first, then the most specific."""
        best: Rule | None = None
        for rule in self._rules:
            if not rule.is_for(tool_name, intent.access):
                continue
            matched = self._matched(rule, intent.paths)
            if rule.decision == "deny":
                if any(matched) or rule.pattern == "*":
                    return Verdict("deny", f"the deny rule {rule} forbids it", by="rule")
                continue
            holds = any(matched) if rule.decision == "ask" else all(matched)
            if holds and (best is None or _is_stronger(rule, best)):
                best = rule
        if best is None:
            return None
        if best.decision == "allow":
            return _ALLOWED_BY_RULE
        why = f"the ask rule {best} applies"
        return Verdict("ask", why, self._write_rule(intent.paths), by="rule")

    def _matched(self, rule: Rule, paths: Sequence[Path]) -> list[bool]:
        workspace = self._guard.workspace
        if rule.decision == "allow":
            return [rule.matches_path(path, workspace) for path in paths]
        denies = rule.strict_path_matcher(workspace)
        return [denies(path) for path in paths]

    def _write_rule(self, paths: Sequence[Path]) -> str:
        """A rule for exactly one file; a name with glob characters gets none."""
        if len(paths) != 1 or any(c in str(paths[0]) for c in "*?"):
            return ""
        path, workspace = paths[0], self._guard.workspace
        inside = path.is_relative_to(workspace)
        return f"write({path.relative_to(workspace).as_posix() if inside else path})"

    def _judge_command(self, command: str) -> Verdict:
        parts = split_command(command)
        if parts.problem:
            if self.mode == "plan":
                return Verdict("deny", self._only_reading)
            part = named_part(parts.problem_part)
            is_compound = bool(part) and part != named_part(command)
            where = f", in: {part}" if is_compound else ""
            why = f"the command cannot be checked: {parts.problem}{where}"
            return Verdict("ask", why, by="protection", is_compound=is_compound)
        judge = CommandJudge(self._guard, self._rules)
        facts = judge.facts(parts)
        verdict = self._weigh(command, facts, lambda: judge.may_be_denied(parts))
        if verdict.decision == "ask" and verdict.by == "mode" and self._is_interactive:
            offered = self._rules_for_parts(command, parts, facts)
            verdict = replace(verdict, part_rules=offered)
        texts = tuple(dict.fromkeys(part.source for part in parts.commands))
        return replace(
            verdict,
            parts=texts,
            touched=facts.touched,
            only_reads=facts.is_reading,
            is_compound=parts.is_compound and _leaves_some(parts, verdict.why),
        )

    def _weigh(
        self, command: str, facts: CommandFacts, may_be_denied: Callable[[], str]
    ) -> Verdict:
        """Deny rules, then the mode, then what always asks, then the other rules."""
        if denied := facts.denied or self._denied_writes(facts.written):
            return Verdict("deny", denied, by="rule")
        if self.mode == "plan":
            return _ALLOWED if facts.is_reading else Verdict("deny", self._why_not_reading(facts))
        if facts.dangers:
            return Verdict("ask", _listed(facts.dangers), by="protection")
        if why := may_be_denied():
            return Verdict("ask", why, by="rule")
        if any(r.decision == "allow" and r.matches_whole(command) for r in self._command_rules()):
            return _ALLOWED_BY_RULE
        if facts.asked:
            return Verdict("ask", facts.asked, rule_for_command(command), by="rule")
        if why := self._why_command_asks(command, facts):
            return Verdict("ask", why, rule_for_command(command))
        is_ruled = self.mode != "full" and len(facts.changing) > len(facts.unlisted)
        return _ALLOWED_BY_RULE if is_ruled else _ALLOWED

    def _why_not_reading(self, facts: CommandFacts) -> str:
        """What the model is told in plan mode of a command that may change something."""
        if facts.changing:
            return f"{self._only_reading} Not known to be read-only: {_listed(facts.changing)}."
        if facts.written:
            return f"{self._only_reading} It writes {facts.written[0]}."
        return f"{self._only_reading} It needs approval: {_listed(facts.dangers)}."

    def _why_command_asks(self, command: str, facts: CommandFacts) -> str:
        if self.mode == "full":
            return _listed(facts.unknown)
        if facts.unlisted:
            if facts.unlisted == (command.strip(),):
                return "not known to be read-only"
            return f"not known to be read-only: {_listed(facts.unlisted)}"
        whys = (self._why_output_asks(path) for path in facts.written)
        return next(filter(None, whys), "")

    def _why_output_asks(self, path: Path) -> str:
        """Why the shell may not write `path` unasked."""
        obeyed = self._why_obeyed(path)
        is_within = self.mode == "accept-edits" and self._guard.may_write_freely(path)
        if (is_within and not obeyed) or self._allows_write(path):
            return ""
        return obeyed or f"writes {path}"

    def _rules_for_parts(
        self, command: str, parts: ShellParts, facts: CommandFacts
    ) -> tuple[str, ...]:
        """Rules for the parts of `command` that ask, with which it does not ask any more.

        Each is the widest that is sensible and suffices. None where the rules do not suffice, or
        are what `session_rule` says.
        """
        is_fed = any(not one.writes for one in parts.redirections)
        offers = [
            tuple(rules_for_part(part, self._guard.workspace, is_fed=is_fed))
            for part in facts.asking
        ]
        writes = [self._write_rule([p]) for p in facts.written if self._why_output_asks(p)]
        if self.mode == "full" or not all((*offers, *writes)):
            return ()
        wide, _ = self._with_rules(parts, [offer[0] for offer in offers])
        chosen = [
            offer[-1] if part in wide.asking else offer[0]
            for part, offer in zip(facts.asking, offers, strict=True)
        ]
        offered = tuple(dict.fromkeys((*chosen, *writes)))
        trial, engine = self._with_rules(parts, offered)
        if offered == (rule_for_command(command),) or engine._why_command_asks(command, trial):
            return ()
        return offered

    def _with_rules(
        self, parts: ShellParts, rules: Sequence[str]
    ) -> tuple[CommandFacts, "PermissionEngine"]:
        """What is known of a command once `rules` allow more, and the engine that knows it."""
        engine = copy(self)
        engine._problems = []
        engine._rules = [*self._rules, *engine._parsed(rules, "allow", _SESSION_SOURCE)]
        return CommandJudge(self._guard, engine._rules).facts(parts), engine

    def _command_rules(self) -> list[Rule]:
        return [rule for rule in self._rules if rule.is_for("bash", "execute")]

    def _write_rules(self) -> list[Rule]:
        return [rule for rule in self._rules if rule.is_for("write", "write")]

    def _denied_writes(self, paths: Sequence[Path]) -> str:
        for rule in self._write_rules():
            if rule.decision == "deny":
                denies = rule.strict_path_matcher(self._guard.workspace)
                for path in paths:
                    if denies(path):
                        return f"the deny rule {rule} forbids writing {path}"
        return ""

    def _allows_write(self, path: Path) -> bool:
        matching = [r for r in self._write_rules() if r.matches_path(path, self._guard.workspace)]
        best: Rule | None = None
        for rule in matching:
            if best is None or _is_stronger(rule, best):
                best = rule
        return best is not None and best.decision == "allow"

    def _read_settings(self, settings: PermissionSettings) -> list[Rule]:
        return [
            *self._parsed(settings.deny, "deny", "settings"),
            *self._parsed(settings.ask, "ask", "settings"),
            *self._parsed(settings.allow, "allow", "settings"),
        ]

    def _read_file(self, path: Path) -> list[Rule]:
        try:
            stored: list[tuple[Decision, list[str]]] = [
                (decision, stored_rules(path, decision)) for decision in _DECISIONS
            ]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except (OSError, ValueError) as error:
            self._problems.append(f"{path}: cannot read the project's rules: {error}")
            return []
        rules: list[Rule] = []
        for decision, texts in stored:
            rules += self._parsed(texts, decision, _PROJECT_SOURCE)
        return rules

    def _parsed(self, texts: Sequence[str], decision: Decision, source: str) -> list[Rule]:
        rules: list[Rule] = []
        for text in texts:
            try:
                rules.append(parse_rule(text, decision, source))
            except ConfigError as error:
                where = str(self.project_rules_file) if source == _PROJECT_SOURCE else source
                self._problems.append(f"{where}: {decision}: {error}")
        return rules


def _leaves_some(parts: ShellParts, why: str) -> bool:
    """Whether `why` leaves out some of the commands, so that they could run without the others."""
    names = (named_part(part.source) for part in parts.commands if part.kind == "command")
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", why) is None for name in names)


def _listed(found: Sequence[str]) -> str:
    """The first reasons of several, and how many there are beside them."""
    whys = tuple(dict.fromkeys(found))
    beside = len(whys) - _MAX_WHYS
    return "; ".join(whys[:_MAX_WHYS]) + (f"; and {beside} more" if beside > 0 else "")


def _home_folder() -> Path | None:
    try:
        return Path.home().resolve()
    except RuntimeError:  # no HOME, and the system does not know this user
        return None


def _without(texts: Sequence[str], rule: Rule) -> list[str]:
    """`texts` without those that speak of the same calls as `rule`."""
    return [text for text in texts if not _speaks_of(text, rule)]


def _speaks_of(text: str, rule: Rule) -> bool:
    try:
        return str(parse_rule(text, rule.decision)) == str(rule)
    except ConfigError:
        return False


def _is_stronger(rule: Rule, other: Rule) -> bool:
    """The more specific rule; of two alike the more careful one."""
    if rule.specificity != other.specificity:
        return rule.specificity > other.specificity
    return rule.decision == "ask"
