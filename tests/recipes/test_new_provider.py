"""New provider: one file in ``providers/`` and one line in ``providers/registry.py``."""

import json

import pytest

from tests.recipes.program_copy import ProgramCopy

MODULE = '''\
"""A provider that says back what it is told."""

from collections.abc import AsyncGenerator

from agent_tui.messages import UserMessage
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelInfo,
    ModelRef,
    ModelRequest,
    TextChunk,
)

POLLY = ModelInfo("parrot/polly", window=50_000, max_output=5_000, source="table")


class ParrotProvider:
    """Says the newest message of the person once more."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """The message, with who says it."""
        said = [one.text for one in request.messages if isinstance(one, UserMessage)]
        yield TextChunk(f"Polly says {said[-1]}")
        yield FinishChunk("stop")

    async def warm(self, model: ModelRef) -> None:
        """Always ready."""

    async def aclose(self) -> None:
        """Nothing was started."""
'''
REGISTRY = "agent_tui/providers/registry.py"
IMPORT = "from agent_tui.providers.parrot import POLLY, ParrotProvider\n"
LINE = (
    '        "parrot": OwnProvider(lambda _environ: ParrotProvider(), (POLLY,), "in the cage"),\n'
)
MODEL = ("-m", "parrot/polly")


@pytest.fixture
def copy(tmp_path) -> ProgramCopy:
    made = ProgramCopy(tmp_path, "New provider")
    made.add_file("agent_tui/providers/parrot.py", MODULE)
    made.insert_before(REGISTRY, "from agent_tui.providers.scripted.demo import", IMPORT)
    made.insert_before(REGISTRY, '        "scripted": OwnProvider', LINE)
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
