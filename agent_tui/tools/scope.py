"""The `scope` tool: the model marks a section of work that is summarised at its end."""

from dataclasses import dataclass

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.tools.base import Intent, ScopeAction, ToolArguments, ToolContext, ToolOutput

_MOST_LABEL_CHARS = 60


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
        "Mark a stretch of work to be summarised at its end.\n"
        "enter before a side task with much output (searches, experiments), exit after it. "
        "Scopes nest. break ends a /loop of the user."
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
        return await context.scope(arguments.action, label, focus)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_MOST_LABEL_CHARS].rstrip()
