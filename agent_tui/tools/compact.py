"""The `compact` tool: the model compacts its context at a good moment."""

from dataclasses import dataclass

from pydantic import Field

from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput


class CompactArguments(ToolArguments):
    """Arguments of `compact`."""

    focus: str = Field(default="", description="what to keep most carefully")


@dataclass(frozen=True, slots=True)
class CompactTool:
    """Asks the conversation to compact itself; the conversation decides."""

    name: str = "compact"
    description: str = (
        "Summarise older messages to free context; recall finds them.\n"
        "When: a new task area begins, a milestone is done, you repeat steps or reread files,"
        " or old output fills the context.\n"
        "Not while you edit or debug, need exact text from above, or just compacted."
    )
    arguments_type: type[CompactArguments] = CompactArguments

    def intent(self, arguments: CompactArguments, context: ToolContext) -> Intent:
        """No access outside the program."""
        focus = " ".join(arguments.focus.split())
        return Intent(title=f"compact: {focus}" if focus else "compact", access="none")

    async def run(self, arguments: CompactArguments, context: ToolContext) -> ToolOutput:
        """Compact, and report what was kept or why it was not needed."""
        return await context.compact(arguments.focus.strip())
