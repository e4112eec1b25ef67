"""When the next summary is begun while the work goes on, and when it is not."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.agent.compaction.background import BackgroundSummary
from agent_tui.compaction.curation.choosing import OnChoice
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.policy import Breaker
from agent_tui.compaction.request import CompactionRequest, ContextSizes
from agent_tui.config import CompactionSettings, Settings
from agent_tui.events import CompactionFinished
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelRef, ModelRequest
from agent_tui.providers.client import OnUsage
from agent_tui.tokens import ExactCounter
from tests.compaction.writer import GOOD, Models, Writer, client_of
from tests.support.compaction_ways import SUMMARY, Scene, Script, ahead_of, talk, written_ahead
from tests.support.runtime import Stage, collect, of_kind
from tests.support.talk import Talk


def near_the_threshold(stage: Stage, window: int = 39_200) -> Scene:
    """A conversation that will need a summary before long."""
    return Scene(stage, Script(Reply(text=SUMMARY)), window, background=True)


async def is_begun(scene: Scene) -> bool:
    """Whether a turn, which is not to compact anything, leaves a summary in the making."""
    assert not of_kind(await collect(scene.runtime.submit("go on")), CompactionFinished)
    return ahead_of(scene).begun_at_tokens > 0


async def test_a_summary_is_begun_when_one_will_be_needed_before_long(stage: Stage):
    assert await is_begun(near_the_threshold(stage))


def with_settings(**changes: object) -> Callable[[Scene], None]:
    def change(scene: Scene) -> None:
        present = scene.runtime.conversation.settings
        chosen = CompactionSettings.model_validate({**present.model_dump(), **changes})
        scene.runtime.use_settings(Settings(compaction=chosen))

    return change


def on_a_server_of_the_persons_own(scene: Scene) -> None:
    conversation = scene.runtime.conversation
    conversation.model_info = replace(conversation.model_info, source="server")


def after_too_many_failures(scene: Scene) -> None:
    breaker = Breaker()
    while not breaker.is_open:
        breaker = breaker.after_failure()
    scene.runtime.conversation.breaker = breaker


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(with_settings(background=False), id="it is switched off"),
        pytest.param(with_settings(auto=False), id="nothing is compacted automatically"),
        pytest.param(with_settings(strategy="hybrid"), id="another strategy writes no summary"),
        pytest.param(after_too_many_failures, id="automatic compaction has stopped"),
        pytest.param(on_a_server_of_the_persons_own, id="it would take time from the work"),
    ],
)
async def test_no_summary_is_begun_where(stage: Stage, change: Callable[[Scene], None]):
    scene = near_the_threshold(stage)
    change(scene)
    assert not await is_begun(scene)


async def test_no_summary_is_begun_while_there_is_plenty_of_room(stage: Stage):
    assert not await is_begun(near_the_threshold(stage, window=110_000))


async def test_a_summary_that_is_there_is_not_begun_again(stage: Stage):
    scene = near_the_threshold(stage)
    assert await is_begun(scene)
    written, begun_at = await written_ahead(scene), ahead_of(scene).begun_at_tokens
    assert written is not None
    scene.runtime.conversation.model_info = replace(
        scene.runtime.conversation.model_info, window=42_200
    )
    talk(scene.log, 2)
    assert await is_begun(scene)
    assert ahead_of(scene).begun_at_tokens == begun_at
    assert await written_ahead(scene) is written


async def test_where_none_was_needed_it_is_asked_again_only_when_more_was_said(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    scene = near_the_threshold(stage)
    asked: list[int] = []

    async def not_needed(
        _planner: CompactionPlanner,
        request: CompactionRequest,
        _on_usage: OnUsage,
        _on_choice: OnChoice,
    ) -> None:
        asked.append(request.sizes.used)

    monkeypatch.setattr(CompactionPlanner, "choose_ahead", not_needed)
    await is_begun(scene)
    assert await written_ahead(scene) is None
    await is_begun(scene)
    assert len(asked) == 1
    scene.runtime.conversation.model_info = replace(
        scene.runtime.conversation.model_info, window=42_200
    )
    talk(scene.log, 2)
    await is_begun(scene)
    assert len(asked) == 2


async def test_the_first_answer_is_used_while_additions_to_it_are_still_being_asked_for():
    counter = ExactCounter()
    talk = Talk()
    talk.user("Please mend the mill.")
    talk.tool("read", {"path": "a.py"}, "\n".join(f"value_{n} = {n}" for n in range(300)))
    talk.tool("write", {"path": "b.py", "content": "mill.turn()\n" * 9}, "Written.")
    for number in range(12):
        talk.reply(f"answer {number} of the mill " + "as it should be " * 250)
        talk.user(f"question {number} of the mill")

    def hang(_request: ModelRequest) -> str:
        writer.hangs = True
        is_asked_again.set()
        return "never sent"

    is_asked_again = asyncio.Event()
    notes = GOOD.replace("Run the tests.", "Finish b.py.")
    writer = Writer([f"<notes>\n{notes}\n</notes>\n<keep>\n#2 1-5\n</keep>", hang])
    background = BackgroundSummary(CompactionPlanner(client_of(writer), counter, Models()))
    request = CompactionRequest(
        path=talk.path,
        previous=None,
        model=ModelRef("scripted/one"),
        cwd=Path("/project"),
        settings=CompactionSettings(),
        sizes=ContextSizes(window=100_000, used=12_000, target=4_000),
    )
    usages: list[Usage] = []
    background.begin(request, usages.append)
    await is_asked_again.wait()
    assert background.is_made
    assert background.ahead is not None
    choice = await background.ahead()
    assert choice is not None
    assert "Build the parser." in choice.notes
    assert len(usages) == 1
    await background.aclose()
    assert writer.closed == 2, "the request for additions ended with it"
    assert not background.is_there
