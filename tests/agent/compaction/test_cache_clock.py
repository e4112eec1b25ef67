"""A cached prefix grows old by a clock, and in a pause the model is asked before it dies."""

import asyncio
from dataclasses import replace

import pytest

from agent_tui.agent.compaction.cache_clock import ColdPrice, cache_state
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.config import CompactionSettings
from agent_tui.events import CompactionFailed, CompactionFinished, Notice, TurnFinished
from agent_tui.features.context.contents import cache_text
from agent_tui.features.context.undo import undo_compaction
from agent_tui.features.tour.scripted import Reply, ScriptedProvider
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelInfo, ModelRef, ModelRequest, ProviderError
from agent_tui.sessions.entries import CompactionEntry
from tests.support.compaction_ways import SUMMARY, Waits, talk
from tests.support.runtime import Stage, collect, of_kind, only

BIG, CHEAP = ModelRef("anthropic/big"), ModelRef("anthropic/cheap")
ANSWER = f"<notes>\n{SUMMARY}\n</notes>\n<keep>\n#1\n</keep>"


class PricedModels:
    """One dear model and a cheap one."""

    def __init__(self, *, has_prices: bool = True) -> None:
        self.has_prices = has_prices
        self.window = 100_000

    def info(self, ref: ModelRef) -> ModelInfo:
        info = ModelInfo(ref.name, self.window, 8_000, source="table")
        if not self.has_prices:
            return info
        if ref == CHEAP:
            return replace(info, input_price=3.0, output_price=20.0)
        return replace(
            info, input_price=30.0, output_price=30.0, cache_read_price=3.0, cache_write_price=37.5
        )

    async def learn(self, ref: ModelRef) -> ModelInfo:
        return self.info(ref)

    def resolve(self, name: str) -> ModelRef:
        return ModelRef(name)

    def cheap_model(self, ref: ModelRef) -> ModelRef | None:
        return CHEAP


class Pausing:
    """A conversation of 14,000 tokens with one answered request, and a clock that tests turn."""

    def __init__(
        self, stage: Stage, *, idle: float = 0.0, has_prices: bool = True, model: ModelRef = BIG
    ) -> None:
        self.now_s = 1_000.0
        self.counted = 14_000
        self.waits = Waits()
        self.provider = ScriptedProvider(self.answer)
        self.models = PricedModels(has_prices=has_prices)
        self.runtime: AgentRuntime = stage.runtime(
            self.provider,
            model=model,
            models=self.models,
            sleep=self.waits.sleep,
            compaction=CompactionSettings(target=0.05, idle_compaction=idle),
        )
        self.runtime.services.wall_clock = lambda: self.now_s
        talk(self.runtime.conversation.log, 13)

    def answer(self, request: ModelRequest) -> Reply:
        text = "Fine." if request.purpose == "turn" else ANSWER
        usage = Usage(input=self.counted, output=10, total_tokens=self.counted + 10)
        return Reply(text=text, usage=usage)

    async def turn(self) -> list[CompactionFinished]:
        return of_kind(await collect(self.runtime.submit("go on")), CompactionFinished)

    async def pause(self) -> None:
        """Until what is done in the pause is done."""
        task = self.runtime._pause._task
        if task is not None:
            await task
            if (asked := self.runtime._background._asked) is not None:
                await asked.task

    @property
    def questions(self) -> list[ModelRequest]:
        """The requests that ask what stays, without those for additions to an answer."""
        requests = self.provider.requests
        return [one for one in requests if "Answer in two parts." in one.messages[-1].text]

    @property
    def asked(self) -> int:
        return len(self.questions)

    @property
    def cache(self) -> str:
        return cache_text(cache_state(self.runtime.conversation))


async def test_the_cache_grows_cold(stage: Stage):
    scene = Pausing(stage)
    assert scene.cache == "", "nothing was asked yet"
    await scene.turn()
    assert scene.cache == "cache warm ~5m"
    scene.now_s += 61
    assert scene.cache == "cache warm ~4m"
    scene.now_s += 4 * 60
    assert scene.cache == "cache cold"
    await scene.turn()
    assert scene.cache == "cache warm ~5m", "each request uses it again"


