"""What an empty conversation proposes."""

import pytest

from agent_tui.commands.core.known_models import first_steps, trial_note
from agent_tui.commands.core.registry import load_commands
from agent_tui.providers.base import ModelInfo

LARGE = ModelInfo("anthropic/claude-sonnet-5", 200_000, 64_000)
TINY = ModelInfo("local/smollm2", 8_192, 2_048, is_tiny=True)
DEMOS = [("/tour", "shows five steps")]


def test_a_tiny_model_is_offered_what_it_can_do_and_said_to_be_for_trying():
    assert trial_note(TINY).startswith("local/smollm2 is only for trying the program")
    assert [step for step, _ in first_steps(TINY, DEMOS)] == [
        "/tour",
        "What does @FILE say?",
        "/model",
    ]
    assert first_steps(TINY, ())[0][0] == "What does @FILE say?"


def test_a_model_for_work_is_asked_about_the_project():
    assert trial_note(LARGE) == ""
    assert first_steps(LARGE, DEMOS)[0][0] == "What does this project do?"


@pytest.mark.parametrize("info", [TINY, LARGE])
def test_every_command_that_is_proposed_exists(info: ModelInfo):
    commands = [step for step, _ in first_steps(info, DEMOS) if step.startswith("/")]
    assert commands
    assert set(commands) <= {f"/{name}" for name in load_commands().own_names}
