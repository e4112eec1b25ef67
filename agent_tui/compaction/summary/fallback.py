"""What the ledger says in the form of the template, where no model sums it up."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.compaction.shorten import one_line, shorten_middle
from agent_tui.compaction.summary.templates import NOTHING, Section, Slot, Template
from agent_tui.compaction.summary.validate import fit_to_tokens
from agent_tui.compaction.transcript.text import escape_tags
from agent_tui.sessions.entries import Ledger
from agent_tui.tokens import TokenCounter

_MESSAGE_CHARS = 400
_REPLY_CHARS = 1_200
_SHORTEST_REQUEST = 10
"""Shorter messages ("ok", "wow") ask for nothing."""

_GO_ON = "Continue with the newest request"
_HEADING_MARKS = re.compile(r"^\s*#+\s*", re.MULTILINE)
_RENEWED: frozenset[Slot] = frozenset({"in_progress", "next_steps"})
"""What says how things stand now: earlier lines give way to new ones."""


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the log says of a conversation, no model needed.

    Args:
        ledger: Facts of the whole conversation.
        previous_prose: The summary so far without its fact blocks; its lines are kept.
        last_reply: Text of the newest reply that leaves the context.
    """

    ledger: Ledger
    previous_prose: str
    last_reply: str


def fallback_summary(
    log_facts: LogFacts, *, template: Template, counter: TokenCounter, max_tokens: int
) -> str:
    """An extractive summary: what was asked, done, decided and is open, as the log says it.

    Args:
        log_facts: What there is to say.
        template: The form.
        counter: Measures the result.
        max_tokens: The result is cut to this by leaving out the oldest lines.
    """
    facts = _facts(log_facts.ledger, log_facts.last_reply)
    earlier = template.parse(log_facts.previous_prose)
    if template.missing_core(earlier):
        earlier = {"": _HEADING_MARKS.sub("", log_facts.previous_prose)}
    facts["context"] = [*_lines(earlier.get("", "")), *facts["context"]]
    bodies = {
        section.heading: _body(section, facts, _lines(earlier.get(section.heading, "")))
        for section in template.sections
    }
    document = escape_tags(template.render(bodies))
    return fit_to_tokens(document, template=template, counter=counter, max_tokens=max_tokens)


def _facts(ledger: Ledger, last_reply: str) -> dict[Slot, list[str]]:
    requests = [
        one_line(text, _MESSAGE_CHARS)
        for text in reversed(ledger.user_messages)
        if len(text) >= _SHORTEST_REQUEST
    ]
    files = len(ledger.modified_files)
    reply = one_line(shorten_middle(last_reply, _REPLY_CHARS), 2 * _REPLY_CHARS)
    under_way = [todo for todo in ledger.open_todos if todo.endswith("(in progress)")]
    steps = list(ledger.open_todos)
    if requests and not steps:
        steps = [f"{_GO_ON}: {requests[-1]}"]
    return {
        "goal": [f"- asked: {request}" for request in requests],
        "guidance": ["- word for word in pinned-constraints below"] if ledger.pinned else [],
        "done": [f"- [x] changed {files} files, listed in modified-files below"] if files else [],
        "in_progress": [f"- [ ] {todo}" for todo in under_way],
        "errors": ["- word for word in open-errors below"] if ledger.errors else [],
        "decisions": [f"- **{decision}**" for decision in reversed(ledger.decisions)],
        "files": [],
        "history": [f"- ran: `{command}`" for command in reversed(ledger.commands)],
        "next_steps": steps,
        "context": [f"- last reply before this summary: {reply}"] if reply else [],
    }


def _body(section: Section, facts: dict[Slot, list[str]], earlier: list[str]) -> str:
    new = [line for slot in section.slots for line in facts[slot]]
    if new and section.slots and set(section.slots) <= _RENEWED:
        earlier = []
    if "next_steps" in section.slots:
        steps = [re.sub(r"^\s*\d+[.)]\s*", "", line) for line in [*new, *earlier]]
        return "\n".join(f"{n}. {step}" for n, step in enumerate(dict.fromkeys(steps), start=1))
    lines = dict.fromkeys(line for line in earlier if not _is_stale(line, new))
    return "\n".join(dict.fromkeys([*lines, *new]))


def _is_stale(line: str, new: Sequence[str]) -> bool:
    """Whether an earlier line of ours only counted or quoted what `new` says again."""
    return any(line.startswith(start) for start in _SAID_ANEW) and bool(new)


_SAID_ANEW = ("- [x] changed ", "- last reply before this summary: ")


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip() and line.strip() != NOTHING]
