"""What is decided about a tool call, and what decides for a conversation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from agent_tui.config import PermissionMode
from agent_tui.permissions.decision_log import DecidedBy, DecisionLog
from agent_tui.permissions.rule_book import RuleBook
from agent_tui.permissions.rules import Decision
from agent_tui.tools.base import Intent

Unkept: TypeAlias = Sequence[Path] | None
"""What is `at_risk`, and neither a commit nor undo would have; None if that is unknown."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision and its reason, for the user if it asks and for the model if it denies.

    `session_rule` is the rule that "for this session" and "always" would add, as text; empty if
    none may be made. `part_rules` allow the parts of a command that ask: with all of them it does
    not ask again. `by` says what decided. `parts` are the commands that were examined, `touched`
    the files they name, links followed; an approval is bound to both. `only_reads`: the call is
    known to change nothing, so others may run beside it. `fault` is the exception if judging
    failed, for the log. `unapproved`: why it would have asked, if it is denied because nobody can
    be asked. `is_compound`: it concerns only some parts of a command, which `why` names.
    `runs_read_only`: the command runs in the sandbox that can change no file. `at_risk` are
    places that it would replace or remove; judge again once it is known what there cannot be
    restored. `told` is a
    notice for the user although the call is allowed. `meets` lists the sandbox limits a command
    would hit, and `wanted_rules` would allow a call that nobody was asked about.
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
    runs_read_only: bool = False
    at_risk: tuple[Path, ...] = ()
    told: str = ""
    meets: tuple[str, ...] = ()
    wanted_rules: tuple[str, ...] = ()
    network_hint: str = ""


class Permissions(Protocol):
    """Decides about the tool calls of one session.

    Attributes:
        mode: The permission mode; it may be changed at any time.
        log: What was decided in this session.
        book: The rules in force.
    """

    mode: PermissionMode
    log: DecisionLog
    book: RuleBook

    @property
    def is_interactive(self) -> bool:
        """Whether a user can be asked."""
        ...

    def judge(self, tool_name: str, intent: Intent, *, unkept: Unkept = None) -> Verdict:
        """Decide whether a call that would do `intent` may run; if judging fails, the call asks.

        Args:
            tool_name: The tool that is called.
            intent: What it would do.
            unkept: See `Unkept`.
        """
        ...

    def allows_in(self, mode: PermissionMode, tool_name: str, intent: Intent) -> bool:
        """Whether the call would be allowed unasked in `mode`."""
        ...

    def judge_host(self, host: str, port: int = 443) -> Verdict:
        """Whether a sandboxed command may connect to `host` (lowercase)."""
        ...

    def ask_for_hook(self, verdict: Verdict, why: str) -> Verdict:
        """`verdict`, changed to ask because a hook wants approval; a denial stays."""
        ...

    def record(self, tool_name: str, intent: Intent, verdict: Verdict) -> None:
        """Add a decision to the log, where the user can look it up."""
        ...

    def why_attaching_asks(self, path: Path) -> str:
        """Why a mentioned file is not attached without asking: keys, or a deny rule.

        Args:
            path: Absolute, links followed.
        """
        ...

    def may_show(self, path: Path) -> bool:
        """Whether a rule allows reading exactly `path`, so that commands may see it too."""
        ...

    def search_filter(self, searched: Path) -> Callable[[Path], bool]:
        """A function that tells which files a search skips: rules deny them, or reading asks.

        Args:
            searched: A file or folder, absolute, links followed; so are the paths passed in.
        """
        ...

    def why_not_restored(self, path: Path) -> str:
        """Why undo does not restore this file from the session file; empty if it does.

        Args:
            path: Absolute, links followed.
        """
        ...

    def for_reading(self) -> "Permissions":
        """A copy with the same rules and log for a helper that may only read and asks nobody."""
        ...

    def for_writing_helper(self) -> "Permissions":
        """A copy with the same rules and log for a helper that may write and asks nobody."""
        ...

    def continue_from(self, previous: "Permissions") -> None:
        """Take over the log and session rules of what judged this session so far."""
        ...
