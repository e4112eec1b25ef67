"""What Ollama tells of its models, and where it is looked for."""

from typing import Any

import pytest

from agent_tui.config import Settings
from agent_tui.features.ollama.server import find_root
from agent_tui.providers.base import ModelRef
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.servers.kinds import usual_addresses
from agent_tui.providers.servers.models import UNLOADED_WINDOW
from agent_tui.providers.table import ModelTable
from tests.support.model_servers import OLLAMA, find_server, infos
from tests.support.openai_server import OpenAiServer
from tests.support.patience import PATIENCE_S
from tests.support.rows import each_row


def test_ollama_tells_states_sizes_and_what_its_models_can_do(server: OpenAiServer) -> None:
    server.pages.update(OLLAMA)
    found = find_server(server, "Ollama")
    loaded, idle = found.list_models()
    assert [loaded.state, idle.state] == ["loaded", "not loaded"]
    assert [loaded.size_bytes, idle.size_bytes] == [5_225_388_164, 637_700_138]
    assert (loaded.info.window, loaded.info.source) == (32_768, "server")
    assert (idle.info.window, idle.info.source) == (UNLOADED_WINDOW, "guess")
    assert (loaded.info.tool_style, loaded.info.thinks) == ("native", True)
    assert loaded.info.takes_schema
    assert not loaded.info.takes_grammar


@pytest.mark.parametrize(
    ("details", "style"),
    [
        ({"capabilities": ["completion"]}, "text"),
        ({"capabilities": ["completion", "tools"]}, "native"),
        ({"template": "{{ if .Tools }}x{{ end }}"}, "native"),
        ({"template": "{{ .Prompt }}"}, "text"),
        (None, "native"),
    ],
)
def test_ollama_models_without_tools_get_them_in_the_prompt(
    server: OpenAiServer, details: dict[str, Any] | None, style: str
) -> None:
    server.pages.update(OLLAMA)
    server.pages["/api/show"] = details
    assert {info.tool_style for info in infos(find_server(server, "Ollama")).values()} == {style}


@pytest.mark.parametrize(
    ("details", "window", "source"),
    [
        ({"parameters": "stop x\nnum_ctx 16384"}, 16_384, "server"),
        ({"model_info": {"tiny.context_length": 2_048}}, 2_048, "guess"),
        ({"model_info": {"tiny.context_length": 2_000_000}}, UNLOADED_WINDOW, "guess"),
        ({"parameters": "num_ctx " + "9" * 50}, UNLOADED_WINDOW, "guess"),
    ],
)
def test_the_window_of_a_model_that_ollama_has_yet_to_load_is_its_own_or_assumed(
    server: OpenAiServer, details: dict[str, Any], window: int, source: str
) -> None:
    server.pages.update(OLLAMA)
    server.pages["/api/show"] = details
    info = infos(find_server(server, "Ollama"))["tiny:latest"]
    assert (info.window, info.source) == (window, source)


async def test_a_window_that_was_assumed_is_asked_for_again(server: OpenAiServer) -> None:
    server.pages.update(OLLAMA)
    ref = ModelRef("openai/tiny:latest", server.base_url)
    asking = ModelCatalog(
        Settings(), {}, table=ModelTable({}), server_ports={}, patience_s=PATIENCE_S
    )
    assert (await asking.learn(ref)).window == UNLOADED_WINDOW
    running = [{"name": "tiny:latest", "context_length": 8_192}]
    server.pages["/api/ps"] = {"models": running}
    known = await asking.learn(ref)
    assert (known.window, known.source) == (8_192, "server")
    asked = len(server.requests)
    assert await asking.learn(ref) == known
    assert len(server.requests) == asked


@each_row(
    ("text", "root"),
    [
        ("", ""),
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:11500", "http://127.0.0.1:11500"),
        (":11500", "http://127.0.0.1:11500"),
        ("[::1]:11500", "http://[::1]:11500"),
        ("[::]:11500", "http://127.0.0.1:11500"),
        ("http://box:11500/", "http://box:11500"),
        ("http://box", "http://box:80"),
        ("https://box.example", "https://box.example:443"),
        (' "box:1" ', "http://box:1"),
        ("box:not-a-port", ""),
        ("ftp://box", ""),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(text: str, root: str) -> None:
    assert find_root({"OLLAMA_HOST": text}) == root


def test_ollama_host_takes_the_place_of_the_usual_port() -> None:
    roots = {a.kind: a.root for a in usual_addresses({"OLLAMA_HOST": "0.0.0.0:11500"})}
    assert roots["Ollama"] == "http://127.0.0.1:11500"
    assert roots["vLLM"] == "http://127.0.0.1:8000"
    assert usual_addresses({"OLLAMA_HOST": ":1"}, {}) == ()
