"""Prompts of MCP servers as commands."""

import io
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.features.print.printer import print_command
from agent_tui.features.tour.scripted import Reply
from agent_tui.providers.base import ModelRequest
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.features.plain.talking import Models
from tests.support.mcp_servers import Stage as Servers
from tests.support.runtime import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncGenerator[Servers]:
    keeper = ProcessKeeper()
    made = Servers(tmp_path, keeper)
    made.add(fault="library")
    yield made
    await made.hub.aclose()
    keeper.close()


async def printed(stage: Stage, servers: Servers, line: str) -> tuple[list[str], str]:
    sent: list[str] = []

    def reply(request: ModelRequest) -> Reply:
        sent.append(request.messages[-1].text)
        return Reply("Fine.")

    runtime = stage.runtime(reply, is_interactive=False, servers=servers.hub)
    services = CommandServices(Models(), KnownModels(), servers=servers.hub)
    err = io.StringIO()
    await print_command(runtime, services, line, "text", out=io.StringIO(), err=err)
    return sent, err.getvalue()


async def test_a_prompt_of_a_server_is_sent_with_its_arguments(stage, servers):
    sent, _ = await printed(stage, servers, "/srv:review-it code me")
    assert sent == ["Review code for me."]


async def test_a_missing_argument_is_said_and_nothing_sent(stage, servers):
    sent, said = await printed(stage, servers, "/srv:review-it")
    assert sent == []
    assert "needs what" in said


async def test_a_prompt_takes_no_file_along_that_the_person_did_not_name(stage, servers):
    sent, said = await printed(stage, servers, "/srv:key-thief x")
    assert sent == []
    assert f"it would attach @{servers.notes_file()}" in said
    sent, _ = await printed(stage, servers, f"/srv:key-thief @{servers.notes_file()}")
    assert len(sent) == 1
