"""A limit is reached: the user is asked which account continues, each time; nobody else decides."""

import asyncio
import io

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.events import LimitWaitStarted, Notice, TurnFinished
from agent_tui.features.login.named import DEFAULT
from agent_tui.features.login.part import use_account
from agent_tui.features.print.printer import ExitCode, print_turn
from agent_tui.features.tour.scripted import Reply, ScriptedProvider
from agent_tui.messages import JsonObject
from agent_tui.providers.access import AdaptingProvider
from agent_tui.providers.base import FaultKind, ModelInfo, ModelRef, ProviderError
from agent_tui.providers.limits import BudgetSpent
from agent_tui.tools.form import CANCELLED, Elicitation, accept_form
from tests.features.login.test_named import KEYS, Home
from tests.support.runtime import Stage, collect, of_kind, only
from tests.support.wall_clock import SleptClock
from tests.ui.app_support import running_app

CLAUDE = ModelRef("anthropic/claude")
INFO = ModelInfo(CLAUDE.name, 100_000, 1_000)
HOUR_S = 3_600.0


def limit(kind: FaultKind = "rate_limit", retry_after_s: float | None = HOUR_S) -> Reply:
    error = ProviderError(kind, "Usage limit reached.", status=429, retry_after_s=retry_after_s)
    return Reply(error=error)


class User:
    """Answers the question about accounts."""

    def __init__(self, *answers: str) -> None:
        self.answers = [*answers]
        self.forms: list[Elicitation] = []

    async def fill(self, form: Elicitation) -> JsonObject:
        self.forms.append(form)
        answer = self.answers.pop(0)
        return accept_form({"account": [answer]}) if answer else CANCELLED


class Desk:
    """A conversation with several accounts."""

    def __init__(
        self, stage: Stage, *replies: Reply, user: User | None = None, names=("work", "private")
    ) -> None:
        home = Home(stage.folder, ANTHROPIC_API_KEY=KEYS["default"]).keep(*names)
        self.accounts = home.accounts
        self.accounts.begin("")
        self.script = ScriptedProvider(replies)
        provider = AdaptingProvider(self.script, lambda _: INFO, accounts=self.accounts)
        self.clock = SleptClock()
        self.runtime: AgentRuntime = stage.runtime(
            provider,
            model=CLAUDE,
            sleep=self.clock.sleep,
            limit_wait_h=12,
            is_interactive=user is not None,
        )
        self.runtime.services.wall_clock = self.clock.read
        if user is not None:
            self.runtime.let_answer(user.fill)


async def test_the_user_is_asked_with_all_names_and_the_turn_continues_at_once(stage: Stage):
    user = User("work")
    desk = Desk(stage, limit(), Reply("Done."), user=user)
    events = await collect(desk.runtime.submit("go"))
    assert only(events, TurnFinished).outcome == "done"
    assert not of_kind(events, LimitWaitStarted)
    (form,) = user.forms
    assert form.title.startswith("The limit of the anthropic account default is reached. It resets")
    assert [value for value, _ in form.fields[0].choices] == ["default", "private", "work"]
    assert desk.accounts.in_use("anthropic") == "work"
    assert desk.accounts.environ["ANTHROPIC_API_KEY"] == KEYS["work"]
    said = [notice.text for notice in of_kind(events, Notice)]
    assert (
        "Requests to anthropic now use the account work, until you leave or switch again." in said
    )


async def test_each_limit_is_another_question(stage: Stage):
    user = User("work", "private", DEFAULT)
    desk = Desk(stage, limit(), limit("quota", None), limit(), Reply("Done."), user=user)
    events = await collect(desk.runtime.submit("go"))
    assert only(events, TurnFinished).outcome == "done"
    assert len(user.forms) == 3
    assert "Which account continues?" in user.forms[1].title
    assert desk.accounts.in_use("anthropic") == DEFAULT


@pytest.mark.parametrize("answer", [DEFAULT, "", "nobody"])
async def test_without_another_choice_the_turn_waits_with_the_same_account(
    stage: Stage, answer: str
):
    user = User(answer)
    desk = Desk(stage, limit(), Reply("Done."), user=user)
    events = await collect(desk.runtime.submit("go"))
    assert only(events, LimitWaitStarted).wait_s == pytest.approx(HOUR_S, abs=60)
    assert only(events, TurnFinished).outcome == "done"
    assert desk.accounts.in_use("anthropic") == DEFAULT


async def test_a_question_that_nobody_answers_ends_when_the_limit_resets(stage: Stage):
    desk = Desk(stage, limit(retry_after_s=61), Reply("Done."), user=User())
    asked = asyncio.Event()

    async def never(_form: Elicitation) -> JsonObject:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    desk.runtime.let_answer(never)
    loop = asyncio.get_running_loop()
    real, skipped_s = loop.time, 0.0
    loop.time = lambda: real() + skipped_s  # pyright: ignore[reportAttributeAccessIssue]
    try:
        turn = asyncio.create_task(collect(desk.runtime.submit("go")))
        await asked.wait()
        skipped_s = 62.0
        events = await turn
    finally:
        loop.time = real  # pyright: ignore[reportAttributeAccessIssue]
    assert only(events, TurnFinished).outcome == "done"
    assert not of_kind(events, LimitWaitStarted)
    assert desk.accounts.in_use("anthropic") == DEFAULT


async def test_nobody_is_asked_without_another_account_or_for_a_spent_budget(stage: Stage):
    user = User()
    desk = Desk(stage, limit(), Reply("Done."), names=(), user=user)
    events = await collect(desk.runtime.submit("go"))
    assert only(events, LimitWaitStarted)
    desk = Desk(stage, Reply(error=BudgetSpent("Spent.")), user=user)
    assert only(await collect(desk.runtime.submit("go")), TurnFinished).outcome == "limit"
    assert user.forms == []


async def test_a_script_ends_and_says_which_account_could_continue(stage: Stage):
    desk = Desk(stage, limit(), Reply("never"), names=("work",))
    out, err = io.StringIO(), io.StringIO()
    code = await print_turn(desk.runtime, "go", "text", out=out, err=err)
    assert code == ExitCode.FAILED
    assert "The account work could continue: agent-tui -c -p --account work" in err.getvalue()
    assert desk.accounts.in_use("anthropic") == DEFAULT
    assert len(desk.script.requests) == 1


async def test_the_key_of_a_new_account_is_masked_from_then_on(stage: Stage):
    desk = Desk(stage, Reply("Done."))
    conversation = desk.runtime.conversation
    conversation.limited_until[CLAUDE.name] = 1e12
    use_account(conversation, desk.accounts, "anthropic", "work")
    assert conversation.limited_until == {}
    await collect(desk.runtime.submit(f"My key is {KEYS['work']}."))
    path = conversation.log.path
    assert path is not None
    assert KEYS["work"] not in path.read_text()


@pytest.mark.thorough
async def test_the_command_lists_and_switches(stage: Stage):
    desk = Desk(stage, Reply("Done."))
    async with running_app(stage.folder, runtime=desk.runtime, stage=stage) as ui:
        await ui.send("/account work")
        assert "now use the account work" in ui.notices[-1]
        await ui.send("/account nobody")
        assert "anthropic has no account called 'nobody'." in ui.notices[-1]
        await ui.write("/account")
        await ui.pilot.press("enter")
        await ui.until(
            lambda: "anthropic: default, private, work (in use)" in ui.notices, "no list"
        )
        await ui.pilot.pause()
        await ui.pilot.press("escape")
        assert desk.accounts.in_use("anthropic") == "work"
