"""Tells the limits which session they count for, and the user when most of one is spent."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.part import Answer, CallAnswer, Part
from agent_tui.events import Notice
from agent_tui.features.budget.limits import DayLimit, SessionLimit, SpentBudget
from agent_tui.features.budget.settings import BudgetSettings
from agent_tui.messages import ToolCall
from agent_tui.providers.spend_limits import spend_limit


class BudgetPart(Part):
    """The budgets in one conversation; its helpers spend from them, too."""

    async def before_message(self, text: str, emit: Emit) -> Answer:
        """Use the amounts in force."""
        self._tell(emit)
        return Answer()

    async def before_continuing(self, emit: Emit) -> None:
        """Use the amounts in force."""
        self._tell(emit)

    async def before_call(self, call: ToolCall, paths: Sequence[Path], emit: Emit) -> CallAnswer:
        """Tell the user in the middle of a turn."""
        self._tell(emit)
        return CallAnswer()

    async def continues(
        self, last_reply: str, times_before: int, most_times: int, emit: Emit
    ) -> bool:
        """Tell the user at the end of a turn, which is the end."""
        self._tell(emit)
        return False

    def _tell(self, emit: Emit) -> None:
        for limit in limits_of(self.host.conversation):
            if text := limit.take_warning():
                emit(Notice("warning", text))


def limits_of(conversation: Conversation) -> Iterator[SpentBudget]:
    """The limits of the program, with the amounts in force and what `conversation` has cost."""
    services = conversation.services
    amounts = services.settings.of(BudgetSettings)
    if (session := spend_limit(services.provider, SessionLimit)) is not None:
        session.most_usd = amounts.budget_session
        session.follow(conversation.log.header.id, conversation.totals.cost_usd)
        yield session
    if (day := spend_limit(services.provider, DayLimit)) is not None:
        day.most_usd = amounts.budget_day
        yield day
