"""``/budget``, and the end of a turn, on the screen."""

import pytest

from tests.features.budget.test_turns import Purse, costing
from tests.support.runtime import Stage
from tests.ui.app_support import running_app


@pytest.mark.thorough
async def test_what_is_spent_is_shown_and_how_to_set_a_budget(stage: Stage):
    purse = Purse(stage, costing(0.5))
    async with running_app(stage.folder, runtime=purse.runtime, stage=stage) as ui:
        await ui.send("/budget")
        assert ui.notices[-1] == "No budget is set. /settings has budget_session and budget_day."
        purse.set(session=1, day=10)
        await ui.send("Hello")
        await ui.until(lambda: not ui.is_running, "the turn goes on")
        await ui.send("/budget")
        assert ui.notices[-1].splitlines() == [
            "$0.50 spent in this session, 50 % of budget_session ($1).",
            "$0.50 spent today, 5 % of budget_day ($10).",
        ]
        purse.ledger.write_text("{")
        await ui.send("/budget")
        assert "is damaged" in ui.notices[-1]


@pytest.mark.thorough
async def test_a_spent_budget_ends_the_turn_and_says_what_to_do(stage: Stage):
    purse = Purse(stage, costing(1.0), session=1)
    async with running_app(stage.folder, runtime=purse.runtime, stage=stage) as ui:
        await ui.send("Hello")
        await ui.until(lambda: not ui.is_running, "the turn goes on")
        assert "At 100 %, requests stop." in " ".join(ui.drawn_chat.split())
        await ui.send("More")
        await ui.until(lambda: not ui.is_running, "the turn goes on")
        chat = " ".join(ui.drawn_chat.split())
        assert "budget_session in /settings changes that. Or start /new." in chat
