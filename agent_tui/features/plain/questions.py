"""Questions in words. Answers need Enter; an unknown answer asks again."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeVar

from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.commands.core.front import Listing, Question, TextQuestion
from agent_tui.errors import AgentTuiError
from agent_tui.events import ApprovalRequest
from agent_tui.features.plain.keyboard import Keyboard
from agent_tui.features.plain.voice import LineWriter, diff_words
from agent_tui.permissions.rules import INSIDE_RULE, describe_grants
from agent_tui.safe_text import safe_text
from agent_tui.text_editor import edit_text, editor_command, run_editor

_QUESTIONS = {
    "command": "run this command",
    "diff": "make this change",
    "text": "allow this",
    "plan": "follow this plan",
}
_Choices: TypeAlias = tuple[tuple[str, str], ...]
"""Answers in order, each with its letter and meaning."""

_BY_PARTS: Mapping[str, Literal["session", "project"]] = MappingProxyType(
    {"s": "session", "w": "project"}
)
"""Answers with rules for the parts of a command, and how long these last."""

_INDENT = "    "
"""Indents the subject of a question, so that none of its lines looks like ours."""

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks on `lines` and reads from `keyboard`."""

    lines: LineWriter
    keyboard: Keyboard

    def approval(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Ask whether a tool may run; the end of input means no.

        Raises:
            KeyboardInterrupt: Ctrl+C was pressed.
        """
        choices = _approval_choices(request)
        self._hold_typed_ahead(choices)
        self.lines.lines(approval_lines(request))
        try:
            while True:
                choices = _approval_choices(request)
                typed = _letter(self._choice(f"{_choices_text(choices)}: "), choices)
                is_plan = request.body_kind == "plan"
                if is_plan and typed.lower() == "g":
                    request = self._edit_plan(request)
                    continue
                answer = approval_answer(typed, may_make_rule=bool(request.session_rule))
                if is_plan and typed.lower() == "a":
                    answer = ApprovalAnswer("session")
                if request.is_edit and typed.lower() == "a":
                    answer = ApprovalAnswer("edits")
                if request.part_rules and (lasts := _BY_PARTS.get(typed.lower())):
                    answer = ApprovalAnswer(lasts, rules=request.part_rules)
                if typed.lower() == "e":
                    asked = "What is missing? " if is_plan else "What should be done instead? "
                    words = self._words(asked)
                    answer = ApprovalAnswer("no", words) if words else None
                if answer is not None:
                    return replace(answer, plan=request.body) if is_plan else answer
                self.lines.line(f"{typed!r} is not a choice. Type a letter or number, then Enter.")
        except EOFError:
            self.lines.line("Input ended, so the answer is no.")
            return ApprovalAnswer("no")

    def _edit_plan(self, request: ApprovalRequest) -> ApprovalRequest:
        """Let the user edit a plan; returns the same request if nothing changed."""
        try:
            plan = edit_text(request.body, _edit)
        except AgentTuiError as error:
            self.lines.line(f"Error: {error}")
            return request
        if not (plan and plan.strip()) or plan == request.body:
            self.lines.line("The plan is unchanged.")
            return request
        changed = replace(request, body=plan)
        self.lines.lines(approval_lines(changed))
        return changed

    def question(self, question: Question[ValueT]) -> ValueT | None:
        """Ask for an answer; None after Enter alone, Ctrl+C or the end of input."""
        choices = tuple((choice.key, choice.label) for choice in question.choices)
        if question.is_grave:
            self._hold_typed_ahead(choices)
        self.lines.line(f"Question: {_one_line(question.title)}")
        self.lines.lines(f"{_INDENT}{fact.rstrip()}" for fact in question.facts if fact.strip())
        values = {choice.key: choice.value for choice in question.choices}
        prompt = f"{_choices_text(choices)}; Enter alone: {question.unanswered}: "
        try:
            while typed := self._choice(prompt).lower():
                if (letter := _letter(typed, choices)) in values:
                    return values[letter]
                self.lines.line(f"{typed!r} is not a choice. Type a letter or number, then Enter.")
        except (EOFError, KeyboardInterrupt):
            self.lines.line()
        return None

    def text(self, question: TextQuestion) -> str | None:
        """Ask for a text, which may have several lines; None after Ctrl+C or at the end of input.

        Enter alone keeps the present text.
        """
        self.lines.line(f"Question: {_one_line(question.title)}")
        if question.about:
            self.lines.line(f"{_INDENT}{_one_line(question.about)}")
        empty = f"keeps {question.present}" if question.present else question.empty_means
        try:
            return self._words(f"Enter alone {empty}: ") or question.present
        except (EOFError, KeyboardInterrupt):
            self.lines.line()
        return None

    def pick(self, listing: Listing[ValueT]) -> ValueT | str | None:
        """List the items with numbers and ask for one; None for none.

        If the listing allows it, returns text typed instead of a number.
        """
        if listing.is_grave:
            self._hold_typed_ahead(
                tuple((str(n), choice.label) for n, choice in enumerate(listing.choices, start=1))
            )
        colon = "" if listing.title.endswith((".", "?", ":")) else ":"
        self.lines.line(f"{listing.title}{colon}" if listing.choices else listing.empty)
        for number, choice in enumerate(listing.choices, start=1):
            row = ", ".join(filter(None, (_one_line(choice.label), _one_line(choice.details))))
            self.lines.line(f"{number}. {row}")
        if not (listing.choices or listing.typed):
            return None
        wanted = " or ".join(filter(None, ("Number" if listing.choices else "", listing.typed)))
        try:
            while typed := self._words(f"{wanted}; Enter alone for none: "):
                if typed.isdecimal() and 1 <= int(typed) <= len(listing.choices):
                    return listing.choices[int(typed) - 1].value
                if listing.typed and not typed.isdecimal():
                    return typed
                self.lines.line(f"There is no number {typed}.")
        except (EOFError, KeyboardInterrupt):
            self.lines.line()
        return None

    def _words(self, prompt: str) -> str:
        """A text with all lines of a paste."""
        return self.keyboard.message(prompt).text

    def _choice(self, prompt: str) -> str:
        """A typed choice. A paste is none, whatever its lines are, except for a comment."""
        while True:
            typed = self.keyboard.message(prompt, confirms=False)
            if not typed.is_pasted or typed.text[:2].lower() == "e ":
                return typed.text.strip()
            self._hold(f"{typed.text}\n", "pasted lines are no choice", typed.text)

    def _hold_typed_ahead(self, choices: _Choices) -> None:
        """Hold what was typed before the question, as it cannot answer it. Bare answers go."""
        typed = self.keyboard.take_typed()
        answers = {"", "yes", "no", *(key for key, _ in choices)}
        lines = {_letter(line.strip(), choices).lower() for line in typed.split("\n")}
        if lines != {""}:
            self._hold("" if lines <= answers else typed, "it was typed before the question", typed)

    def _hold(self, typed: str, why: str, shown: str) -> None:
        is_held = bool(typed) and self.keyboard.hold(typed)
        done = "Sent later" if is_held else "Ignored"
        self.lines.line(f"{done} because {why}: {shown.strip()!r}")


def approval_lines(request: ApprovalRequest) -> list[str]:
    """What would happen, in full, and why the user is asked."""
    match request.body_kind:
        case "command":
            commands = safe_text(request.body).split("\n")
            body = [f"{_INDENT}{line}" for line in commands]
            what = f" It has {len(commands)} lines." if len(commands) > 1 else ""
        case "diff":
            body = [f"{_INDENT}{line}" for line in diff_words(request.body)]
            what = f" {_one_line(request.title)}"
        case "text" | "plan":
            body = [f"{_INDENT}{line}" for line in safe_text(request.body).split("\n")]
            what = f" {_one_line(request.title)}"
    lines = [f"Question: {_QUESTIONS[request.body_kind]}?{what}", *body]
    if request.reason:
        lines.append(f"Why it asks: {_one_line(request.reason)}")
    if request.session_rule:
        rule = request.session_rule
        whole = _one_line(describe_grants([rule]) if rule == INSIDE_RULE else rule)
        lines.append(f"{'p' if request.is_edit else 'a or p'} also allows from now on: {whole}")
    if request.part_rules:
        rules = _one_line(describe_grants(request.part_rules))
        lines.append(f"s or w also allows from now on: {rules}")
    return lines


def _approval_choices(request: ApprovalRequest) -> _Choices:
    """The possible answers to `request`, by its kind and rules."""
    if request.body_kind == "plan":
        return (
            ("y", "yes, asking before each change"),
            ("a", f"yes, accepting {request.accepted}"),
            ("g", "edit it first"),
            ("n", "no"),
            ("e", "no, and say what is missing"),
        )
    rules = (("a", "session"), ("p", "project")) if request.session_rule else ()
    if request.is_edit:
        rules = (("a", f"all {request.accepted} in this session"), *rules[1:])
    by_parts = tuple((key, f"{lasts} by rule") for key, lasts in _BY_PARTS.items())
    by_parts = by_parts if request.part_rules else ()
    return (("y", "once"), *rules, *by_parts, ("n", "no, and stop"), ("e", "no, with a comment"))


def _choices_text(choices: _Choices) -> str:
    return "; ".join(f"{letter}: {label}" for letter, label in choices)


def _letter(typed: str, choices: _Choices) -> str:
    """The letter of the answer whose number was typed, else the typed text."""
    by_number = {str(number): letter for number, (letter, _) in enumerate(choices, start=1)}
    return by_number.get(typed, typed)


def approval_answer(typed: str, *, may_make_rule: bool) -> ApprovalAnswer | None:
    """The meaning of a typed answer: a letter, with words after ``e``; None if it is unknown."""
    letter, _, words = typed.partition(" ")
    match letter.lower(), words.strip():
        case (("y" | "yes"), ""):
            return ApprovalAnswer("once")
        case (("n" | "no"), ""):
            return ApprovalAnswer("no")
        case "a", "" if may_make_rule:
            return ApprovalAnswer("session")
        case "p", "" if may_make_rule:
            return ApprovalAnswer("project")
        case "e", said if said:
            return ApprovalAnswer("no", said)
        case _:
            return None


def _edit(file: Path) -> bool:
    return run_editor(editor_command(os.environ), file) == 0


def _one_line(text: str) -> str:
    return " ".join(text.split())
