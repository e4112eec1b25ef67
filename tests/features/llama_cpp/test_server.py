"""What a server of llama.cpp tells of its models."""

from typing import Any

import pytest

from agent_tui.providers.base import ModelRef
from tests.support.model_servers import LLAMA_CPP, find_server, infos
from tests.support.openai_server import OpenAiServer


def test_llama_cpp_tells_its_window_and_whether_its_template_takes_tools(
    server: OpenAiServer,
) -> None:
    server.pages.update(LLAMA_CPP)
    found = find_server(server, "llama.cpp")
    (model,) = found.list_models()
    assert model.ref == ModelRef("openai//models/small.gguf", server.base_url)
    assert (model.state, model.via) == ("loaded", f"llama.cpp at 127.0.0.1:{server.port}")
    assert (model.info.window, model.info.max_output) == (8_192, 2_048)
    assert (model.info.source, model.info.tool_style) == ("server", "text")
    assert model.info.takes_schema
    assert model.info.takes_grammar
    assert model.info.writes_calls
    assert model.info.sees_images


@pytest.mark.parametrize(
    ("props", "style"),
    [
        ({"chat_template_caps": {"supports_tools": True}, "chat_template": "x"}, "native"),
        ({"chat_template": "{% if tools %}{{ tools }}{% endif %}"}, "native"),
        ({"chat_template": "{{ messages }}"}, "text"),
        ({}, "native"),
    ],
)
def test_an_older_llama_cpp_is_judged_by_its_template(
    server: OpenAiServer, props: dict[str, Any], style: str
) -> None:
    server.pages.update(LLAMA_CPP)
    server.pages["/props"] = {"default_generation_settings": {"n_ctx": 512}, **props}
    (info,) = infos(find_server(server, "llama.cpp")).values()
    assert info.tool_style == style


def test_a_llama_cpp_with_several_models_tells_of_those_that_are_loaded(
    server: OpenAiServer,
) -> None:
    listed = [
        {"id": "big", "owned_by": "llamacpp", "status": {"value": "loaded"}},
        {"id": "other", "owned_by": "llamacpp", "status": {"value": "unloaded"}},
    ]
    server.pages["/props"] = {"default_generation_settings": {"n_ctx": 0}, "role": "router"}
    server.pages["/v1/models"] = {"data": listed}
    server.pages["/props?model=big&autoload=false"] = LLAMA_CPP["/props"]
    models = {m.id: m for m in find_server(server, "llama.cpp").models}
    assert (models["big"].window, models["big"].state) == (8_192, "loaded")
    assert (models["other"].window, models["other"].state) == (None, "not loaded")
