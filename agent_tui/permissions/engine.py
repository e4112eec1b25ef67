"""Decides whether a tool call may run, needs approval, or is denied."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import assert_never

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.errors import IN_CHAT, IN_PROGRAM, Ways
from agent_tui.installation import find_code_folders
from agent_tui.permissions.command_judge import path_deniers
from agent_tui.permissions.command_verdicts import judge_command
from agent_tui.permissions.decision_log import DecisionLog, DecisionRecord
from agent_tui.permissions.file_verdicts import (
    judge_by_rules,
    judge_read,
    judge_unseen,
    judge_write,
)
from agent_tui.permissions.host_verdicts import (
    judge_host,
    judge_network,
    judge_outside,
    judge_query,
)
from agent_tui.permissions.policy import ALLOWED, Policy, rule_hint
from agent_tui.permissions.project_files import git_risk
from agent_tui.permissions.protected_paths import (
    NO_VIEW,
    ProtectedPaths,
    SandboxView,
    is_inside_git,
)
from agent_tui.permissions.rule_book import RuleBook
from agent_tui.permissions.rules import strongest_rule
from agent_tui.permissions.verdict import Permissions, Unkept, Verdict
from agent_tui.safe_paths import real_path, show_name
from agent_tui.tools.base import TEMPORARY_PLACES, Intent
from agent_tui.tools.files.project_links import ProjectLinks

_PLAN_MODE = (
    "Plan mode is on: you can only read. Submit what you would do with `plan`; the user leaves "
    "plan mode when they agree."
)
_READING_HELPER = (
    "You can only read here, with commands known to be read-only. Use the other tools to look."
)
_NOBODY_TO_ASK = (
    "This needs the user's approval ({why}), and this run cannot ask. Continue without it, or "
    "say {allowing}."
)


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
        scratch_folders: tuple[Path, ...] = TEMPORARY_PLACES,
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
            code_folders=tuple(real_path(folder) for folder in find_code_folders()),
            scratch_folders=tuple(real_path(folder) for folder in scratch_folders),
            home=_home_folder(),
            git_risk=git_risk,
        )
        self._links = ProjectLinks(self._guard.roots, self._guard.home)

    def judge(self, tool_name: str, intent: Intent, *, unkept: Unkept = None) -> Verdict:
        """Decide whether a call that would do `intent` may run; if judging fails, the call asks.

        Args:
            tool_name: The tool that is called.
            intent: What it would do.
            unkept: See `Unkept`.
        """
        try:
            verdict = self._judge_access(tool_name, intent, unkept)
        except Exception as fault:  # noqa: BLE001 - a fault here must neither allow nor end a turn
            verdict = self._ask_unjudged(intent, fault)
        if intent.access != "execute":
            paths = tuple(str(path) for path in intent.paths)
            only_reads = intent.access in ("read", "network", "query")
            verdict = replace(verdict, parts=paths, touched=intent.paths, only_reads=only_reads)
        texts = (verdict.why, verdict.unapproved, verdict.told)
        why, unapproved, told = map(show_name, texts)  # they contain names of files
        verdict = replace(verdict, why=why, unapproved=unapproved, told=told)
        return self._if_there_is_somebody(verdict)

    def allows_in(self, mode: PermissionMode, tool_name: str, intent: Intent) -> bool:
        """Whether the call would be allowed unasked in `mode`."""
        engine = copy(self)
        engine.mode = mode
        return engine.judge(tool_name, intent).decision == "allow"

    def _judge_access(self, tool_name: str, intent: Intent, unkept: Unkept) -> Verdict:
        policy = self._policy
        match intent.access:
            case "none":
                return judge_by_rules(policy, tool_name, intent) or ALLOWED
            case "read":
                return judge_read(policy, tool_name, intent) or judge_unseen(policy, intent)
            case "write":
                return judge_write(policy, tool_name, intent, unkept)
            case "execute":
                return judge_command(policy, intent, unkept)
            case "network":
                return judge_network(policy, intent)
            case "query":
                return judge_query(policy, tool_name, intent)
            case "outside":
                return judge_outside(policy, tool_name)
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
            hint = rule_hint(verdict.wanted_rules) + verdict.network_hint if has_rules else ""
            why = _NOBODY_TO_ASK.format(why=verdict.why, allowing=self.ways.allowing) + hint
            return replace(verdict, decision="deny", why=why, unapproved=verdict.why)
        return verdict

    def why_attaching_asks(self, path: Path) -> str:
        """Why a mentioned file is not attached without asking: keys, or a deny rule.

        Args:
            path: Absolute, links followed.
        """
        intent = Intent(title=str(path), access="read", paths=(path,))
        verdict = judge_read(self._policy, "read", intent)
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
        guard = self._guard_now()

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
        guard = self._guard_now()
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
        sandbox: SandboxView = NO_VIEW,
        find_linked: Callable[[], Mapping[Path, Path]] = dict[Path, Path],
    ) -> None:
        """Judge the `added` folders like the workspace.

        Args:
            added: Other working folders.
            sandbox: What sandboxed commands can read and write. Tools ask before they go beyond.
            find_linked: See `ProtectedPaths`.
        """
        resolved = tuple(real_path(folder) for folder in added)
        self._guard = replace(
            self._guard, added_folders=resolved, sandbox=sandbox, find_linked=find_linked
        )
        self._links = ProjectLinks(self._guard.roots, self._guard.home)

    def judge_host(self, host: str, port: int = 443) -> Verdict:
        """Whether a sandboxed command may connect to `host` (lowercase)."""
        return self._if_there_is_somebody(judge_host(self._policy, host, port))

    @property
    def _policy(self) -> Policy:
        guard = self._guard_now()
        return Policy(self.mode, self.book, guard, self._only_reading, self._is_interactive)

    def _guard_now(self) -> ProtectedPaths:
        """The protected paths for one call: each path and link is looked at once."""
        look = cache(self._links.look)

        @cache
        def find_names(path: Path) -> Sequence[Path]:
            return look().find_others(path)

        return replace(self._guard, find_names=find_names, answers={})


def _home_folder() -> Path | None:
    try:
        return real_path(Path.home())
    except RuntimeError:  # no HOME, and the system does not know this user
        return None
