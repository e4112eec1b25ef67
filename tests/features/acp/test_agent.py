import io
import sys
from pathlib import Path
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, RequestError
from acp.schema import AuthCapabilities, ClientCapabilities

from agent_tui.errors import AgentTuiError
from agent_tui.features.acp.agent import AcpAgent
from agent_tui.features.acp.command import run_command
from agent_tui.sessions.store import SessionStore


async def refuse(_cwd: Path, _servers: Any) -> Any:
    raise AgentTuiError("There is no such folder.")


def agent(tmp_path: Path) -> AcpAgent:
    return AcpAgent(refuse, SessionStore(tmp_path), {"openai": "Store an OpenAI API key"})


async def test_signing_in_is_offered_to_editors_that_have_a_terminal(tmp_path: Path):
    with_terminal = ClientCapabilities(auth=AuthCapabilities(terminal=True))
    answer = await agent(tmp_path).initialize(PROTOCOL_VERSION, with_terminal)
    (method,) = answer.auth_methods or []
    told = method.model_dump(by_alias=True, exclude_none=True)
    assert told["type"] == "terminal"
    assert told["args"] == ["--login", "openai"]
    without = await agent(tmp_path).initialize(PROTOCOL_VERSION, ClientCapabilities())
    assert not without.auth_methods


async def test_a_refusal_does_not_ask_to_sign_in(tmp_path: Path):
    with pytest.raises(RequestError, match="no such folder") as raised:
        await agent(tmp_path).new_session(cwd=str(tmp_path / "none"))
    assert raised.value.code != RequestError.auth_required().code


def test_what_is_offered_signs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.StringIO("sk-kept-0123456789\n"))
    assert run_command(["--login", "openai"]) == 0
    kept = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert any("sk-kept-0123456789" in each.read_text() for each in kept)
