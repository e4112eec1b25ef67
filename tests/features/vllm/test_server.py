"""What a vLLM server tells of its models."""

from tests.support.model_servers import VLLM, find_server
from tests.support.openai_server import OpenAiServer


def test_vllm_tells_its_window(server: OpenAiServer) -> None:
    server.pages.update(VLLM)
    (model,) = find_server(server, "vLLM").list_models()
    assert (model.info.window, model.info.source, model.state) == (65_536, "server", "ready")
    assert model.info.takes_schema
