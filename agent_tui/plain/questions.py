"""Questions in words. An answer needs the Enter key, and one that is not understood asks again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from agent_tui.agent.gate import ApprovalAnswer
from agent_tui.events import ApprovalRequest
from agent_tui.permissions.trust import TrustAnswer, TrustQuestion, TrustState
from agent_tui.plain.diff_words import diff_words
from agent_tui.plain.keyboard import Keyboard
from agent_tui.plain.lines import LineWriter
from agent_tui.safe_text import safe_text

_QUESTIONS = {"command": "run this command", "diff": "make this change", "text": "allow this"}
_TRUST_STATES: Mapping[TrustState, str] = {
    "trusted": "It is trusted now.",
    "not trusted": "It is not trusted now.",
    "not asked": "Trust it only if you know who made it.",
}
_INDENT = "    "
"""Before what is asked about, so that no line of it can pass for one of ours."""

ChoiceT = TypeVar("ChoiceT")


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks on `lines` and reads from `keyboard`."""

    lines: LineWriter
    keyboard: Keyboard

    def approval(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Ask whether a tool may run; no more input is a no.

        Raises:
            KeyboardInterrupt: Ctrl+C was pressed.
        """
        self._drop_typed_ahead()
        self.lines.lines(approval_lines(request))
        try:
            while True:
                typed = self.keyboard.line(approval_prompt(request)).strip()
                answer = approval_answer(typed, may_make_rule=bool(request.session_rule))
                if typed.lower() == "e":
                    words = self.keyboard.line("What should be done instead? ").strip()
                    answer = ApprovalAnswer("no", words) if words else None
                if answer is not None:
                    return answer
                self.lines.line(f"{typed!r} is no answer. Type one letter, then Enter.")
        except EOFError:
            self.lines.line("No answer can come any more: no.")
            return ApprovalAnswer("no")

    def trust(self, question: TrustQuestion) -> TrustAnswer | None:
        """Ask whether a folder is trusted; None where no answer came."""
        self.lines.lines(trust_lines(question))
        choices: dict[str, TrustAnswer] = {"y": "trust", "o": "this run", "n": "no"}
        prompt = "y from now on, o only this time, n go on without obeying any of it: "
        return self.letter(prompt, choices)

    def letter(self, prompt: str, choices: Mapping[str, ChoiceT]) -> ChoiceT | None:
        """Ask for one of the letters; None after Ctrl+C, or where no more can be read."""
        try:
            while (typed := self.keyboard.line(prompt).strip().lower()) not in choices:
                self.lines.line(f"{typed!r} is no answer. Type one letter, then Enter.")
        except (EOFError, KeyboardInterrupt):
            self.lines.line()
            return None
        return choices[typed]

    def numbered(self, what: str, rows: Sequence[str]) -> int | str | None:
        """List `rows` with numbers and ask for one.

        Args:
            what: What to type apart from a number: ``a model's name``.
            rows: What there is to choose from.

        Returns:
            The place in `rows`, or what was typed instead of a number; None for nothing.
        """
        for number, row in enumerate(rows, start=1):
            self.lines.line(f"{number}. {row}")
        prompt = f"Number or {what}; Enter alone for none: "
        while True:
            try:
                typed = self.keyboard.line(prompt).strip()
            except (EOFError, KeyboardInterrupt):
                self.lines.line()
                return None
            if not typed.isdecimal():
                return typed or None
            if 1 <= int(typed) <= len(rows):
                return int(typed) - 1
            self.lines.line(f"There is no number {typed}.")

    def _drop_typed_ahead(self) -> None:
        """What was typed before the question was shown cannot answer it."""
        if typed := self.keyboard.drop_typed():
            self.lines.line(f"Typed before the question came, so not taken: {typed!r}")


def approval_lines(request: ApprovalRequest) -> list[str]:
    """What would happen, whole, and why it is asked."""
    match request.body_kind:
        case "command":
            commands = safe_text(request.body).split("\n")
            body = [f"{_INDENT}{line}" for line in commands]
            what = f" It has {len(commands)} lines." if len(commands) > 1 else ""
        case "diff":
            body = [f"{_INDENT}{line}" for line in diff_words(request.body)]
            what = f" {_one_line(request.title)}"
        case "text":
            body = [f"{_INDENT}{line}" for line in safe_text(request.body).split("\n")]
            what = f" {_one_line(request.title)}"
    lines = [f"Question: {_QUESTIONS[request.body_kind]}?{what}", *body]
    lines.append(f"Why it asks: {_one_line(request.reason)}")
    if request.session_rule:
        lines.append(f"With a or p, from then on allowed: {_one_line(request.session_rule)}")
    return lines


def approval_prompt(request: ApprovalRequest) -> str:
    """The answers there are."""
    rules = ", a session, p project" if request.session_rule else ""
    return f"y once{rules}, n no, e no with words: "


def approval_answer(typed: str, *, may_make_rule: bool) -> ApprovalAnswer | None:
    """What an answer means: its letter, or after ``e`` also the words; None where it is none."""
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


def trust_lines(question: TrustQuestion) -> list[str]:
    """What there is to know before a folder is trusted."""
    lines = [f"Question: trust the folder {_one_line(str(question.folder))}?"]
    if question.files:
        names = (_one_line(str(file.relative_to(question.folder))) for file in question.files)
        lines.append(f"What would be obeyed: {', '.join(names)}.")
    else:
        lines.append("It holds no AGENTS.md and no settings of ours now.")
    if question.git_risk:
        lines.append(f"What git would obey: {_one_line(question.git_risk)}")
    elif question.has_repository:
        lines.append("Git would be asked which files a command changed.")
    return [*lines, _TRUST_STATES[question.state]]


def _one_line(text: str) -> str:
    return " ".join(text.split())