async def test_between_the_least_and_the_most_nobody_knows(stage: Stage):
    scene = Pausing(stage, model=ModelRef("openai/gpt-4o"))
    await scene.turn()
    scene.now_s += 600
    assert scene.cache == "cache may be cold"
    assert scene.runtime.cold_price() is None
    scene.now_s += 3_600
    assert scene.cache == "cache cold"


def test_what_a_cold_cache_costs_is_one_sentence():
    assert ColdPrice(0.608, 0.07).sentence == (
        "The cache is cold: the next message costs about $0.61 whole, $0.07 made small (/compact)."
    )
    assert ColdPrice(0.608, None).sentence == (
        "The cache is cold: the next message costs about $0.61."
    )


async def test_a_provider_that_says_nothing_has_no_clock(stage: Stage):
    scene = Pausing(stage, model=ModelRef("deepseek/deepseek-chat"))
    await scene.turn()
    assert scene.cache == ""


async def test_a_cold_cache_has_a_price_and_a_warm_one_none(stage: Stage):
    scene = Pausing(stage)
    await scene.turn()
    assert scene.runtime.cold_price() is None
    scene.now_s += 301
    used, left = scene.runtime.conversation.usage.used, scene.runtime.conversation.limits.target
    small = (used * 3.0 + 2_500 * 20.0 + left * 37.5) / 1_000_000
    price = scene.runtime.cold_price()
    assert price is not None
    assert (price.whole_usd, price.small_usd) == pytest.approx((used * 37.5 / 1_000_000, small))


async def test_compact_asks_the_cheap_model_once_nothing_is_cached(stage: Stage):
    scene = Pausing(stage)
    await scene.turn()
    scene.now_s += 301
    await collect(scene.runtime.compact())
    assert [request.model for request in scene.questions] == [CHEAP]


async def test_while_it_is_cached_compact_asks_the_conversation_s_own(stage: Stage):
    scene = Pausing(stage)
    await scene.turn()
    await collect(scene.runtime.compact())
    assert [request.model for request in scene.questions] == [BIG]


async def test_without_a_price_nothing_is_said(stage: Stage):
    scene = Pausing(stage, has_prices=False, idle=5.0)
    await scene.turn()
    await scene.pause()
    scene.now_s += 301
    assert scene.runtime.cold_price() is None
    assert not scene.asked


async def test_what_costs_little_is_not_said(stage: Stage):
    scene = Pausing(stage)
    await scene.turn()
    scene.now_s += 301
    conversation = scene.runtime.conversation
    conversation.model_info = replace(conversation.model_info, cache_write_price=1.0)
    assert scene.runtime.cold_price() is None


async def test_in_a_pause_the_model_is_asked_once_and_the_answer_is_used_when_it_is_cold(
    stage: Stage,
):
    scene = Pausing(stage, idle=0.5)
    await scene.turn()
    await scene.pause()
    assert scene.waits.delays_s == [300 - 45]
    assert scene.asked == 1
    assert not any(
        isinstance(entry, CompactionEntry) for entry in scene.runtime.conversation.log.entries
    ), "nothing is written in a pause"
    scene.now_s += 301
    assert (price := scene.runtime.cold_price()) is not None
    left = scene.runtime.conversation.limits.target
    assert price.small_usd == pytest.approx(left * 37.5 / 1_000_000), "only what is left is paid"
    (done,) = await scene.turn()
    assert done.note.startswith("The model chose what to keep in the pause")
    assert scene.asked == 1
    await undo_compaction(scene.runtime)
    assert scene.runtime.conversation.usage.used > 13_000


async def test_the_question_in_a_pause_keeps_the_cache_warm(stage: Stage):
    scene = Pausing(stage, idle=0.5)
    await scene.turn()
    scene.now_s += 255
    await scene.pause()
    scene.now_s += 60
    assert scene.cache == "cache warm ~4m"
    assert not await scene.turn(), "who is back in time pays little for all of it"


@pytest.mark.parametrize("idle", [0.0, 0.05])
async def test_it_is_not_asked_in_a_pause_when_that_is_off_or_too_dear(stage: Stage, idle: float):
    scene = Pausing(stage, idle=idle)
    await scene.turn()
    await scene.pause()
    assert not scene.asked


async def test_after_a_sleep_of_the_machine_it_is_too_late_to_ask(stage: Stage):
    scene = Pausing(stage, idle=0.5)
    await scene.turn()
    scene.now_s += 3_600
    await scene.pause()
    assert not scene.asked


