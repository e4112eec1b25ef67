"""What works on a conversation, made for each piece of work: turns, compactors, commands."""

from agent_tui.agent.activity import Emit
from agent_tui.agent.ahead import AheadSummary
from agent_tui.agent.compactor import Compactor
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.gate import ApprovalGate
from agent_tui.agent.loops import LoopRunner
from agent_tui.agent.scopes import ScopeKeeper
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.tool_calls import ToolRunner, ToolServices
from agent_tui.agent.turn import Turn
from agent_tui.events import Notice
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.sessions.lineage.chain import PastSessions, SessionChain


class Workers:
    """Makes workers, and holds what they share from one piece of work to the next.

    Attributes:
        gate: Where approvals are waited for.
        ahead: The summary that is written while the work goes on.
        past: The sessions that the conversation goes on from.
    """

    def __init__(self, services: RuntimeServices) -> None:
        self._services = services
        self.gate = ApprovalGate()
        self.ahead = AheadSummary(services.compaction)
        self.past = PastSessions(services.store)

    def turn(self, conversation: Conversation, approvals: PermissionEngine, emit: Emit) -> Turn:
        """One turn of `conversation`."""
        services = self._services
        runner = ToolRunner(conversation, self.tool_services(conversation, approvals), emit)
        compactor = self.compactor(conversation)
        return Turn(
            conversation,
            services.provider,
            runner,
            compactor,
            emit,
            services.sleep,
            lambda: self._take_up_tools(conversation, emit),
        )

    async def _take_up_tools(self, conversation: Conversation, emit: Emit) -> None:
        """Offer what there is now; within a turn it stays, for the sake of the prompt cache."""

        def tell(text: str) -> None:
            emit(Notice("warning", text))

        if await self._services.take_up_tools(conversation.cwd, tell):
            conversation.fitted = None

    def compactor(self, conversation: Conversation) -> Compactor:
        """What makes room in `conversation`."""
        return Compactor(conversation, self._services, self.ahead)

    def scopes(self, conversation: Conversation) -> ScopeKeeper:
        """What opens and closes the scopes of `conversation`."""
        return ScopeKeeper(conversation, self._services, self.ahead)

    def loops(self, conversation: Conversation, approvals: PermissionEngine) -> LoopRunner:
        """What runs loops in `conversation`, and ends what was left of them."""
        return LoopRunner(
            conversation,
            self.scopes(conversation),
            lambda emit: self.turn(conversation, approvals, emit),
        )

    def tool_services(
        self, conversation: Conversation, approvals: PermissionEngine
    ) -> ToolServices:
        """What calls in `conversation` need."""
        services = self._services
        return ToolServices(
            toolbox=services.toolbox,
            approvals=approvals,
            gate=self.gate,
            output_dir=services.output_dir,
            environ=services.environ,
            person_environ=services.person_environ,
            bash_timeout_s=services.settings.bash_timeout_s,
            compact=self.compactor(conversation).answer_call,
            scope=self.scopes(conversation).answer_call,
            history=lambda: SessionChain(conversation.log, self.past),
        )
