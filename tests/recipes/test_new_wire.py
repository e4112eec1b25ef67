"""New wire: a feature that brings a `Wire`."""

import json

import pytest

from tests.recipes.program_copy import ProgramCopy

MODULE = '''\
"""A protocol in which everything is said twice."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from agent_tui.messages import JsonObject, Message, UserMessage
from agent_tui.providers.base import Chunk, FinishChunk, ModelRef, TextChunk
from agent_tui.providers.wires.base import Attempt, Fit, Link, Wire


def _fit(model: ModelRef) -> Fit:
    return "yes" if model.provider == "echo" else "no"


def _write(_system: str, messages: Sequence[Message], _model: ModelRef) -> list[JsonObject]:
    return [{"said": one.text} for one in messages if isinstance(one, UserMessage)]


async def _stream(attempt: Attempt, _link: Link) -> AsyncGenerator[Chunk, None]:
    said = attempt.build_request().messages[-1]["said"]
    yield TextChunk(f"{said} {said}")
    yield FinishChunk("stop")


ECHO: Final = Wire("echo", _fit, _write, _stream)
'''
FEATURE = '''\
"""A protocol in which everything is said twice."""

from agent_tui.feature import Feature

FEATURE = Feature("echo", wires=("agent_tui.features.echo.wire:ECHO",))
'''
FOLDER = "agent_tui/features/echo"


@pytest.fixture
def copy(tmp_path) -> ProgramCopy:
    made = ProgramCopy(tmp_path, "New wire")
    made.add_file(f"{FOLDER}/__init__.py", '"""An echo."""\n')
    made.add_file(f"{FOLDER}/feature.py", FEATURE)
    made.add_file(f"{FOLDER}/wire.py", MODULE)
    return made


@pytest.mark.thorough
def test_a_script_speaks_to_its_models(copy):
    model = ("-m", "echo/any", "--base-url", "http://127.0.0.1:1/v1")
    done = copy.run(*model, "-p", "hello", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"] == "hello hello"
