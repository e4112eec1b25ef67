"""Budgets in conversations: the line at 80 %, the stop at 100 %, and what counts."""

import io
from pathlib import Path

import pytest

from agent_tui.cli.settings import usable_settings
from agent_tui.config import Settings
from agent_tui.config.loading import load_settings
from agent_tui.errors import UsageError
from agent_tui.events import AgentEvent, Notice, TurnFinished
from agent_tui.features.budget.ledger import DayLedger
from agent_tui.features.budget.limits import DayLimit, SessionLimit
from agent_tui.features.print.printer import ExitCode, print_turn
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import Cost, Usage
from agent_tui.providers.access import AdaptingProvider, open_models
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.providers.client import RequestTracker, ignore_usage, text_request, unseen
from agent_tui.providers.limits import BudgetSpent
from agent_tui.providers.spend_limits import spend_limit
from tests.support.rows import each_row
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind, only

MODEL = ModelRef("openai/some")
PRICED = ModelInfo(MODEL.name, 100_000, 1_000, input_price=1.0, output_price=2.0)
LOOK = call("c1", "ls", path=".")


def costing(dollars: float, *calls, text: str = "ok") -> Reply:
    usage = Usage(input=10, output=1, cost=Cost(total=dollars))
    return Reply(text, tool_calls=calls, usage=usage)


class Purse:
    """A runtime whose requests are paid from two budgets."""

    def __init__(
        self,
        stage: Stage,
        *replies: Reply,
        session: float = 0,
        day: float = 0,
        info: ModelInfo = PRICED,
        model: ModelRef = MODEL,
        is_interactive: bool = True,
    ) -> None:
        self.script = ScriptedProvider(replies)
        self.ledger = stage.folder / "day.json"
        self.session = SessionLimit(session)
        self.day = DayLimit(day, DayLedger(self.ledger))
        self.provider = AdaptingProvider(self.script, lambda _: info, self.session, self.day)
        self.runtime = stage.runtime(self.provider, model=model, is_interactive=is_interactive)
        self.set(session=session, day=day)

    def set(self, session: float = 0, day: float = 0) -> None:
        """Change the settings while the program runs."""
        services = self.runtime.services
        amounts = {"budget_session": session, "budget_day": day}
        self.runtime.use_settings(services.settings.model_copy(update=amounts))

    async def say(self, text: str = "go") -> list[AgentEvent]:
        return await collect(self.runtime.submit(text))


def ending(events: list[AgentEvent]) -> tuple[str, str]:
    finished = only(events, TurnFinished)
    return finished.outcome, finished.error


def warnings(events: list[AgentEvent]) -> list[str]:
    return [notice.text for notice in of_kind(events, Notice) if notice.level == "warning"]


async def test_a_line_comes_once_at_80_percent_and_the_turn_stops_at_100(stage: Stage):
    purse = Purse(stage, costing(0.5, LOOK), costing(0.3, LOOK), costing(0.3, LOOK), session=1)
    events = await purse.say()
    assert warnings(events) == [
        "$0.80 spent in this session, 80 % of budget_session ($1). At 100 %, requests stop."
    ]
    outcome, error = ending(events)
    assert outcome == "limit"
    assert error == (
        "Stopped: $1.10 spent in this session, 110 % of budget_session ($1). "
        "budget_session in /settings changes that. Or start /new."
    )
    assert len(purse.script.requests) == 3


def test_a_small_budget_is_told_with_enough_digits():
    limit = SessionLimit(0.005)
    limit.pay(0.0045)
    assert "$0.0045 spent in this session, 90 % of budget_session ($0.005)" in limit.take_warning()


async def test_a_raised_budget_counts_from_the_next_message(stage: Stage):
    purse = Purse(stage, costing(1.5), costing(0.1, text="more"), session=1)
    assert ending(await purse.say())[0] == "done"
    assert ending(await purse.say())[0] == "limit"
    purse.set(session=2)
    assert ending(await purse.say())[0] == "done"


async def test_a_new_session_has_its_own_budget_but_not_its_own_day(stage: Stage):
    purse = Purse(stage, costing(1.0), costing(1.0), session=1, day=2)
    assert ending(await purse.say())[0] == "done"
    await purse.runtime.sessions.start_new()
    assert ending(await purse.say())[0] == "done"
    await purse.runtime.sessions.start_new()
    outcome, error = ending(await purse.say())
    assert outcome == "limit"
    assert "$2.00 spent today, 100 % of budget_day ($2)" in error


async def test_a_session_that_is_opened_again_has_spent_what_it_cost(stage: Stage):
    purse = Purse(stage, costing(1.0), session=1)
    await purse.say()
    path = purse.runtime.conversation.log.path
    assert path is not None
    await purse.runtime.aclose()
    again = Purse(stage, costing(1.0), session=1)
    await again.runtime.sessions.open(str(path))
    assert ending(await again.say())[0] == "limit"
    assert not again.script.requests


async def test_a_helper_that_spends_most_of_the_budget_brings_the_line(stage: Stage):
    explore = call("c1", "explore", task="Where is greet?")
    replies = costing(0.1, explore), costing(0.4, LOOK), costing(0.35, text="Here."), costing(0.01)
    purse = Purse(stage, *replies, session=1)
    assert warnings(await purse.say()) == [
        "$0.86 spent in this session, 86 % of budget_session ($1). At 100 %, requests stop."
    ]


async def test_the_day_counts_what_other_programs_spent(stage: Stage):
    purse = Purse(stage, costing(0.1), costing(0.1), day=1)
    assert ending(await purse.say())[0] == "done"
    DayLedger(purse.ledger).add(0.9)
    assert ending(await purse.say())[0] == "limit"


