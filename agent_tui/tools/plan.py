"""The `plan` tool: in plan mode the model submits a plan, and the user decides on it."""

import re
from dataclasses import dataclass

from pydantic import Field

from agent_tui.messages import Todo
from agent_tui.text import markdown_words
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput

_STEP = re.compile(r"^(?:\d+[.)]|[-*+])\s+(?:\[[ xX]\]\s+)?(\S.*)$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_MOST_STEPS = 30
_MOST_STEP_CHARS = 200


class PlanArguments(ToolArguments):
    """Arguments of `plan`."""

    plan: str = Field(min_length=1, description="in Markdown")


@dataclass(frozen=True, slots=True)
class PlanTool:
    """Asks the user to decide on a plan; the conversation handles the answer."""

    name: str = "plan"
    description: str = (
        "Plan mode: submit a plan for approval.\n"
        "You can only read now. Look at what the task needs, ask what you must know, then "
        "submit the plan in Markdown: goal, steps as a numbered list (files, changes), how to"
        " check it. Nothing changes before the user approves."
    )
    arguments_type: type[PlanArguments] = PlanArguments

    def intent(self, arguments: PlanArguments, context: ToolContext) -> Intent:
        """No access outside the program."""
        return Intent(title=plan_title(arguments.plan), access="none")

    async def run(self, arguments: PlanArguments, context: ToolContext) -> ToolOutput:
        """Ask, and report the answer."""
        return await context.plan(arguments.plan.strip())


def plan_title(plan: str) -> str:
    """The first line of a plan, without Markdown marks."""
    return (markdown_words(plan).partition("\n")[0] or "plan")[:_MOST_STEP_CHARS]


def plan_steps(plan: str) -> tuple[Todo, ...]:
    """The steps of a plan as a to-do list: the numbered items of its outermost lists.

    If none is numbered, all outermost items are steps. Code and indented items are left out. The
    texts are without Markdown marks.
    """
    numbered: list[str] = []
    others: list[str] = []
    is_code = False
    for line in plan.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code and (item := _STEP.match(line)):
            (numbered if line[0].isdigit() else others).append(item[1])
    steps = numbered or others
    texts = (markdown_words(step) or step for step in steps[:_MOST_STEPS])
    return tuple(Todo(text=text[:_MOST_STEP_CHARS]) for text in texts)
