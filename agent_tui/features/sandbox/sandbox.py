"""The sandbox of the model's commands, as the program uses it."""

from collections.abc import Callable

from agent_tui.agent.conversation import Conversation
from agent_tui.agent.turn.pending_approvals import PendingApprovals
from agent_tui.features.sandbox.command_run import SandboxedRun
from agent_tui.features.sandbox.network_questions import NetworkQuestions
from agent_tui.features.sandbox.walls import Walls
from agent_tui.tools.base import ToolContext
from agent_tui.tools.command_sandbox import CommandStart


class Sandbox(Walls):
    """The walls, the commands in them, and the questions about their connections."""

    def run(self, command: str, context: ToolContext, how: CommandStart) -> SandboxedRun:
        """Return the run of a command inside the wall for its folder."""
        return SandboxedRun(how, self, command, context, self.watch(context.cwd))

    def network(
        self, pending: PendingApprovals, conversation: Callable[[], Conversation]
    ) -> NetworkQuestions:
        """Make what decides on the connections through the gate, for a runtime."""
        questions = NetworkQuestions(pending, conversation)
        questions.serve(self.parts.gate)
        return questions
