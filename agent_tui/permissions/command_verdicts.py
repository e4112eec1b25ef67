"""The verdict on a shell command: what was found in its text, its place, and the mode."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from agent_tui.permissions.command_judge import CommandFacts, CommandJudge, shorten_part
from agent_tui.permissions.file_verdicts import (
    allows_writing,
    find_denied_write,
    rule_for_writing,
    why_followed,
)
from agent_tui.permissions.policy import (
    ALLOWED,
    ALLOWED_BY_RULE,
    LOSS_OF_FILES,
    Policy,
    decide_loss,
    describe_unkept,
    rule_hint,
    weigh_loss,
)
from agent_tui.permissions.programs.offered_rules import rules_for_part
from agent_tui.permissions.rules import INSIDE_RULE, rule_for_command
from agent_tui.permissions.shell.parts import ShellParts, split_command
from agent_tui.permissions.verdict import Unkept, Verdict
from agent_tui.tools.base import Intent

_LOSS = "{what}, which cannot be undone"
_GATE_IN_FULL = (
    "{why}. Mode full does not ask about that: it needs an allow rule. Continue inside the "
    "sandbox, or tell the user what you need it for."
)
_CHANGED_IN_FULL = (
    "{why}. Mode full does not ask about that. Continue inside the sandbox; the user can read the "
    "file and allow the command again in /permissions."
)
_NETWORK_HINT = (
    " If the network is all it needs, run it inside the sandbox; the user can allow hosts with "
    "--allow-net."
)
_MAX_WHYS = 3
_EVERYTHING = Path("/")


def judge_command(policy: Policy, intent: Intent, unkept: Unkept) -> Verdict:
    """The verdict on a command; see `PermissionEngine.judge`."""
    parts = split_command(intent.command)
    if parts.problem and (intent.place != "inside" or _restricts_commands(policy)):
        return _unsplit(policy, intent, parts)
    judge = CommandJudge(policy.guard, policy.rules, intent.command, parts, intent.place)
    facts = judge.facts
    if denied := facts.denied or find_denied_write(policy, facts.written):
        verdict = Verdict("deny", denied, by="rule")
    else:
        verdict = _weigh(policy, intent, judge, unkept)
    texts = tuple(dict.fromkeys(part.source for part in parts.commands))
    return replace(
        verdict,
        parts=texts,
        touched=facts.touched,
        only_reads=facts.is_reading or verdict.runs_read_only,
        is_compound=parts.is_compound and _leaves_some(parts, verdict.why),
        meets=judge.limits,
    )


def _restricts_commands(policy: Policy) -> bool:
    """Whether a deny or ask rule may match a command, so that its parts must be known."""
    names = ("bash", "read", "write")
    return any(rule.decision != "allow" and rule.tool in names for rule in policy.rules)


def _unsplit(policy: Policy, intent: Intent, parts: ShellParts) -> Verdict:
    """The verdict on a command that could not be split into parts."""
    if policy.mode == "plan":
        return Verdict("deny", policy.only_reading)
    part = shorten_part(parts.problem_part)
    is_compound = bool(part) and part != shorten_part(intent.command)
    where = f", in: {part}" if is_compound else ""
    why = f"the command cannot be checked: {parts.problem}{where}"
    if intent.place == "outside" and policy.mode == "full":
        return Verdict("deny", _GATE_IN_FULL.format(why=why), by="protection")
    return Verdict("ask", why, by="protection", is_compound=is_compound)


def _weigh(policy: Policy, intent: Intent, judge: CommandJudge, unkept: Unkept) -> Verdict:
    """The verdict on a command that no rule denies."""
    match intent.place:
        case "open":
            verdict = _weigh_open(policy, intent, judge)
            is_by_mode = verdict.decision == "allow" and verdict.by == "mode"
            if not is_by_mode or policy.mode in ("plan", "full"):
                return verdict
            return weigh_loss(policy, verdict, judge.replaced, unkept)
        case "inside":
            verdict = _ask_inside(policy, intent, judge)
            return verdict or _weigh_inside(policy, intent, judge, unkept)
        case "outside":
            return _weigh_outside(policy, intent, judge)
        case _:
            assert_never(intent.place)


def _ask_inside(policy: Policy, intent: Intent, judge: CommandJudge) -> Verdict | None:
    """An ask from a rule, or for a file that this sandbox does not protect; else None."""
    if why := judge.may_be_denied():
        return Verdict("ask", why, by="rule")
    facts = judge.facts
    if facts.asked and not _allows_whole(policy, intent.command):
        return Verdict("ask", facts.asked, by="rule")
    for path in facts.touched if intent.is_coarse else ():
        guard = policy.guard
        asks = guard.why_reading_asks if facts.is_reading else guard.why_writing_asks
        if guard.is_inside(path) and (why := asks(path)):
            return Verdict("ask", why, by="protection")
    return None


def _weigh_inside(policy: Policy, intent: Intent, judge: CommandJudge, unkept: Unkept) -> Verdict:
    """The verdict in a sandbox: ask if work would be lost, else the mode decides."""
    if policy.mode == "plan":
        return replace(ALLOWED, runs_read_only=True)
    losses = judge.losses
    at_risk = () if unkept is not None else (_EVERYTHING,) if losses else judge.replaced
    is_kept = all(loss.is_kept for loss in losses)
    lost = _list_reasons([loss.what for loss in losses] or [describe_unkept(unkept or ())])
    if unkept or (losses and (unkept is None or not is_kept)):
        why = (LOSS_OF_FILES if is_kept else _LOSS).format(what=lost)
        return decide_loss(policy, why, at_risk if is_kept else ())
    told = f"{lost}; /undo can restore the files." if losses else ""
    if why := _why_asks_inside(policy, intent.command, judge.facts):
        whys = "; ".join(filter(None, (why, told.removesuffix("."))))
        return Verdict("ask", whys, INSIDE_RULE, wanted_rules=(INSIDE_RULE,), at_risk=at_risk)
    return replace(ALLOWED, told=told, at_risk=at_risk)


def _why_asks_inside(policy: Policy, command: str, facts: CommandFacts) -> str:
    if policy.mode != "ask" or any(rule.is_inside for rule in policy.rules):
        return ""
    written = [path for path in facts.written if not policy.guard.is_scratch(path)]
    if _allows_whole(policy, command):
        return ""
    return _why_command_asks(policy, command, replace(facts, written=tuple(written)))


def _weigh_outside(policy: Policy, intent: Intent, judge: CommandJudge) -> Verdict:
    """The verdict on a command that would leave the sandbox: needs approval or a rule."""
    if policy.mode == "plan":
        return Verdict("deny", policy.only_reading)
    asking = replace(policy, mode="accept-edits" if policy.mode == "full" else policy.mode)
    facts, wanted = judge.facts, judge.limits
    wants = ", ".join(wanted[:_MAX_WHYS])
    network_hint = _NETWORK_HINT if any(map(_is_network, wanted)) else ""
    dangers = _list_reasons(facts.dangers) or judge.may_be_denied() or facts.asked
    changed = judge.why_changed(policy.book.began_ns)
    why = "; ".join(filter(None, ("runs outside the sandbox", wants, dangers, changed)))
    is_ruled = len(facts.changing) > len(facts.unlisted)
    is_allowed = is_ruled and not _why_command_asks(asking, intent.command, facts)
    if not (dangers or changed) and (is_allowed or _allows_whole(policy, intent.command)):
        return ALLOWED_BY_RULE
    rules: tuple[str, ...] = ()
    if not dangers:
        by_parts = _rules_for_parts(asking, intent, judge)
        rules = by_parts or (rule_for_command(intent.command),)
    if policy.mode == "full":
        if changed:
            return Verdict("deny", _CHANGED_IN_FULL.format(why=why), unapproved=why)
        refusal = _GATE_IN_FULL.format(why=why) + rule_hint(rules) + network_hint
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


def _allows_whole(policy: Policy, command: str) -> bool:
    """Whether an allow rule names exactly `command`."""
    allowing = (rule for rule in policy.command_rules() if rule.decision == "allow")
    return any(rule.matches_whole(command) for rule in allowing)


def _weigh_open(policy: Policy, intent: Intent, judge: CommandJudge) -> Verdict:
    """The verdict without a sandbox: the mode, what always asks, then ask and allow rules."""
    facts = judge.facts
    if policy.mode == "plan":
        return ALLOWED if facts.is_reading else Verdict("deny", _why_not_reading(policy, facts))
    if facts.dangers:
        return Verdict("ask", _list_reasons(facts.dangers), by="protection")
    if why := judge.may_be_denied():
        return Verdict("ask", why, by="rule")
    command = intent.command
    if _allows_whole(policy, command):
        return ALLOWED_BY_RULE
    if facts.asked:
        return Verdict("ask", facts.asked, rule_for_command(command), by="rule")
    if why := _why_command_asks(policy, command, facts):
        offered = _rules_for_parts(policy, intent, judge) if policy.is_interactive else ()
        return Verdict("ask", why, rule_for_command(command), offered)
    is_ruled = policy.mode != "full" and len(facts.changing) > len(facts.unlisted)
    return ALLOWED_BY_RULE if is_ruled else ALLOWED


def _why_not_reading(policy: Policy, facts: CommandFacts) -> str:
    """What the model is told in plan mode about a command that may change something."""
    if facts.changing:
        return f"{policy.only_reading} Not known to be read-only: {_list_reasons(facts.changing)}."
    if facts.written:
        return f"{policy.only_reading} It writes {facts.written[0]}."
    return f"{policy.only_reading} It needs approval: {_list_reasons(facts.dangers)}."


def _why_command_asks(policy: Policy, command: str, facts: CommandFacts) -> str:
    if policy.mode == "full":
        return _list_reasons(facts.unknown)
    if facts.unlisted:
        if facts.unlisted == (shorten_part(command),):
            return "not known to be read-only"
        return f"not known to be read-only: {_list_reasons(facts.unlisted)}"
    whys = (_why_output_asks(policy, path) for path in facts.written)
    return next(filter(None, whys), "")


def _why_output_asks(policy: Policy, path: Path) -> str:
    """Why the shell may not write `path` unasked; empty if it may."""
    obeyed = why_followed(policy, path)
    is_within = policy.mode == "accept-edits" and policy.guard.may_write_freely(path)
    if (is_within and not obeyed) or allows_writing(policy, path):
        return ""
    return obeyed or f"writes {path}"


def _rules_for_parts(policy: Policy, intent: Intent, judge: CommandJudge) -> tuple[str, ...]:
    """Rules for the parts of the command that ask; with them it no longer asks.

    Each is the widest sensible rule that suffices. Empty if such rules do not suffice or equal
    `session_rule`.
    """
    command, folder, leaves = intent.command, policy.guard.workspace, intent.place == "outside"
    facts, parts = judge.facts, judge.parts
    is_fed = any(not one.writes for one in parts.redirections)
    offers = [
        tuple(rules_for_part(part, folder, is_fed=is_fed, leaves=leaves)) for part in facts.asking
    ]
    writes = [rule_for_writing(policy, [p]) for p in facts.written if _why_output_asks(policy, p)]
    if policy.mode == "full" or not all((*offers, *writes)):
        return ()
    wide, _ = _with_rules(policy, intent, parts, [offer[0] for offer in offers])
    chosen = [
        offer[-1] if part in wide.asking else offer[0]
        for part, offer in zip(facts.asking, offers, strict=True)
    ]
    offered = tuple(dict.fromkeys((*chosen, *writes)))
    trial, trial_policy = _with_rules(policy, intent, parts, offered)
    if offered == (rule_for_command(command),) or _why_command_asks(trial_policy, command, trial):
        return ()
    return offered


def _with_rules(
    policy: Policy, intent: Intent, parts: ShellParts, rules: Sequence[str]
) -> tuple[CommandFacts, Policy]:
    """The facts about a command with `rules` allowed too, and the policy with them."""
    trial_policy = replace(policy, book=policy.book.allowing(rules))
    judge = CommandJudge(policy.guard, trial_policy.rules, intent.command, parts, intent.place)
    return judge.facts, trial_policy


def _is_network(wanted: str) -> bool:
    return wanted.partition(":")[0] == "network"


def _leaves_some(parts: ShellParts, why: str) -> bool:
    """Whether `why` names only some of the commands, so the others could run without them."""
    names = (shorten_part(part.source) for part in parts.commands if part.kind == "command")
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", why) is None for name in names)


def _list_reasons(found: Sequence[str]) -> str:
    """The first few reasons, and how many more there are."""
    whys = tuple(dict.fromkeys(found))
    beside = len(whys) - _MAX_WHYS
    return "; ".join(whys[:_MAX_WHYS]) + (f"; and {beside} more" if beside > 0 else "")