async def test_another_session_is_not_asked_about_in_the_pause_of_the_first(stage: Stage):
    scene = Pausing(stage, idle=0.5)
    gate = asyncio.Event()

    async def until_told(_delay_s: float) -> None:
        await gate.wait()

    scene.runtime.services.sleep = until_told
    await scene.turn()
    await scene.runtime.sessions.start_new()
    gate.set()
    await scene.pause()
    assert not scene.asked


async def test_an_answer_from_long_ago_is_asked_for_again(stage: Stage):
    scene = Pausing(stage, idle=0.5)
    await scene.turn()
    await scene.pause()
    talk(scene.runtime.conversation.log, 8)
    scene.counted = 22_000
    await scene.turn()
    await scene.pause()
    assert scene.asked == 2


async def test_what_runs_again_ends_the_pause(stage: Stage):
    scene = Pausing(stage, idle=0.5)
    scene.waits.is_endless = True
    await scene.turn()
    waiting = scene.runtime._pause._task
    assert waiting is not None
    await scene.turn()
    assert waiting.cancelled()
    await scene.runtime.aclose()
    assert not scene.asked


async def test_in_a_large_window_it_is_said_once_why_it_is_not_filled(stage: Stage):
    told: list[str] = []

    def is_first_time(name: str) -> bool:
        told.append(name)
        return told.count(name) == 1

    scene = Pausing(stage)
    scene.models.window = 1_000_000
    conversation = scene.runtime.conversation
    conversation.model_info = scene.models.info(BIG)
    settings = CompactionSettings(trigger_tokens=10_000, target=0.4, background=False)
    scene.runtime.use_settings(
        scene.runtime.services.settings.model_copy(update={"compaction": settings})
    )
    scene.runtime.services.is_first_time = is_first_time
    events = await collect(scene.runtime.submit("go on"))
    only(events, CompactionFinished)
    said = [event.text for event in of_kind(events, Notice)]
    assert [text for text in said if "compaction.trigger_tokens" in text] == [
        "Compacted at 10,000 of 1,000,000 tokens: a larger context costs more with each request. "
        "compaction.trigger_tokens in /settings changes that."
    ]
    talk(scene.runtime.conversation.log, 13)
    again = await collect(scene.runtime.submit("go on"))
    only(again, CompactionFinished)
    assert not [e for e in of_kind(again, Notice) if "trigger_tokens" in e.text]


class Limited(Pausing):
    """The same; the next request meets a limit, and sleeping turns the clock."""

    def __init__(self, stage: Stage, wait_s: float, *, helps: bool = True) -> None:
        super().__init__(stage)
        self.left = [ProviderError("rate_limit", "Too fast.", retry_after_s=wait_s)]
        self.helps = helps
        services = self.runtime.services
        services.sleep = self.sleep
        services.settings = services.settings.model_copy(update={"limit_wait_h": 12.0})

    async def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s

    def answer(self, request: ModelRequest) -> Reply:
        if request.purpose == "summary" and not self.helps:
            return Reply(error=ProviderError("auth", "No."))
        if request.purpose == "turn" and self.provider.requests[1:] and self.left:
            return Reply(error=self.left.pop())
        return super().answer(request)


async def test_after_a_wait_that_outlasts_the_cache_the_context_is_compacted_first(stage: Stage):
    scene = Limited(stage, 3_600.0)
    await scene.turn()
    (done,) = await scene.turn()
    assert done.note.startswith("The cache went cold during the wait.")
    summary, turn = scene.provider.requests[-2:]
    assert (summary.purpose, summary.model, turn.purpose) == ("summary", CHEAP, "turn")


async def test_after_a_wait_that_the_cache_outlasts_the_context_stays(stage: Stage):
    scene = Limited(stage, 120.0)
    await scene.turn()
    assert not await scene.turn()
    assert not scene.asked


async def test_after_a_wait_nothing_is_compacted_if_the_model_does_not_help(stage: Stage):
    scene = Limited(stage, 3_600.0, helps=False)
    await scene.turn()
    events = await collect(scene.runtime.submit("go on"))
    assert "the model did not answer" in only(events, CompactionFailed).message
    assert only(events, TurnFinished).outcome == "done"
    assert not of_kind(events, CompactionFinished)
