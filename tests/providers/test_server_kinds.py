"""Kinds of model servers: their order, and what is left of the search without one."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from agent_tui.providers.base import ModelRef
from agent_tui.providers.faults.classify import provider_error
from agent_tui.providers.faults.fault import Fault
from agent_tui.providers.servers import kinds, words
from agent_tui.providers.servers.kinds import ServerKind, own_kinds, usual_addresses
from tests.support.model_servers import LLAMA_CPP, OLLAMA, find_server, models_of
from tests.support.openai_server import OpenAiServer

UseKinds = Callable[[tuple[ServerKind, ...]], None]


@pytest.fixture
def use_kinds(monkeypatch: pytest.MonkeyPatch) -> UseKinds:
    """Makes these the kinds that features bring."""

    def use(chosen: tuple[ServerKind, ...]) -> None:
        for module in (kinds, words):
            monkeypatch.setattr(module, "own_kinds", lambda: chosen)

    return use


def test_each_kind_has_a_place_of_its_own() -> None:
    assert [kind.name for kind in own_kinds()] == ["Ollama", "LM Studio", "llama.cpp", "vLLM"]
    assert len({kind.rank for kind in own_kinds()}) == len(own_kinds())
    ports = [port for kind in own_kinds() for port in kind.ports]
    assert len({*ports}) == len(ports)


def test_the_api_that_others_imitate_is_tried_last(
    server: OpenAiServer, use_kinds: UseKinds
) -> None:
    both = {**OLLAMA, "/props": LLAMA_CPP["/props"], "/v1/models": {"data": [{"id": "qwen3:8b"}]}}
    server.pages.update(both)
    assert find_server(server, "vLLM").title == "llama.cpp"
    use_kinds(tuple(replace(kind, rank=-kind.rank) for kind in reversed(own_kinds())))
    assert find_server(server, "vLLM").title == "Ollama"


def test_without_a_kind_its_servers_are_as_any_other(
    server: OpenAiServer, use_kinds: UseKinds
) -> None:
    server.pages.update(OLLAMA)
    use_kinds(tuple(kind for kind in own_kinds() if kind.name != "Ollama"))
    assert {address.kind for address in usual_addresses({"OLLAMA_HOST": ":1"})} == {
        "LM Studio",
        "llama.cpp",
        "vLLM",
    }
    found = find_server(server, "vLLM")
    assert (found.title, [model.id for model in found.models]) == (
        "server",
        ["qwen3:8b", "tiny:latest"],
    )


def test_without_any_kind_a_server_is_still_reached_by_its_address(
    server: OpenAiServer, use_kinds: UseKinds
) -> None:
    server.pages.update(OLLAMA)
    use_kinds(())
    assert usual_addresses({}) == ()
    assert [model.window for model in models_of(server.base_url)] == [None, None]
    model = ModelRef("openai/x", "http://127.0.0.1:11434/v1")
    lost = provider_error(Fault("APIConnectionError", "refused", causes=["ConnectError"]), model)
    assert lost.message.startswith("Cannot reach the server at ")
    missing = provider_error(Fault("NotFoundError", "model not found, try pulling it", 404), model)
    assert "Check its name and base_url" in missing.hint
