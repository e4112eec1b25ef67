"""What the person reads when a model server is not there, not ready, or has no such model."""

import asyncio
import socket
from contextlib import aclosing

import pytest

from agent_tui.features.litellm.protocol import Fault
from agent_tui.messages import UserMessage
from agent_tui.providers.base import Chunk, ModelRef, ModelRequest, ProviderError, TextChunk
from agent_tui.providers.faults.classify import provider_error
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.servers.words import LOADING_RETRY_S
from tests.support.model_servers import LOADING, listening, say_nothing
from tests.support.openai_script import Failure, NoHeaders, Reply
from tests.support.openai_server import OpenAiServer

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def fails(
    host: ProviderHost, base_url: str, name: str = "openai/qwen3:8b"
) -> tuple[ProviderError, list[Chunk]]:
    """How a request to a server fails, and what came before."""
    request = ModelRequest(ModelRef(name, base_url), "", (UserMessage(content="hello"),))
    chunks: list[Chunk] = []

    async def ask() -> None:
        async with aclosing(host.stream(request)) as stream:
            async for chunk in stream:
                chunks.append(chunk)

    with pytest.raises(ProviderError) as raised:
        await ask()
    return raised.value, chunks


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


async def test_a_server_that_is_gone_is_named_with_its_address(host: ProviderHost) -> None:
    base_url = f"http://127.0.0.1:{free_port()}/v1"
    error, _ = await fails(host, base_url)
    assert error.kind == "network"
    assert base_url in error.message
    assert error.message.startswith("Cannot reach the server at ")
    assert "(qwen3:8b)" in error.message
    assert "/model" in error.hint


@pytest.mark.parametrize(
    ("port", "title", "command"),
    [
        (11434, "Ollama at ", "ollama serve"),
        (1234, "LM Studio at ", "lms server start"),
        (8080, "llama.cpp at ", "llama-server"),
        (8000, "vLLM at ", "vllm serve"),
        (4321, "the server at ", "is running"),
    ],
)
async def test_what_starts_the_usual_server_is_said(port: int, title: str, command: str) -> None:
    model = ModelRef("openai/x", f"http://127.0.0.1:{port}/v1")
    fault = Fault("APIConnectionError", "Connection refused", causes=["ConnectError"])
    error = provider_error(fault, model)
    assert error.message.startswith(f"Cannot reach {title}{model.base_url}")
    assert command in error.hint
    with_login = ModelRef("openai/x", f"http://me:hunter2@127.0.0.1:{port}/v1")
    assert provider_error(fault, with_login).message == error.message
    elsewhere = provider_error(fault, ModelRef("openai/x", f"http://192.168.0.9:{port}/v1"))
    assert elsewhere.message.startswith("Cannot reach the server at ")
    assert "`" not in elsewhere.hint


async def test_a_server_that_takes_the_request_and_keeps_silent_is_given_up(
    impatient_host: ProviderHost,
) -> None:
    with listening(say_nothing) as port:
        error, _ = await fails(impatient_host, f"http://127.0.0.1:{port}/v1")
    assert error.kind == "timeout"
    assert "may be loading" in error.hint
    assert "loopback_idle_timeout_s" in error.hint


async def test_a_server_that_never_takes_the_connection_up_is_given_up(
    impatient_host: ProviderHost,
) -> None:
    with listening(None) as port:
        error, _ = await fails(impatient_host, f"http://127.0.0.1:{port}/v1")
    assert error.kind == "timeout"
    assert str(port) in error.message


async def test_a_server_that_loads_for_long_is_waited_for(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="Loaded. ", ending="hold"))
    model = ModelRef("openai/qwen3:8b", server.base_url)
    request = ModelRequest(model, "", (UserMessage(content="hello"),))
    async with aclosing(host.stream(request)) as stream:
        first = await anext(stream)
        server.release()
        rest = [chunk async for chunk in stream]
    assert isinstance(first, TextChunk)
    assert rest


async def test_a_server_that_dies_in_the_middle_is_named(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="The sky is ", ending="reset"))
    error, chunks = await fails(host, server.base_url)
    assert error.kind == "interrupted"
    assert "mid-reply (qwen3:8b)" in error.message
    assert "is running" in error.hint
    assert chunks


async def test_a_cut_reply_is_not_told_in_the_words_of_a_library() -> None:
    model = ModelRef("openai/qwen3:8b", "http://127.0.0.1:11434/v1")
    text = "Response payload is not completed: <TransferEncodingError: 400, message='Not enough'>"
    fault = Fault("MidStreamFallbackError", text, 500, causes=["TransferEncodingError"])
    error = provider_error(fault, model, is_mid_stream=True)
    assert error.message == "Connection lost mid-reply (qwen3:8b)."
    assert error.hint == "Check that the server is running, then try again."


async def test_a_server_that_loads_its_model_is_asked_again_after_a_while(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(LOADING)
    error, _ = await fails(host, server.base_url)
    assert (error.kind, error.is_retryable) == ("overloaded", True)
    assert error.retry_after_s == LOADING_RETRY_S
    assert "is still loading qwen3:8b" in error.message


OLLAMA_404 = (
    '{"error":{"message":"model \\"qwen3:8b\\" not found, try pulling it first",'
    '"type":"api_error","param":null,"code":null}}'
)
STUDIO_400 = (
    '{"error":{"message":"No models loaded. Please load a model in the developer page or use '
    'the `lms load` command.","type":"invalid_request_error","param":"model","code":null}}'
)
VLLM_404 = (
    '{"object":"error","message":"The model `qwen3:8b` does not exist.",'
    '"type":"NotFoundError","param":null,"code":404}'
)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (Failure(404, OLLAMA_404), "`ollama pull qwen3:8b`"),
        (Failure(400, STUDIO_400), "`lms load qwen3:8b`"),
        (Failure(404, VLLM_404), "Check its name"),
    ],
    ids=["Ollama", "LM Studio", "vLLM"],
)
async def test_a_model_that_the_server_does_not_have_comes_with_the_way_to_get_it(
    host: ProviderHost, server: OpenAiServer, answer: Failure, hint: str
) -> None:
    server.play(answer, answer)
    error, _ = await fails(host, server.base_url)
    assert (error.kind, error.is_retryable) == ("not_found", False)
    assert server.base_url in error.message
    assert hint in error.hint
    assert "/model" in error.hint


async def test_a_request_to_a_server_that_hangs_can_be_stopped(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(NoHeaders())
    asking = asyncio.create_task(fails(host, server.base_url))
    assert await asyncio.to_thread(server.wait_for_requests, 1)
    asking.cancel()
    assert await asyncio.to_thread(server.wait_for_disconnects)
    with pytest.raises(asyncio.CancelledError):
        await asking
