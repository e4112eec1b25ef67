"""The verdict on a call that reads or writes files: rules, protected files, then the mode."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from agent_tui.permissions.policy import (
    ALLOWED,
    ALLOWED_BY_RULE,
    FULL_NEEDS_RULE,
    Policy,
    rule_hint,
    weigh_loss,
)
from agent_tui.permissions.rules import Rule, strongest_rule
from agent_tui.permissions.verdict import Unkept, Verdict
from agent_tui.safe_paths import is_folder
from agent_tui.tools.base import Intent
from agent_tui.tools.files.obeyed import who_obeys, who_obeys_in

_RECURSIVE_TOOLS = ("grep",)


def judge_read(policy: Policy, tool_name: str, intent: Intent) -> Verdict | None:
    """What rules and protected files say about reading; None if they say nothing."""
    ruled = judge_by_rules(policy, tool_name, intent)
    if ruled is not None and ruled.decision == "deny":
        return ruled
    for path in intent.paths:
        searches = tool_name in _RECURSIVE_TOOLS and is_folder(path)
        guard = policy.guard
        if why := guard.why_searching_asks(path) if searches else guard.why_reading_asks(path):
            return Verdict("ask", why, by="protection")
    return ruled


def judge_unseen(policy: Policy, intent: Intent) -> Verdict:
    """The verdict on reading a file that sandboxed commands cannot read."""
    unseen = [path for path in intent.paths if policy.guard.why_unseen(path)]
    if not unseen:
        return ALLOWED
    why, rule = policy.guard.why_unseen(unseen[0]), _read_rule(policy, unseen[0])
    if policy.mode == "full":
        refusal = FULL_NEEDS_RULE.format(why=why) + rule_hint((rule,))
        return Verdict("deny", refusal, unapproved=why)
    return Verdict("ask", why, rule if len(unseen) == 1 else "", wanted_rules=(rule,))


def _read_rule(policy: Policy, path: Path) -> str:
    """A rule for the folder of `path`; for the file alone if directly in the home folder."""
    if any(letter in str(path) for letter in "*?"):
        return ""
    folder = path if is_folder(path) else path.parent
    return f"read({path})" if folder == policy.guard.home else f"read({folder}/**)"


def judge_write(policy: Policy, tool_name: str, intent: Intent, unkept: Unkept) -> Verdict:
    """The verdict on changing files; see `PermissionEngine.judge`."""
    ruled = judge_by_rules(policy, tool_name, intent)
    if ruled is not None and ruled.decision == "deny":
        return ruled
    if policy.mode == "plan":
        return Verdict("deny", policy.only_reading)
    for path in intent.paths:
        if why := policy.guard.why_changing_asks(path, intent.paths):
            return Verdict("ask", why, by="protection")
    if ruled is not None:
        return ruled
    guard = policy.guard
    if policy.mode == "full" and not guard.is_confined:
        return ALLOWED
    outside = [path for path in intent.paths if not guard.may_write_freely(path)]
    followed = {path: why for path in intent.paths if (why := why_followed(policy, path))}
    if policy.mode in ("accept-edits", "full") and not (outside or followed):
        return weigh_loss(policy, ALLOWED, intent.paths, unkept)
    where = f"writes outside the folder: {outside[0]}" if outside else ""
    why = where or "; ".join(followed.values()) or "changes a file"
    if policy.mode == "full":
        asking = dict.fromkeys((*outside, *followed))
        rules = tuple(rule_for_writing(policy, [path]) for path in asking)
        refusal = FULL_NEEDS_RULE.format(why=why) + rule_hint(rules)
        return Verdict("deny", refusal, unapproved=why)
    return Verdict("ask", why, rule_for_writing(policy, intent.paths))


def why_followed(policy: Policy, path: Path) -> str:
    """Why changing `path` would control what other programs do; empty if it would not.

    In mode full, only what commands in the sandbox may not change counts.
    """
    return policy.guard.why_by_names(path, partial(_why_followed, policy))


def _why_followed(policy: Policy, path: Path) -> str:
    allowed = [rule for rule in policy.command_rules() if rule.decision == "allow"]
    root = policy.guard.root_of(path)
    shown = path.relative_to(root) if root is not None else path
    programs = (program for rule in allowed for program in rule.programs)
    who = who_obeys(
        shown, programs, at=path, home=policy.guard.home, is_unasked=policy.mode == "full"
    )
    who = who or who_obeys_in(path, root, policy.guard.find_linked())
    return f"{path} controls {who}" if who else ""


def judge_by_rules(policy: Policy, tool_name: str, intent: Intent) -> Verdict | None:
    """What the rules say about a call by its paths: deny first, then the most specific rule."""
    holding: list[Rule] = []
    for rule in policy.rules:
        if not rule.is_for(tool_name, intent.access):
            continue
        matched = _match_paths(policy, rule, intent.paths)
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
        return ALLOWED_BY_RULE
    why = f"the ask rule {best} applies"
    return Verdict("ask", why, rule_for_writing(policy, intent.paths), by="rule")


def _match_paths(policy: Policy, rule: Rule, paths: Sequence[Path]) -> list[bool]:
    workspace = policy.guard.workspace
    if rule.decision == "allow":
        return [rule.matches_path(path, workspace) for path in paths]
    denies = rule.strict_path_matcher(workspace)
    return [denies(path) for path in paths]


def rule_for_writing(policy: Policy, paths: Sequence[Path]) -> str:
    """A rule for exactly one file; empty if its name has glob characters."""
    if len(paths) != 1 or any(c in str(paths[0]) for c in "*?"):
        return ""
    path, workspace = paths[0], policy.guard.workspace
    inside = path.is_relative_to(workspace)
    return f"write({path.relative_to(workspace).as_posix() if inside else path})"


def find_denied_write(policy: Policy, paths: Sequence[Path]) -> str:
    """The rule that denies writing one of `paths`; empty if none does."""
    for rule in policy.write_rules():
        if rule.decision == "deny":
            denies = rule.strict_path_matcher(policy.guard.workspace)
            for path in paths:
                if denies(path):
                    return f"the deny rule {rule} forbids writing {path}"
    return ""


def allows_writing(policy: Policy, path: Path) -> bool:
    """Whether a rule allows writing `path`."""
    workspace = policy.guard.workspace
    best = strongest_rule(r for r in policy.write_rules() if r.matches_path(path, workspace))
    return best is not None and best.decision == "allow"
