"""The `explore` tool: a helper searches and reads in its own context, and answers."""

from dataclasses import dataclass

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.reading_helpers import ReadingHelpers
from agent_tui.tools.registry import OfferedTool, ToolHost, offer_tool


class ExploreArguments(ToolArguments):
    """Arguments of `explore`."""

    task: str = Field(min_length=1, description="the question, with all it must know")
    agent: str = ""


@dataclass(frozen=True, slots=True)
class ExploreTool:
    """Passes a question to the conversation, which decides on the helper."""

    name: str = "explore"
    description: str = (
        "Let a helper search and read the project; it answers once.\n"
        "For questions across many files you need not see yourself; several in one reply run "
        "in parallel. It sees only `task`."
    )
    arguments_type: type[ExploreArguments] = ExploreArguments

    def intent(self, arguments: ExploreArguments, context: ToolContext) -> Intent:
        """Reads what its own calls name, which are judged one by one.

        Raises:
            ToolError: There is no question.
        """
        task = " ".join(arguments.task.split())
        if not task:
            raise ToolError("task is empty: say what to find out.")
        agent = f"{arguments.agent.strip()}: " if arguments.agent.strip() else ""
        root = context.resolve(".")
        return Intent(title=f"explore {agent}{task}", access="read", paths=(root,))

    async def run(self, arguments: ExploreArguments, context: ToolContext) -> ToolOutput:
        """The helper's answer, and where everything it read is stored."""
        helpers = context.use(ReadingHelpers)
        task, agent = arguments.task.strip(), arguments.agent.strip()
        return await helpers.answer_call(task, agent, context.emit)


def make_explore(_host: ToolHost) -> OfferedTool:
    """The tool, as it is offered."""
    return offer_tool(ExploreTool())
