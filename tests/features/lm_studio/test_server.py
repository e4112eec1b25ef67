"""What LM Studio tells of its models."""

from typing import Any

import pytest

from agent_tui.providers.servers.models import UNLOADED_WINDOW
from tests.support.model_servers import LM_STUDIO, LM_STUDIO_V0, find_server
from tests.support.openai_server import OpenAiServer


@pytest.mark.parametrize("pages", [LM_STUDIO, LM_STUDIO_V0], ids=["v1", "v0"])
def test_lm_studio_tells_states_and_which_models_were_trained_for_tools(
    server: OpenAiServer, pages: dict[str, Any]
) -> None:
    server.pages.update(pages)
    found = find_server(server, "LM Studio")
    loaded, idle = found.list_models()
    assert [loaded.ref.name, idle.ref.name] == ["openai/openai/gpt-oss-20b", "openai/gemma-3-4b"]
    assert [loaded.state, idle.state] == ["loaded", "not loaded"]
    assert loaded.info.window == (8_000 if pages is LM_STUDIO else 16_000)
    assert (idle.info.window, idle.info.source) == (UNLOADED_WINDOW, "guess")
    assert [loaded.info.tool_style, idle.info.tool_style] == ["native", "text"]
    assert [loaded.info.sees_images, idle.info.sees_images] == [False, True]
    assert loaded.info.takes_schema
