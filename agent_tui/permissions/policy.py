"""What decides about a call: the mode, the rules in force, and the files that always ask."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agent_tui.config import PermissionMode
from agent_tui.permissions.protected_paths import ProtectedPaths
from agent_tui.permissions.rule_book import RuleBook
from agent_tui.permissions.rules import Rule
from agent_tui.permissions.verdict import Unkept, Verdict

ALLOWED = Verdict("allow", "")
ALLOWED_BY_RULE = Verdict("allow", "", by="rule")
FULL_NEEDS_RULE = "{why}. Mode full does not ask about that: it needs an allow rule."
_LOSS_IN_FULL = (
    "{why}; mode full does not ask about that. Commit the work or copy it elsewhere first, or "
    "leave this to the user."
)
LOSS_OF_FILES = "{what}, which undo may not restore"
_MOST_NAMED: Final = 3
_RULE_HINT = " The user can allow it with: {rules}"


@dataclass(frozen=True, slots=True)
class Policy:
    """What is in force while one call is judged.

    `only_reading` is what the model is told if the mode lets it only read. `is_interactive` says
    whether a user can be asked.
    """

    mode: PermissionMode
    book: RuleBook
    guard: ProtectedPaths
    only_reading: str
    is_interactive: bool

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules in force."""
        return self.book.rules

    def command_rules(self) -> list[Rule]:
        """The rules for commands."""
        return [rule for rule in self.rules if rule.is_for("bash", "execute")]

    def write_rules(self) -> list[Rule]:
        """The rules for writing files."""
        return [rule for rule in self.rules if rule.is_for("write", "write")]


def weigh_loss(policy: Policy, allowed: Verdict, places: Sequence[Path], unkept: Unkept) -> Verdict:
    """What becomes of a call that is `allowed` and would replace or remove `places`."""
    if unkept:
        return decide_loss(policy, LOSS_OF_FILES.format(what=describe_unkept(unkept)))
    return replace(allowed, at_risk=() if unkept is not None else tuple(places))


def decide_loss(policy: Policy, why: str, at_risk: tuple[Path, ...] = ()) -> Verdict:
    """The verdict on a call that would lose work for good, as `why` says."""
    if policy.mode != "full":
        return Verdict("ask", why, by="protection", at_risk=at_risk)
    refusal = _LOSS_IN_FULL.format(why=why)
    return Verdict("deny", refusal, by="protection", at_risk=at_risk, unapproved=why)


def describe_unkept(paths: Sequence[Path]) -> str:
    """Says that there is work in `paths` that no commit has."""
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return f"loses uncommitted work in {', '.join(map(str, paths[:_MOST_NAMED]))}{more}"


def rule_hint(rules: Sequence[str]) -> str:
    """How the user can allow a call, for the model to pass on; empty if no rule may allow it."""
    shown = " ".join(f"--allow {shlex.quote(rule)}" for rule in rules if rule)
    return _RULE_HINT.format(rules=f"{shown}, or a rule in /permissions.") if shown else ""
