"""The `skill` tool: the model loads written instructions for a kind of work."""

from dataclasses import dataclass

from pydantic import Field

from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput


class SkillArguments(ToolArguments):
    """Arguments of `skill`."""

    name: str = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class SkillTool:
    """Has a skill pinned; see `agent_tui.agent.turn.pins`."""

    name: str = "skill"
    description: str = (
        "Load a skill from <skills>: instructions for a kind of work. Its text stays in the "
        "conversation.\n"
        "Load it once, before such work begins. Paths in it are relative to its folder."
    )
    arguments_type: type[SkillArguments] = SkillArguments

    def intent(self, arguments: SkillArguments, context: ToolContext) -> Intent:
        """No access outside the program."""
        return Intent(title=f"skill {arguments.name}", access="none")

    async def run(self, arguments: SkillArguments, context: ToolContext) -> ToolOutput:
        """Load the skill."""
        return await context.use_skill(arguments.name)
