"""The `todo` tool: the model's plan, shown to the user."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from agent_tui.messages import Todo, ToolDetails
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput


class PlannedStep(ToolArguments):
    """One line of the plan."""

    text: str = Field(min_length=1)
    status: Literal["pending", "in_progress", "completed"] = "pending"


class TodoArguments(ToolArguments):
    """Arguments of `todo`: the whole plan, which replaces the one before."""

    todos: tuple[PlannedStep, ...]


@dataclass(frozen=True, slots=True)
class TodoTool:
    """Stores the plan of the current work."""

    name: str = "todo"
    description: str = (
        "Plan multi-step work; give the whole list each time.\nOne step in_progress at a time."
    )
    arguments_type: type[TodoArguments] = TodoArguments

    def intent(self, arguments: TodoArguments, context: ToolContext) -> Intent:
        """No access outside the program."""
        return Intent(title=f"plan: {_progress(arguments.todos)}", access="none")

    async def run(self, arguments: TodoArguments, context: ToolContext) -> ToolOutput:
        """Replace the plan."""
        context.todos[:] = [Todo(text=step.text, status=step.status) for step in arguments.todos]
        progress = _progress(arguments.todos)
        details = ToolDetails(summary=progress, todos=tuple(context.todos))
        return ToolOutput(f"Plan updated: {progress}.", details)


def _progress(steps: tuple[PlannedStep, ...]) -> str:
    done = sum(step.status == "completed" for step in steps)
    return f"{done} of {len(steps)} done"
