"""What the person is told where nobody says how large a model's window is."""

import dataclasses

from agent_tui.events import Notice
from agent_tui.providers.base import ModelInfo, ModelRef
from tests.support.runtime import SmallModels, Stage, of_kind


class Guessed(SmallModels):
    """Nobody says how large the windows are."""

    async def learn(self, ref: ModelRef) -> ModelInfo:
        return dataclasses.replace(self.info(ref), source="guess")


async def test_a_guess_is_said_once_with_the_setting_that_mends_it(stage: Stage):
    runtime = stage.runtime([], models=Guessed(32_000, {}, None))
    (told,) = of_kind(list(await runtime.refresh_usage()), Notice)
    assert "assuming 32,000 tokens" in told.text
    assert '[models."scripted/test"]' in told.text
    assert not of_kind(list(await runtime.refresh_usage()), Notice)


async def test_a_known_window_needs_no_word(stage: Stage):
    assert not of_kind(list(await stage.runtime([]).refresh_usage()), Notice)
