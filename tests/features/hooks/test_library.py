"""A program with the library runs no hooks, even those that its user allowed elsewhere."""

import json
from pathlib import Path

import pytest

from agent_tui import Agent
from agent_tui.cli.folders import load_trust
from agent_tui.config import Settings
from agent_tui.features.hooks.files import hook_sources
from tests.support.openai_server import OpenAiServer, Reply


async def test_the_library_runs_no_hooks_of_settings_or_of_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    work, marker = tmp_path / "work", tmp_path / "marker"
    (work / ".agent-tui").mkdir(parents=True)
    hook = {"type": "command", "command": f"touch {marker}"}
    events = {"UserPromptSubmit": [{"hooks": [hook]}]}
    (work / ".agent-tui" / "hooks.json").write_text(json.dumps({"hooks": events}))
    load_trust().decide(work, "trusted")
    files = hook_sources(Settings(), tmp_path / "config.toml", load_trust(), ())
    (found,) = files.find(work).hooks
    files.answer(found.spec, is_allowed=True)
    with OpenAiServer() as server:
        server.play(Reply(text="Hello."))
        async with Agent("some-model", base_url=server.base_url, cwd=work) as agent:
            assert await agent.ask("Hello?") == "Hello."
    assert not marker.exists()
