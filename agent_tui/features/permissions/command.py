"""Approval: the mode, the rules, and the latest decisions."""

import asyncio
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.attachments import plan_approved_by
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front, Page, PageSection, Row
from agent_tui.commands.core.permission_modes import MODES, PERMISSION_MODES
from agent_tui.commands.core.short_words import short_path
from agent_tui.commands.model import mark_present
from agent_tui.config import PermissionMode
from agent_tui.key_actions import keys_in_force
from agent_tui.messages import UserMessage
from agent_tui.permissions.decision_log import DecidedBy, DecisionRecord
from agent_tui.permissions.rules import Decision
from agent_tui.permissions.verdict import Permissions
from agent_tui.safe_text import safe_text
from agent_tui.sessions.entries import MessageEntry

_SOURCES = {"session": "this session", "project": "this project", "settings": "config.toml"}
_MADE_BY_ANSWERS = ("session", "project")
_ALWAYS = re.compile(r"\s+always$")
_SHOWN_DECISIONS = 20
_SHOWN_CONNECTIONS = 20
_DONE: dict[Decision, str] = {"allow": "allowed", "ask": "asked", "deny": "denied"}
_WHO: dict[DecidedBy, str] = {
    "rule": "rules",
    "mode": "the mode",
    "protection": "protection",
    "person": "you",
    "hook": "hooks",
}


@command(
    "[mode|allow RULE|ask RULE|deny RULE|remove RULE]",
    aliases=("mode",),
    completions=lambda front: (
        *mark_present(PERMISSION_MODES, front.runtime.conversation.permissions.mode),
        *(Completion(f"{decision} ", f"add a rule: {decision} bash(make *)") for decision in _DONE),
        *_removals(front),
    ),
)
async def permissions(front: Front, argument: str) -> None:
    """Show or change what needs your approval."""
    engine = front.runtime.conversation.permissions
    verb, _, rule_text = argument.partition(" ")
    match verb.lower(), rule_text.strip():
        case "", _:
            connections = front.runtime.network.connections(_SHOWN_CONNECTIONS)
            await front.show(permissions_page(engine, connections))
        case "remove", text:
            _remove_rule(front, text)
        case "allow" | "ask" | "deny" as decision, text if text:
            _add_rule(front, decision, text)
        case "ask" | "accept-edits" | "plan" | "full" as mode, "":
            _use_mode(front, mode)
        case "allow" | "deny" as decision, _:
            front.say(f"Name a rule, such as /permissions {decision} bash(make *).", "warning")
        case _:
            modes = ", ".join(PERMISSION_MODES)
            others = "or allow, ask, deny or remove with a rule"
            front.say(f"Unknown mode {argument}. Use one of {modes}; {others}.", "warning")


@command("[show]", completions=lambda _front: ("show",))
async def plan(front: Front, argument: str) -> None:
    """Switch to plan mode (read-only), or show the approved plan."""
    if not argument:
        _use_mode(front, "plan")
    elif argument.lower() != "show":
        front.say(f"/plan takes show (the approved plan), not {argument}.", "warning")
    elif approved := await _newest_plan(front.runtime):
        lines = tuple(("", safe_text(line)) for line in approved.split("\n"))
        await front.show(Page("The approved plan", (PageSection("", lines),)))
    else:
        front.say("No plan approved in this conversation. /plan has the model make one.")


async def _newest_plan(runtime: AgentRuntime) -> str:
    """The plan approved last on this branch, or in an earlier session; empty if none was."""
    log, history = runtime.conversation.log, runtime.history()
    branch, own = log.path_entries(), {entry.id for entry in log.entries}

    def find() -> str:
        before = (entry for entry in history.entries() if entry.id not in own)
        messages = (
            entry.message
            for entry in chain(reversed(branch), before)
            if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
        )
        return next(filter(None, (plan_approved_by(message.text) for message in messages)), "")

    return await asyncio.to_thread(find)


