"""The `scope` tool: the model marks a section of work that is summarised at its end."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, TypeAlias

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.tools.base import Ability, Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.registry import OfferedTool, ToolHost, offer_tool

ScopeAction: TypeAlias = Literal["enter", "exit", "break"]

_MOST_LABEL_CHARS = 60


class Scopes(Ability):
    """The scopes of a conversation."""

    unavailable: ClassVar[str] = "Scopes are not available here."

    @abstractmethod
    async def answer_call(self, action: ScopeAction, label: str, focus: str) -> ToolOutput:
        """Enter a scope, or leave one; never raises if no summary can be made.

        Args:
            action: What to do.
            label: The name of a new scope.
            focus: What its summary must keep.
        """


class ScopeArguments(ToolArguments):
    """Arguments of `scope`."""

    action: ScopeAction
    label: str = Field(default="", description="for enter: a name")
    focus: str = Field(default="", description="for enter: what the summary must keep")


@dataclass(frozen=True, slots=True)
class ScopeTool:
    """Opens and closes scopes; the conversation handles them."""

    name: str = "scope"
    description: str = (
        "Mark work to be summarised at its end, or end a /loop of the user.\n"
        "enter before a side task with much output (searches, experiments), exit after it. "
        "Scopes nest. break ends the loop."
    )
    arguments_type: type[ScopeArguments] = ScopeArguments

    def intent(self, arguments: ScopeArguments, context: ToolContext) -> Intent:
        """No access outside the program.

        Raises:
            ToolError: A scope without a label was to be entered.
        """
        label = _one_line(arguments.label)
        if arguments.action == "enter" and not label:
            raise ToolError("enter needs a label: a few words on what the scope is for.")
        return Intent(title=f"{arguments.action} {label}".rstrip(), access="none")

    async def run(self, arguments: ScopeArguments, context: ToolContext) -> ToolOutput:
        """Enter or leave a scope, and report the result."""
        label, focus = _one_line(arguments.label), arguments.focus.strip()
        answer = context.use(Scopes).answer_call
        return await context.change_context(partial(answer, arguments.action, label, focus))


def make_tool(_host: ToolHost) -> OfferedTool:
    """The tool, before the helpers in the order of use."""
    return offer_tool(ScopeTool(), before="explore", is_seldom=True)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_MOST_LABEL_CHARS].rstrip()
