"""The ways to answer a request for approval, in the order of their rows."""

from dataclasses import dataclass
from typing import Literal

from agent_tui.events import ApprovalRequest
from agent_tui.permissions.rules import INSIDE_RULE, granted
from agent_tui.ui.questions.answer_list import AnswerRow

Choice = Literal[
    "once", "session", "project", "parts", "project_parts", "rule", "edit", "no", "words"
]


@dataclass(frozen=True, slots=True)
class PanelAnswer:
    """One way to answer.

    Attributes:
        key: The letter that gives it.
        choice: What it does.
        label: What it says.
        grants: What is allowed from then on, for the person; empty for nothing.
    """

    key: str
    choice: Choice
    label: str
    grants: str = ""

    @property
    def row(self) -> AnswerRow:
        """How it is shown."""
        return AnswerRow(self.key, self.label, self.grants)


_PLAN_ANSWERS = (
    PanelAnswer("y", "once", "Yes, and ask before each change"),
    PanelAnswer("a", "session", "Yes, and accept edits"),
    PanelAnswer("g", "edit", "Edit the plan first"),
    PanelAnswer("n", "no", "No, not yet"),
    PanelAnswer("e", "words", "No, and say what is missing"),
)


def answers_to(request: ApprovalRequest) -> tuple[PanelAnswer, ...]:
    """All ways to answer `request`; those that make a rule only where one may be made."""
    if request.body_kind == "plan":
        return _PLAN_ANSWERS
    return (
        PanelAnswer("y", "once", "Yes, once"),
        *(_rule_answers(request) if request.session_rule else ()),
        PanelAnswer("n", "no", "No"),
        PanelAnswer("e", "words", "No, and say what to do instead"),
    )


def first_mark(request: ApprovalRequest) -> int:
    """Which row is marked at first: the smallest yes, or No where something would be lost."""
    choices = [answer.choice for answer in answers_to(request)]
    return choices.index("no" if request.is_loss else "once")


def _rule_answers(request: ApprovalRequest) -> tuple[PanelAnswer, ...]:
    if request.session_rule == INSIDE_RULE:
        return (
            PanelAnswer("a", "session", "Yes, and commands may write here for this session"),
            PanelAnswer("p", "project", "Yes, and commands may always write in this project"),
        )
    whole, parts = granted([request.session_rule]), granted(request.part_rules)
    by_parts = (
        PanelAnswer("s", "parts", "Yes, with rules for this session", parts),
        PanelAnswer("w", "project_parts", "Yes, with rules in this project", "the same rules"),
    )
    return (
        PanelAnswer("a", "session", "Yes, for this session", whole),
        PanelAnswer("p", "project", "Yes, always in this project", whole),
        *(by_parts if parts else ()),
        PanelAnswer("r", "rule", "Yes, with a rule you edit", "for this session"),
    )