def _use_mode(front: Front, mode: PermissionMode) -> None:
    front.runtime.sessions.use_mode(mode)
    front.show_events(())
    front.say(f"Permission mode: {mode} ({dict(MODES)[mode]})")


def _add_rule(front: Front, decision: Decision, text: str) -> None:
    """Add a rule for this session, or for the project if "always" follows it.

    Raises:
        ConfigError: It is not a rule, or the project's rules cannot be written.
    """
    engine = front.runtime.conversation.permissions
    rule = _ALWAYS.sub("", text)
    if rule == text:
        engine.book.add_session_rule(rule, decision)
        front.say(f"Added for this session: {decision} {engine.book.rules[-1]}")
        return
    engine.book.add_project_rule(rule, decision)
    file = short_path(engine.book.project_file, Path.home())
    front.say(f"Added for this project: {decision} {engine.book.rules[-1]} (kept in {file})")


def _removals(front: Front) -> tuple[str, ...]:
    """The arguments that remove each rule made by answering an approval."""
    rules = front.runtime.conversation.permissions.book.rules
    return tuple(f"remove {rule}" for rule in rules if rule.source in _MADE_BY_ANSWERS)


def _remove_rule(front: Front, text: str) -> None:
    """Remove a rule that an answer made.

    Raises:
        AgentTuiError: It cannot be removed from the project's rules.
    """
    engine = front.runtime.conversation.permissions
    removable = _removals(front)
    if f"remove {text}" not in removable:
        known = ", ".join(removal.removeprefix("remove ") for removal in removable)
        problem = f"No such rule: {text}." if text else "Name a rule."
        front.say(f"{problem} You can remove: {known or 'none'}.")
        return
    for rule in engine.book.rules:
        if str(rule) == text and rule.source in _MADE_BY_ANSWERS:
            engine.book.remove_rule(rule)
    front.say(f"Removed: {text}")


def permissions_page(engine: Permissions, connections: Sequence[Row] = ()) -> Page:
    """The modes, the rules with their sources, the latest decisions, and `connections`."""
    modes = tuple((("● " if mode == engine.mode else "  ") + mode, text) for mode, text in MODES)
    rows = [
        (rule.decision, f"{rule}   {_SOURCES.get(rule.source, rule.source)}")
        for rule in engine.book.rules
    ]
    ways = filter(None, ("/permissions MODE", keys_in_force().first_key("permission_mode")))
    file = short_path(engine.book.project_file, Path.home())
    adding = (
        ("this session", "/permissions allow RULE (or ask, deny, remove)"),
        ("this project", f"/permissions allow RULE always (kept in {file})"),
        ("all projects", "agent-tui config edit"),
    )
    sections = [
        PageSection(f"Mode ({' or '.join(ways)})", modes),
        PageSection("Rules (deny wins)", tuple(rows) or (("none", ""),)),
        PageSection("Change rules", adding),
    ]
    if decided := engine.log.latest[:_SHOWN_DECISIONS]:
        counted = (
            f"{count:,} {_DONE[decision]} by {_WHO[by]}"
            for (decision, by), count in engine.log.counts.most_common()
        )
        sections.append(PageSection("Decisions in this session", (("", ", ".join(counted)),)))
        sections.append(PageSection("Last decisions", tuple(_decision_row(one) for one in decided)))
    if connections:
        title = "Network access of commands in the sandbox"
        sections.append(PageSection(title, tuple(connections)))
    return Page("Permissions", tuple(sections))


def _decision_row(decided: DecisionRecord) -> Row:
    """The time and kind of a decision; its subject, who decided, and why."""
    at = decided.decided_at.astimezone().strftime("%H:%M:%S")
    what = " ".join(decided.what.split())
    said = f"{_DONE[decided.decision]} by {_WHO[decided.by]}"
    asked = "reason for asking: " if decided.by == "person" else ""
    why = f" ({asked}{decided.why})" if decided.why else ""
    return f"{at} {decided.decision}", f"{decided.tool}: {what}   {said}{why}"
