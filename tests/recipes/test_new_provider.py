"""New provider: a feature that brings a `ModelProvider`."""

import json

import pytest

from tests.recipes.program_copy import ProgramCopy

FEATURE = '''\
"""A provider that says back what it is told."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "parrot", brings={"agent_tui.providers": ("agent_tui.features.parrot.provider:PROVIDER",)}
)
'''
MODULE = '''\
"""A provider that says back what it is told."""

from collections.abc import AsyncGenerator

from agent_tui.messages import UserMessage
from agent_tui.providers.base import Chunk, FinishChunk, ModelInfo, ModelRequest, TextChunk
from agent_tui.providers.registry import ModelProvider

_POLLY = ModelInfo("parrot/polly", window=50_000, max_output=5_000, source="table")


async def _reply(request: ModelRequest) -> AsyncGenerator[Chunk, None]:
    """The message, with who says it."""
    said = [one.text for one in request.messages if isinstance(one, UserMessage)]
    yield TextChunk(f"Polly says {said[-1]}")
    yield FinishChunk("stop")


PROVIDER = ModelProvider("parrot", (_POLLY,), _reply, via="in the cage")
'''
FOLDER = "agent_tui/features/parrot"
MODEL = ("-m", "parrot/polly")


@pytest.fixture
def copy(tmp_path) -> ProgramCopy:
    made = ProgramCopy(tmp_path, "New provider")
    made.add_file(f"{FOLDER}/__init__.py", '"""A parrot."""\n')
    made.add_file(f"{FOLDER}/feature.py", FEATURE)
    made.add_file(f"{FOLDER}/provider.py", MODULE)
    return made


@pytest.mark.thorough
def test_a_script_asks_its_model(copy):
    done = copy.run(*MODEL, "-p", "hello", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"] == "Polly says hello"


@pytest.mark.thorough
@pytest.mark.parametrize("front", [(), ("--plain",)], ids=["screen", "plain"])
def test_its_model_is_offered_and_answers_in_a_conversation(copy, front):
    with copy.typing(*front, *MODEL) as person:
        person.wait_for("parrot/polly")
        person.send("hello\r")
        person.wait_for("Polly says hello")
        asked_at = len(person.text)
        person.send("/model\r")
        person.wait_for("in the cage", since=asked_at)


@pytest.mark.thorough
def test_a_shell_lists_its_model_with_its_window_and_a_wrong_name_is_refused(copy):
    listed = copy.run("models", "--json").stdout
    assert "parrot/polly" in listed
    assert "in the cage" in listed
    wrong = copy.run("-m", "parrot/molly", "-p", "hello")
    assert wrong.returncode == 2
