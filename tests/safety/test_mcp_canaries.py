"""A project's MCP servers: nothing of them is read or started before trust and a yes."""

import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from agent_tui.cli.arguments import parse_arguments
from agent_tui.cli.compose import Program, compose
from agent_tui.cli.folders import load_trust
from tests.support.canary_folder import CanaryFolder
from tests.support.openai_server import OpenAiServer


@pytest.fixture
def elsewhere() -> Iterator[OpenAiServer]:
    """A server that nothing may be sent to."""
    with OpenAiServer() as running:
        yield running
    assert running.requests == []


@pytest.fixture
def canary(tmp_path: Path, elsewhere: OpenAiServer, monkeypatch: pytest.MonkeyPatch):
    made = CanaryFolder(tmp_path, elsewhere.base_url)
    far = {"url": elsewhere.base_url, "headers": {"X": "${TEST_KEY}"}}
    (made.path / "src" / ".mcp.json").write_text(json.dumps({"mcpServers": {"far": far}}))
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_TUI_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", made.search_path)
    monkeypatch.chdir(made.path / "src")
    return made


@pytest.fixture
async def program(canary: CanaryFolder) -> AsyncGenerator[Program]:
    made = compose(parse_arguments(()), is_interactive=False)
    yield made
    await made.aclose()


async def test_in_a_folder_that_is_not_trusted_there_are_no_servers(canary, program):
    told: list[str] = []
    assert await program.servers.take_up(program.runtime.conversation.cwd, told.append) is False
    assert (program.servers.servers, told, canary.fired) == ((), [], [])
    withheld = [file.path for file in program.runtime.conversation.withheld_files]
    assert {canary.path / ".mcp.json", canary.path / "src" / ".mcp.json"} <= set(withheld)


async def test_trust_alone_starts_nothing_and_one_line_says_so(canary, program):
    load_trust().decide(canary.path, "trusted")
    told: list[str] = []
    for _ in range(2):
        assert await program.servers.take_up(program.runtime.conversation.cwd, told.append) is False
    assert [server.state for server in program.servers.servers] == ["not asked", "not asked"]
    assert [line.partition(" is not started")[0] for line in told] == [
        "The project's MCP server far",
        "The project's MCP server x",
    ]
    assert canary.fired == []


async def test_a_yes_starts_just_that_one_and_trust_taken_back_ends_it(canary, program):
    load_trust().decide(canary.path, "trusted")
    servers, cwd = program.servers, program.runtime.conversation.cwd
    await servers.reconcile(cwd)
    await servers.answer(servers.project_server("x"), is_allowed=True)
    told: list[str] = []
    await servers.take_up(cwd, told.append)
    assert canary.fired == ["mcp"]  # touch is no server, but it was started
    assert "MCP server x: it exited with code 0" in "".join(told)
    load_trust().decide(canary.path, "not trusted")
    await servers.take_up(cwd, told.append)
    assert servers.servers == ()
