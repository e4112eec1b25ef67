import re
import time
from pathlib import Path

from textual.widgets import Static

from agent_tui.agent.session.spending import Spending, Spent
from agent_tui.agent.turn.request_watch import CacheBreak
from agent_tui.events import TotalsChanged
from agent_tui.features.cost.command import break_lines, cost_lines, limit_lines
from agent_tui.providers.rate_limits import RateLimit
from tests.ui.app_support import running_app

BIG, OWN = Spent("a/big", 2, 1_500, 200, 20, 0.6), Spent("my/own", 1, 5_000, 0, 10, 0.0)


def lines(spending: Spending, cost: float, *unpriced: str) -> list[str]:
    totals = TotalsChanged(7_200, 100, cost)
    return cost_lines(spending, totals, "a/big", lambda name: name not in unpriced)


def test_one_model_takes_one_line():
    assert lines(Spending((BIG,), Spent(), None), 0.6) == [
        "This session: 7,200 tokens in (200 from the cache), 100 out, $0.6000, 2 requests.",
        "From the cache: 2% of the input this session. /cost cache shows what broke it.",
        "At list prices; your bill may differ.",
    ]


def test_several_models_summaries_and_what_came_since_have_lines_of_their_own():
    spending = Spending((BIG, OWN), Spent("", 1, 700, 0, 70, 0.02), Spent("", 1, 300, 0, 10, 0.1))
    assert lines(spending, 0.62, "my/own") == [
        "This session: 7,200 tokens in (200 from the cache), 100 out, $0.6200, 4 requests.",
        "  a/big: 1,500 tokens in (200 from the cache), 20 out, $0.6000, 2 requests",
        "  my/own: 5,000 tokens in, 10 out, 1 request",
        "  summaries: 700 tokens in, 70 out, $0.0200, 1 request",
        "From the cache: 2% of the input this session. /cost cache shows what broke it.",
        "Since the last compaction: 300 tokens in, 10 out, 1 request.",
        "The price of my/own is unknown and not counted.",
    ]


def test_the_last_turn_has_a_rate_of_its_own():
    turn = Spent("a/big", 2, 1_000, 950, 20, 0.1)
    rate = lines(Spending((BIG,), Spent(), None, turn), 0.6)[1]
    assert rate.startswith("From the cache: 2% of the input this session, 95% in the last turn.")


def test_what_broke_the_cache_is_listed():
    assert break_lines((), 1) == ["Nothing broke the cache in 1 request since the start."]
    assert break_lines((CacheBreak(7, "the tools", 200, 9_000),), 12) == [
        "What broke the cache, in 12 requests since the start:",
        "  request 7: the tools (200 of 9,000 tokens came from the cache)",
    ]


async def test_what_broke_the_cache_is_told_on_request(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/cost cache")
        assert ui.notices[-1] == "Nothing broke the cache in 0 requests since the start."


def test_a_price_that_is_not_known_is_no_zero():
    summaries = Spent("", 1, 700, 0, 70, 0.0)
    *amounts, last = lines(Spending((OWN,), summaries, None), 0.0, "my/own")
    assert len(amounts) == 2
    assert "$" not in " ".join(amounts)
    assert last == "The price of my/own is unknown and not counted."


def test_estimates_are_said():
    spent = Spent("a/big", 1, 10, 0, 10, 0.1, has_estimates=True)
    assert "are estimates" in lines(Spending((spent,), Spent(), None), 0.1)[-1]


async def test_the_tools_are_listed_with_what_they_take_of_every_request(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/tools")
        await ui.until(lambda: bool(ui.app.screen.query("#page-title")))
        title = str(ui.app.screen.query_one("#page-title", Static).content)
        assert re.fullmatch(r"The model's tools · about [1-9][\d,]* tokens per request", title)


def test_what_is_left_of_the_limits_and_when_they_reset():
    noon_s = time.mktime((2026, 3, 1, 12, 0, 0, 0, 0, -1))
    limits = [RateLimit("requests", 0.999), RateLimit("5h", 0.38, noon_s + 8_400, 18_000)]
    assert [*limit_lines(limits, noon_s)] == [
        "Left of the provider's limits, as of its last response:",
        "  requests: 99%",
        "  5h: 38%, resets at 14:20",
    ]
    assert not [*limit_lines([], noon_s)]
