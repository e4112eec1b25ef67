"""The widgets of the main screen, each once."""

from dataclasses import dataclass

from textual.widget import Widget

from agent_tui.ui.approval_panel import ApprovalPanel
from agent_tui.ui.chat.lines_above_prompt import (
    ActivityLine,
    ColdLine,
    FeatureLines,
    PlanView,
    QueueView,
    StepsView,
)
from agent_tui.ui.prompt.prompt import Prompt
from agent_tui.ui.status.status_bar import StatusBar
from agent_tui.ui.transcript.view import Transcript


@dataclass(frozen=True, slots=True)
class ChatWidgets:
    """Every widget of the main screen, from top to bottom.

    Attributes:
        transcript: The chat itself.
        plan: The model's to-do list.
        standing: What features show above the prompt.
        approval: The question whether a tool call may run.
        queue: Messages that wait for the running turn.
        steps: The step of the demo that is due.
        cold: What the next message costs with a cold cache.
        activity: What runs, and the hint.
        prompt: Where the user writes.
        status_bar: The last row.
    """

    transcript: Transcript
    plan: PlanView
    standing: FeatureLines
    approval: ApprovalPanel
    queue: QueueView
    steps: StepsView
    cold: ColdLine
    activity: ActivityLine
    prompt: Prompt
    status_bar: StatusBar

    @property
    def above_prompt(self) -> tuple[Widget, ...]:
        """The widgets that are mounted once the conversation is loaded."""
        return (
            self.transcript,
            self.plan,
            self.standing,
            self.approval,
            self.queue,
            self.steps,
            self.cold,
            self.activity,
        )
