"""Decides whether a tool call may run, needs approval, or is denied."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_never

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.errors import IN_CHAT, IN_PROGRAM, Ways
from agent_tui.permissions.command_judge import (
    CommandFacts,
    CommandJudge,
    path_deniers,
    shorten_part,
)
from agent_tui.permissions.decision_log import DecisionLog, DecisionRecord
from agent_tui.permissions.programs.offered_rules import rules_for_part
from agent_tui.permissions.project_files import git_risk
from agent_tui.permissions.protected_paths import ProtectedPaths, is_inside_git
from agent_tui.permissions.rule_book import RuleBook
from agent_tui.permissions.rules import (
    INSIDE_RULE,
    PLUGIN_TOOL,
    Rule,
    host_rule,
    outside_rule,
    rule_for_command,
    rule_for_host,
    strongest_rule,
)
from agent_tui.permissions.shell.parts import ShellParts, split_command
from agent_tui.permissions.verdict import Permissions, Verdict
from agent_tui.safe_paths import is_folder, real_path
from agent_tui.tool_names import is_remote
from agent_tui.tools.base import Intent
from agent_tui.tools.files.obeyed import who_obeys, who_obeys_in

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
    "say {allowing}."
)
_LOSS = "{what}, which cannot be undone"
_LOSS_OF_FILES = "{what}, which undo may not restore"
_LOSS_IN_FULL = (
    "{why}; mode full does not ask about that. Commit the work or copy it elsewhere first, or "
    "leave this to the user."
)
_GATE_IN_FULL = (
    "{why}. Mode full does not ask about that: it needs an allow rule. Continue inside the "
    "sandbox, or tell the user what you need it for."
)
_FULL_NEEDS_RULE = "{why}. Mode full does not ask about that: it needs an allow rule."
_RULE_HINT = " The user can allow it with: {rules}"
_NETWORK_HINT = (
    " If the network is all it needs, run it inside the sandbox; the user can allow hosts with "
    "--allow-net."
)
_MAX_WHYS = 3
_RECURSIVE_TOOLS = ("grep",)


_ALLOWED = Verdict("allow", "")
_ALLOWED_BY_RULE = Verdict("allow", "", by="rule")


class PermissionEngine:
    """Decides about the tool calls of one session.

    Without a sandbox, reading files is allowed, also outside the workspace, except files that hold
    keys and agent-tui's own. The mode and the rules decide about changes; deny rules win, then the
    most specific rule. Protected files and destructive commands ask in every mode, whatever a rule
    allows.

    In a sandbox the kernel keeps commands from doing harm elsewhere. Deny rules decide first, then
    ask rules, then whether work in the folder would be lost, then the mode: plan runs everything in
    a read-only sandbox, ask asks unless a command is known to only read, the others run it. Outside
    the sandbox a command needs approval or an allow rule.

    Attributes:
        mode: The permission mode; it may be changed at any time.
        ways: Those of whoever starts the program, if nobody can be asked.
        log: What was decided in this session.
        book: The rules in force.
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
        self.ways: Ways = IN_CHAT
        self.log = DecisionLog()
        self.book = RuleBook(rules, project_rules_file)
        self._is_interactive = is_interactive
        self._only_reading = _PLAN_MODE
        self._guard = ProtectedPaths(
            workspace=real_path(workspace),
            own_folders=tuple(real_path(folder) for folder in own_folders),
            scratch_folders=tuple(real_path(folder) for folder in scratch_folders),
            home=_home_folder(),
            git_risk=git_risk,
        )

    def judge(self, tool_name: str, intent: Intent, *, can_undo: bool = False) -> Verdict:
        """Decide whether a call that would do `intent` may run; if judging fails, the call asks.

        Args:
            tool_name: The tool that is called.
            intent: What it would do.
            can_undo: Whether undo is known to restore the uncommitted work in the folder.
        """
        try:
            verdict = self._judge_access(tool_name, intent, can_undo=can_undo)
        except Exception as fault:  # noqa: BLE001 - a fault here must neither allow nor end a turn
            verdict = self._ask_unjudged(intent, fault)
        if intent.access != "execute":
            paths = tuple(str(path) for path in intent.paths)
            only_reads = intent.access in ("read", "network")
            verdict = replace(verdict, parts=paths, touched=intent.paths, only_reads=only_reads)
        return self._if_there_is_somebody(verdict)

    def allows_in(self, mode: PermissionMode, tool_name: str, intent: Intent) -> bool:
        """Whether the call would be allowed unasked in `mode`."""
        engine = copy(self)
        engine.mode = mode
        return engine.judge(tool_name, intent).decision == "allow"

    def _judge_access(self, tool_name: str, intent: Intent, *, can_undo: bool) -> Verdict:
        match intent.access:
            case "none":
                return self._by_rules(tool_name, intent) or _ALLOWED
            case "read":
                return self._judge_read(tool_name, intent) or self._judge_unseen(tool_name, intent)
            case "write":
                return self._judge_write(tool_name, intent)
            case "execute":
                return self._judge_command(intent, can_undo=can_undo)
            case "network":
                return self._judge_network(intent)
            case "outside":
                return self._judge_outside(tool_name)
            case _:
                assert_never(intent.access)

    def _ask_unjudged(self, intent: Intent, fault: Exception) -> Verdict:
        """The verdict on a call that cannot be judged: only the user can decide."""
        if self.mode == "plan" and intent.access not in ("none", "read"):
            return Verdict("deny", self._only_reading, fault=fault)
        why = f"the permission check failed ({type(fault).__name__})"
        return Verdict("ask", why, by="protection", fault=fault)

    def ask_for_hook(self, verdict: Verdict, why: str) -> Verdict:
        """`verdict`, changed to ask because a hook wants approval; a denial stays."""
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
            has_rules = self.ways is not IN_PROGRAM
            hint = _rule_hint(verdict.wanted_rules) + verdict.network_hint if has_rules else ""
            why = _NOBODY_TO_ASK.format(why=verdict.why, allowing=self.ways.allowing) + hint
            return replace(verdict, decision="deny", why=why, unapproved=verdict.why)
        return verdict

    def why_attaching_asks(self, path: Path) -> str:
        """Why a mentioned file is not attached without asking: keys, or a deny rule.

        Args:
            path: Absolute, links followed.
        """
        verdict = self._judge_read("read", Intent(title=str(path), access="read", paths=(path,)))
        is_held = verdict is not None and (verdict.decision == "deny" or verdict.by == "protection")
        return verdict.why if verdict is not None and is_held else ""

    def may_show(self, path: Path) -> bool:
        """Whether a rule allows reading exactly `path`, so that commands may see it too."""
        best = strongest_rule(
            rule
            for rule in self.book.rules
            if rule.pattern != "*"
            and rule.is_for("read", "read")
            and rule.matches_path(path, self._guard.workspace)
        )
        denying = path_deniers(self.book.rules, "read", self._guard.workspace)
        is_denied = any(denies(path) for _, denies in denying)
        return best is not None and best.decision == "allow" and not is_denied

    def search_filter(self, searched: Path) -> Callable[[Path], bool]:
        """A function that tells which files a search skips: rules deny them, or reading asks.

        If the search itself asks, files that would ask are included: the user has approved them.

        Args:
            searched: A file or folder, absolute, links followed; so are the paths passed in.
        """
        denying = path_deniers(self.book.rules, "read", self._guard.workspace)
        guard = self._guard

        def why_asks(path: Path) -> str:
            return guard.why_reading_asks(path) or guard.why_unseen(path)

        is_agreed = bool(why_asks(searched) or guard.why_searching_asks(searched))

        def is_held(path: Path) -> bool:
            is_denied = any(denies(path) for _, denies in denying)
            return is_denied or (not is_agreed and bool(why_asks(path)))

        return is_held

    def why_not_restored(self, path: Path) -> str:
        """Why undo does not restore this file from the session file, which anyone may have written.

        True of files outside the workspace that always ask, and of files in ``.git``.

        Args:
            path: Absolute, links followed.
        """
        guard = self._guard
        if guard.may_write_freely(path) and not is_inside_git(path):
            return ""
        return guard.why_changing_asks(path)

    @property
    def is_interactive(self) -> bool:
        """Whether a user can be asked."""
        return self._is_interactive

    def record(self, tool_name: str, intent: Intent, verdict: Verdict) -> None:
        """Add a decision to the log, where the user can look it up."""
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
        """A copy with the same rules and log for a helper that may only read and asks nobody."""
        reading = copy(self)
        reading.mode, reading._is_interactive = "plan", False
        reading._only_reading = _READING_HELPER
        return reading

    def for_writing_helper(self) -> "PermissionEngine":
        """A copy with the same rules and log for a helper that may write and asks nobody."""
        writing = copy(self)
        writing._is_interactive = False
        return writing

    def continue_from(self, previous: Permissions) -> None:
        """Take over the log and session rules of the engine that judged this session so far."""
        self.log = previous.log
        self.book.take_session_rules(previous.book)

    def work_in(
        self,
        added: Sequence[Path],
        is_unseen: Callable[[Path], bool] = lambda _path: False,
        find_linked: Callable[[], Mapping[Path, Path]] = dict[Path, Path],
    ) -> None:
        """Judge the `added` folders like the workspace.

        Args:
            added: Other working folders.
            is_unseen: Tells what sandboxed commands cannot read, of an absolute path with links
                followed. Tools ask before they read it.
            find_linked: See `ProtectedPaths`.
        """
        resolved = tuple(real_path(folder) for folder in added)
        self._guard = replace(
            self._guard, added_folders=resolved, is_unseen=is_unseen, find_linked=find_linked
        )

    def _judge_read(self, tool_name: str, intent: Intent) -> Verdict | None:
        """What rules and protected files say about reading; None if they say nothing."""
        ruled = self._by_rules(tool_name, intent)
        if ruled is not None and ruled.decision == "deny":
            return ruled
        for path in intent.paths:
            searches = tool_name in _RECURSIVE_TOOLS and is_folder(path)
            guard = self._guard
            if why := guard.why_searching_asks(path) if searches else guard.why_reading_asks(path):
                return Verdict("ask", why, by="protection")
        return ruled

    def _judge_unseen(self, tool_name: str, intent: Intent) -> Verdict:
        """The verdict on reading a file that sandboxed commands cannot read."""
        unseen = [path for path in intent.paths if self._guard.why_unseen(path)]
        if not unseen:
            return _ALLOWED
        why, rule = self._guard.why_unseen(unseen[0]), self._read_rule(unseen[0])
        if self.mode == "full":
            refusal = _FULL_NEEDS_RULE.format(why=why) + _rule_hint((rule,))
            return Verdict("deny", refusal, unapproved=why)
        return Verdict("ask", why, rule if len(unseen) == 1 else "", wanted_rules=(rule,))

    def _read_rule(self, path: Path) -> str:
        """A rule for the folder of `path`; for the file alone if directly in the home folder."""
        if any(letter in str(path) for letter in "*?"):
            return ""
        folder = path if is_folder(path) else path.parent
        return f"read({path})" if folder == self._guard.home else f"read({folder}/**)"

    def _judge_write(self, tool_name: str, intent: Intent) -> Verdict:
        ruled = self._by_rules(tool_name, intent)
        if ruled is not None and ruled.decision == "deny":
            return ruled
        if self.mode == "plan":
            return Verdict("deny", self._only_reading)
        for path in intent.paths:
            if why := self._guard.why_changing_asks(path):
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
        """Why changing `path` would control what other programs do; empty if it would not."""
        allowed = [rule for rule in self._command_rules() if rule.decision == "allow"]
        root = self._guard.root_of(path)
        shown = path.relative_to(root) if root is not None else path
        programs = (rule.program for rule in allowed)
        who = who_obeys(shown, programs, at=path, home=self._guard.home)
        who = who or who_obeys_in(path, root, self._guard.find_linked())
        return f"{path} controls {who}" if who else ""

    def _judge_outside(self, tool_name: str) -> Verdict:
        """A call of another program's tool: its effect is unknown, so only rules allow it."""
        rule = outside_rule(tool_name, self.book.rules)
        if rule is not None and rule.decision == "deny":
            return Verdict("deny", f"the deny rule {rule} forbids it", by="rule")
        if self.mode == "plan":
            return Verdict("deny", self._only_reading)
        if rule is not None and rule.decision == "allow":
            return _ALLOWED_BY_RULE
        whose, kept = "an MCP tool", tool_name
        if not is_remote(tool_name):
            whose, kept = "a plugin's tool", f"{PLUGIN_TOOL}({tool_name})"
        if rule is None:
            return Verdict("ask", f"runs {whose}, whose effect is unknown", kept)
        return Verdict("ask", f"the ask rule {rule} applies", kept, by="rule")

    def judge_host(self, host: str, port: int = 443) -> Verdict:
        """Whether a sandboxed command may connect to `host` (lowercase)."""
        rule = host_rule(host, self.book.rules, port)
        kept = rule_for_host(host, port, may_be_bundle=True)
        verdict = self._by_host_rule(rule, kept) or self._by_gate(
            f"a command in the sandbox wants to connect to {host}", kept
        )
        return self._if_there_is_somebody(verdict)

    def _judge_network(self, intent: Intent) -> Verdict:
        """The verdict on a `fetch` request, which can send data out as well as bring it in."""
        rule = host_rule(intent.host, self.book.rules)
        kept = rule_for_host(intent.host)
        if (verdict := self._by_host_rule(rule, kept)) is not None:
            return verdict
        if self.mode == "full" and not intent.leaves_sandbox:
            return _ALLOWED
        return self._by_gate(f"sends a request to {intent.host}", kept)

    def _by_gate(self, why: str, kept: str) -> Verdict:
        """The mode's verdict on a host that no rule names."""
        if self.mode == "full":
            refusal = _FULL_NEEDS_RULE.format(why=why) + _rule_hint((kept,))
            return Verdict("deny", refusal, unapproved=why, wanted_rules=(kept,))
        return Verdict("ask", why, kept, wanted_rules=(kept,))

    def _by_host_rule(self, rule: Rule | None, kept: str) -> Verdict | None:
        """What `rule` and plan mode say about a host; None if the other modes decide."""
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
        """What the rules say about a call by its paths: deny first, then the most specific rule."""
        holding: list[Rule] = []
        for rule in self.book.rules:
            if not rule.is_for(tool_name, intent.access):
                continue
            matched = self._match_paths(rule, intent.paths)
            if rule.decision == "deny":
                if any(matched) or rule.pattern == "*":
                    return Verdict("deny", f"the deny rule {rule} forbids it", by="rule")
                continue
            if any(matched) if rule.decision == "ask" else all(matched):
                holding.append(rule)
        best = strongest_rule(holding)
        if best is None:
            return None
        if best.decision == "allow":
            return _ALLOWED_BY_RULE
        why = f"the ask rule {best} applies"
        return Verdict("ask", why, self._write_rule(intent.paths), by="rule")

    def _match_paths(self, rule: Rule, paths: Sequence[Path]) -> list[bool]:
        workspace = self._guard.workspace
        if rule.decision == "allow":
            return [rule.matches_path(path, workspace) for path in paths]
        denies = rule.strict_path_matcher(workspace)
        return [denies(path) for path in paths]

    def _write_rule(self, paths: Sequence[Path]) -> str:
        """A rule for exactly one file; empty if its name has glob characters."""
        if len(paths) != 1 or any(c in str(paths[0]) for c in "*?"):
            return ""
        path, workspace = paths[0], self._guard.workspace
        inside = path.is_relative_to(workspace)
        return f"write({path.relative_to(workspace).as_posix() if inside else path})"

    def _judge_command(self, intent: Intent, *, can_undo: bool) -> Verdict:
        parts = split_command(intent.command)
        if parts.problem and (intent.place != "inside" or self._restricts_commands):
            return self._unsplit(intent, parts)
        judge = CommandJudge(self._guard, self.book.rules, intent.command, parts, intent.place)
        facts = judge.facts
        if denied := facts.denied or self._find_denied_write(facts.written):
            verdict = Verdict("deny", denied, by="rule")
        else:
            verdict = self._weigh(intent, judge, can_undo=can_undo)
        texts = tuple(dict.fromkeys(part.source for part in parts.commands))
        return replace(
            verdict,
            parts=texts,
            touched=facts.touched,
            only_reads=facts.is_reading or verdict.runs_read_only,
            is_compound=parts.is_compound and _leaves_some(parts, verdict.why),
            meets=judge.limits,
        )

    @property
    def _restricts_commands(self) -> bool:
        """Whether a deny or ask rule may match a command, so that its parts must be known."""
        names = ("bash", "read", "write")
        return any(rule.decision != "allow" and rule.tool in names for rule in self.book.rules)

    def _unsplit(self, intent: Intent, parts: ShellParts) -> Verdict:
        """The verdict on a command that could not be split into parts."""
        if self.mode == "plan":
            return Verdict("deny", self._only_reading)
        part = shorten_part(parts.problem_part)
        is_compound = bool(part) and part != shorten_part(intent.command)
        where = f", in: {part}" if is_compound else ""
        why = f"the command cannot be checked: {parts.problem}{where}"
        if intent.place == "outside" and self.mode == "full":
            return Verdict("deny", _GATE_IN_FULL.format(why=why), by="protection")
        return Verdict("ask", why, by="protection", is_compound=is_compound)

    def _weigh(self, intent: Intent, judge: CommandJudge, *, can_undo: bool) -> Verdict:
        """The verdict on a command that no rule denies."""
        match intent.place:
            case "open":
                return self._weigh_open(intent, judge)
            case "inside":
                verdict = self._ask_inside(intent, judge)
                return verdict or self._weigh_inside(intent, judge, can_undo=can_undo)
            case "outside":
                return self._weigh_outside(intent, judge)
            case _:
                assert_never(intent.place)

    def _ask_inside(self, intent: Intent, judge: CommandJudge) -> Verdict | None:
        """An ask from a rule, or for a file that this sandbox does not protect; else None."""
        if why := judge.may_be_denied():
            return Verdict("ask", why, by="rule")
        facts = judge.facts
        if facts.asked and not self._allows_whole(intent.command):
            return Verdict("ask", facts.asked, by="rule")
        for path in facts.touched if intent.is_coarse else ():
            guard = self._guard
            asks = guard.why_reading_asks if facts.is_reading else guard.why_writing_asks
            if guard.is_inside(path) and (why := asks(path)):
                return Verdict("ask", why, by="protection")
        return None

    def _weigh_inside(self, intent: Intent, judge: CommandJudge, *, can_undo: bool) -> Verdict:
        """The verdict in a sandbox: ask if work would be lost, else the mode decides."""
        if self.mode == "plan":
            return replace(_ALLOWED, runs_read_only=True)
        losses = judge.losses
        is_kept = all(loss.is_kept for loss in losses)
        lost = _list_reasons([loss.what for loss in losses])
        if losses and not (is_kept and can_undo):
            why = (_LOSS_OF_FILES if is_kept else _LOSS).format(what=lost)
            if self.mode == "full":
                full = _LOSS_IN_FULL.format(why=why)
                return Verdict("deny", full, by="protection", may_undo=is_kept, unapproved=why)
            return Verdict("ask", why, by="protection", may_undo=is_kept)
        told = f"{lost}; /undo can restore the files." if losses else ""
        if why := self._why_asks_inside(intent.command, judge.facts):
            whys = "; ".join(filter(None, (why, told.removesuffix("."))))
            return Verdict("ask", whys, INSIDE_RULE, wanted_rules=(INSIDE_RULE,))
        return replace(_ALLOWED, told=told)

    def _why_asks_inside(self, command: str, facts: CommandFacts) -> str:
        if self.mode != "ask" or any(rule.is_inside for rule in self.book.rules):
            return ""
        written = [path for path in facts.written if not self._guard.is_scratch(path)]
        if self._allows_whole(command):
            return ""
        return self._why_command_asks(command, replace(facts, written=tuple(written)))

    def _weigh_outside(self, intent: Intent, judge: CommandJudge) -> Verdict:
        """The verdict on a command that would leave the sandbox: needs approval or a rule."""
        if self.mode == "plan":
            return Verdict("deny", self._only_reading)
        engine = copy(self)
        engine.mode = "accept-edits" if self.mode == "full" else self.mode
        facts, wanted = judge.facts, judge.limits
        wants = ", ".join(wanted[:_MAX_WHYS])
        network_hint = _NETWORK_HINT if any(map(_is_network, wanted)) else ""
        dangers = _list_reasons(facts.dangers) or judge.may_be_denied() or facts.asked
        why = "; ".join(filter(None, ("runs outside the sandbox", wants, dangers)))
        is_ruled = len(facts.changing) > len(facts.unlisted)
        is_allowed = is_ruled and not engine._why_command_asks(intent.command, facts)
        if not dangers and (is_allowed or self._allows_whole(intent.command)):
            return _ALLOWED_BY_RULE
        rules: tuple[str, ...] = ()
        if not dangers:
            by_parts = engine._rules_for_parts(intent, judge)
            rules = by_parts or (rule_for_command(intent.command),)
        if self.mode == "full":
            refusal = _GATE_IN_FULL.format(why=why) + _rule_hint(rules) + network_hint
            return Verdict("deny", refusal, unapproved=why)
        why += f'; the model says: "{intent.purpose}"' if intent.purpose else ""
        whole = rules[0] if len(rules) == 1 else rule_for_command(intent.command) if rules else ""
        by_parts = rules if len(rules) > 1 else ()
        return Verdict(
            "ask",
            why,
            whole,
            by_parts,
            by="protection",
            wanted_rules=rules,
            network_hint=network_hint,
        )

    def _allows_whole(self, command: str) -> bool:
        """Whether an allow rule names exactly `command`."""
        allowing = (rule for rule in self._command_rules() if rule.decision == "allow")
        return any(rule.matches_whole(command) for rule in allowing)

    def _weigh_open(self, intent: Intent, judge: CommandJudge) -> Verdict:
        """The verdict without a sandbox: the mode, what always asks, then ask and allow rules."""
        facts = judge.facts
        if self.mode == "plan":
            return _ALLOWED if facts.is_reading else Verdict("deny", self._why_not_reading(facts))
        if facts.dangers:
            return Verdict("ask", _list_reasons(facts.dangers), by="protection")
        if why := judge.may_be_denied():
            return Verdict("ask", why, by="rule")
        command = intent.command
        if self._allows_whole(command):
            return _ALLOWED_BY_RULE
        if facts.asked:
            return Verdict("ask", facts.asked, rule_for_command(command), by="rule")
        if why := self._why_command_asks(command, facts):
            offered = self._rules_for_parts(intent, judge) if self._is_interactive else ()
            return Verdict("ask", why, rule_for_command(command), offered)
        is_ruled = self.mode != "full" and len(facts.changing) > len(facts.unlisted)
        return _ALLOWED_BY_RULE if is_ruled else _ALLOWED

    def _why_not_reading(self, facts: CommandFacts) -> str:
        """What the model is told in plan mode about a command that may change something."""
        if facts.changing:
            return (
                f"{self._only_reading} Not known to be read-only: {_list_reasons(facts.changing)}."
            )
        if facts.written:
            return f"{self._only_reading} It writes {facts.written[0]}."
        return f"{self._only_reading} It needs approval: {_list_reasons(facts.dangers)}."

    def _why_command_asks(self, command: str, facts: CommandFacts) -> str:
        if self.mode == "full":
            return _list_reasons(facts.unknown)
        if facts.unlisted:
            if facts.unlisted == (command.strip(),):
                return "not known to be read-only"
            return f"not known to be read-only: {_list_reasons(facts.unlisted)}"
        whys = (self._why_output_asks(path) for path in facts.written)
        return next(filter(None, whys), "")

    def _why_output_asks(self, path: Path) -> str:
        """Why the shell may not write `path` unasked; empty if it may."""
        obeyed = self._why_obeyed(path)
        is_within = self.mode == "accept-edits" and self._guard.may_write_freely(path)
        if (is_within and not obeyed) or self._allows_write(path):
            return ""
        return obeyed or f"writes {path}"

    def _rules_for_parts(self, intent: Intent, judge: CommandJudge) -> tuple[str, ...]:
        """Rules for the parts of the command that ask; with them it no longer asks.

        Each is the widest sensible rule that suffices. Empty if such rules do not suffice or equal
        `session_rule`.
        """
        command, folder, leaves = intent.command, self._guard.workspace, intent.place == "outside"
        facts, parts = judge.facts, judge.parts
        is_fed = any(not one.writes for one in parts.redirections)
        offers = [
            tuple(rules_for_part(part, folder, is_fed=is_fed, leaves=leaves))
            for part in facts.asking
        ]
        writes = [self._write_rule([p]) for p in facts.written if self._why_output_asks(p)]
        if self.mode == "full" or not all((*offers, *writes)):
            return ()
        wide, _ = self._with_rules(intent, parts, [offer[0] for offer in offers])
        chosen = [
            offer[-1] if part in wide.asking else offer[0]
            for part, offer in zip(facts.asking, offers, strict=True)
        ]
        offered = tuple(dict.fromkeys((*chosen, *writes)))
        trial, engine = self._with_rules(intent, parts, offered)
        if offered == (rule_for_command(command),) or engine._why_command_asks(command, trial):
            return ()
        return offered

    def _with_rules(
        self, intent: Intent, parts: ShellParts, rules: Sequence[str]
    ) -> tuple[CommandFacts, "PermissionEngine"]:
        """The facts about a command with `rules` allowed too, and an engine with those rules."""
        engine = copy(self)
        engine.book = self.book.allowing(rules)
        rules_now = engine.book.rules
        judge = CommandJudge(self._guard, rules_now, intent.command, parts, intent.place)
        return judge.facts, engine

    def _command_rules(self) -> list[Rule]:
        return [rule for rule in self.book.rules if rule.is_for("bash", "execute")]

    def _write_rules(self) -> list[Rule]:
        return [rule for rule in self.book.rules if rule.is_for("write", "write")]

    def _find_denied_write(self, paths: Sequence[Path]) -> str:
        for rule in self._write_rules():
            if rule.decision == "deny":
                denies = rule.strict_path_matcher(self._guard.workspace)
                for path in paths:
                    if denies(path):
                        return f"the deny rule {rule} forbids writing {path}"
        return ""

    def _allows_write(self, path: Path) -> bool:
        workspace = self._guard.workspace
        best = strongest_rule(r for r in self._write_rules() if r.matches_path(path, workspace))
        return best is not None and best.decision == "allow"


def _is_network(wanted: str) -> bool:
    return wanted.partition(":")[0] == "network"


def _rule_hint(rules: Sequence[str]) -> str:
    """How the user can allow a call, for the model to pass on; empty if no rule may allow it."""
    shown = " ".join(f"--allow {shlex.quote(rule)}" for rule in rules if rule)
    return _RULE_HINT.format(rules=f"{shown}, or a rule in /permissions.") if shown else ""


def _leaves_some(parts: ShellParts, why: str) -> bool:
    """Whether `why` names only some of the commands, so the others could run without them."""
    names = (shorten_part(part.source) for part in parts.commands if part.kind == "command")
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", why) is None for name in names)


def _list_reasons(found: Sequence[str]) -> str:
    """The first few reasons, and how many more there are."""
    whys = tuple(dict.fromkeys(found))
    beside = len(whys) - _MAX_WHYS
    return "; ".join(whys[:_MAX_WHYS]) + (f"; and {beside} more" if beside > 0 else "")


def _home_folder() -> Path | None:
    try:
        return real_path(Path.home())
    except RuntimeError:  # no HOME, and the system does not know this user
        return None