async def test_a_summary_counts_and_is_refused_too(stage: Stage):
    purse = Purse(stage, costing(0.6), costing(0.5, text=GOOD_SUMMARY), session=1)
    await purse.say("words " * 3_000)
    client = purse.runtime.services.client
    asked = text_request(MODEL, "Summarise.", system="", max_output_tokens=100)
    await client.ask(asked, "choosing", RequestTracker(unseen, ignore_usage))
    with pytest.raises(BudgetSpent, match="budget_session"):
        await client.ask(asked, "choosing", RequestTracker(unseen, ignore_usage))
    assert ending(await purse.say())[0] == "limit"


async def test_a_helper_spends_from_the_budget_of_its_conversation(stage: Stage):
    explore = call("c1", "explore", task="Where is the greeting?")
    purse = Purse(stage, costing(0.2, explore), costing(0.9, text="In greet.py."), session=1)
    outcome, error = ending(await purse.say())
    assert outcome == "limit"
    assert "$1.10 spent in this session" in error


async def test_a_damaged_ledger_stops_requests_until_it_is_deleted(stage: Stage):
    purse = Purse(stage, costing(0.1), costing(0.1), day=1)
    purse.ledger.write_text("{")
    outcome, error = ending(await purse.say())
    assert outcome == "limit"
    assert "Stopped: budget_day is set." in error
    assert f"{purse.ledger} is damaged" in error
    assert "midnight" not in error, "a new day mends no file"
    purse.ledger.unlink()
    assert ending(await purse.say())[0] == "done"


async def test_a_cost_that_could_not_be_recorded_is_recorded_before_the_next_request(stage: Stage):
    purse = Purse(stage, costing(0.7), costing(0.7), day=2)

    def break_ledger(_request) -> Reply:
        purse.ledger.write_text("{")
        return costing(0.7)

    purse.script = ScriptedProvider(break_ledger)
    purse.provider._inner = purse.script
    assert ending(await purse.say())[0] == "done"
    purse.ledger.unlink()
    purse.provider._inner = ScriptedProvider([costing(0.1)])
    assert ending(await purse.say())[0] == "done"
    assert DayLedger(purse.ledger).add(0) == pytest.approx(0.8)


@each_row(
    "model, is_refused",
    [
        (ModelRef("openai/new"), True),
        (ModelRef("qwen", "https://models.example.com/v1"), True),
        (ModelRef("qwen", "https://8.8.8.8/v1"), True),
        (ModelRef("qwen", "http://127.0.0.1:8080/v1"), False),
        (ModelRef("qwen", "http://localhost:1234/v1"), False),
        (ModelRef("qwen", "http://[::1]:1234/v1"), False),
        (ModelRef("qwen", "http://192.168.1.20:8000/v1"), False),
        (ModelRef("chatgpt/gpt-5"), False),
        (ModelRef("chatgpt/gpt-5", "https://models.example.com/v1"), True),
        (ModelRef("local/small"), False),
    ],
)
async def test_a_model_without_a_price_is_refused_unless_it_costs_nothing(
    tmp_path_factory, model: ModelRef, is_refused: bool
):
    stage = Stage(tmp_path_factory.mktemp("stage"))
    unpriced = ModelInfo(model.name, 100_000, 1_000)
    purse = Purse(stage, costing(0.0), session=1, info=unpriced, model=model)
    outcome, error = ending(await purse.say())
    assert (outcome == "limit") == is_refused
    if is_refused:
        assert f"The price of {model.name} is unknown, so budget_session cannot be" in error
    purse.set()
    purse.script = ScriptedProvider([costing(0.0)])
    purse.provider._inner = purse.script
    assert ending(await purse.say())[0] == "done", "without a budget any model is asked"


async def test_a_script_ends_with_code_3(stage: Stage):
    purse = Purse(stage, costing(1.0, LOOK), session=1, is_interactive=False)
    out, err = io.StringIO(), io.StringIO()
    code = await print_turn(purse.runtime, "go", "text", out=out, err=err)
    assert code == ExitCode.LIMIT == 3
    assert "100 % of budget_session ($1)" in err.getvalue()


def test_every_access_to_models_has_the_limits(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path))
    settings = Settings().model_copy(update={"budget_session": 2.0, "budget_day": 3.0})
    provider = open_models(settings, {}).provider
    session, day = spend_limit(provider, SessionLimit), spend_limit(provider, DayLimit)
    assert session is not None
    assert day is not None
    assert (session.most_usd, day.most_usd) == (2, 3)


@each_row("amount", ["-1", "nan", "inf", '"ten"', "[1]"])
def test_a_wrong_amount_is_named(tmp_path_factory, amount: str):
    file = tmp_path_factory.mktemp("config") / "config.toml"
    file.write_text(f"budget_day = {amount}\n")
    loaded = load_settings(file, {})
    (problem,) = loaded.problems
    assert "budget_day" in str(problem)
    assert loaded.settings.model_dump()["budget_day"] == 0


@each_row("variable", ["$5", "1,5", "-1", "5 dollars", ""])
def test_a_wrong_amount_ends_the_start(tmp_path_factory, variable: str):
    file = tmp_path_factory.mktemp("config") / "none"
    loaded = load_settings(file, {"AGENT_TUI_BUDGET_DAY": variable})
    with pytest.raises(UsageError, match=r"budget_day: .* no request is sent"):
        usable_settings(loaded)


def test_a_project_cannot_set_a_budget(tmp_path: Path):
    own, project = tmp_path / "config.toml", tmp_path / "project.toml"
    own.write_text("budget_day = 5\n")
    project.write_text("budget_day = 500\n")
    loaded = load_settings(own, {}, {}, [project])
    assert loaded.settings.model_dump()["budget_day"] == 5
    assert "only your own config.toml" in str(loaded.problems[0])
    assert usable_settings(loaded) == loaded.settings
