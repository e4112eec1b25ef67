"""What comes of a plan that the model hands over: the person decides on it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.approved_plan import approving_message
from agent_tui.events import Notice, PlanHandedOver, UserMessageAdded
from agent_tui.messages import ToolCall, ToolDetails, UserMessage
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.tools.base import Intent, ToolOutput
from agent_tui.tools.plan import plan_steps, plan_title

_NOT_PLANNING = "This is not plan mode: no plan needs approval. Continue with the work."
_NOBODY_APPROVES = "The user has the plan and has not decided on it yet."
_DECLINED = "The user does not approve the plan yet."

Ask: TypeAlias = Callable[[ToolCall, Intent], Awaitable[ApprovalAnswer]]


@dataclass(slots=True)
class PlanDecision:
    """Has the person decide on plans; an approved one is from then on what they asked for.

    `ask` shows a plan and waits for the answer.
    """

    conversation: Conversation
    permissions: PermissionEngine
    ask: Ask
    emit: Emit
    _approved: str = field(default="", init=False)

    async def decide(self, call: ToolCall, plan: str) -> ToolOutput:
        """What the model is told. Where nobody can answer, or a no has no words, the turn ends."""
        if self.permissions.mode != "plan":
            return ToolOutput(_NOT_PLANNING, is_error=True)
        self.emit(PlanHandedOver(call.id, plan))
        if not self.permissions.is_interactive:
            return ToolOutput(_NOBODY_APPROVES, ends_turn="done")
        intent = Intent(plan_title(plan), "none", body=plan, body_kind="plan")
        answer = await self.ask(call, intent)
        if answer.choice == "no":
            said = f"{_DECLINED} They say: {answer.words}" if answer.words else _DECLINED
            return ToolOutput(
                said,
                ToolDetails(ending="declined"),
                is_error=True,
                ends_turn="" if answer.words else "aborted",
            )
        self.permissions.mode = "accept-edits" if answer.choice == "session" else "ask"
        self._approved = answer.plan or plan
        said = f"Plan approved. Permission mode: {self.permissions.mode}"
        self.emit(Notice("info", said, "plan"))
        return self._approval(is_changed=self._approved != plan)

    def say_approved(self) -> None:
        """Add the approved plan as the person's message, which every compaction keeps.

        To be called once all results of the reply are recorded. The model wrote most of it, so
        no file goes along that it mentions.
        """
        if plan := self._approved:
            self._approved = ""
            message = UserMessage(content=approving_message(plan))
            entry = self.conversation.append(message)
            self.emit(UserMessageAdded(entry.id, message.text, 0))

    def _approval(self, *, is_changed: bool) -> ToolOutput:
        details = ToolDetails(summary="approved")
        if steps := plan_steps(self._approved):
            self.conversation.todos[:] = steps
            details = details.model_copy(update={"todos": steps})
        changed = " with changes" if is_changed else ""
        return ToolOutput(
            f"The user approved the plan{changed}. It follows as their message.", details
        )
