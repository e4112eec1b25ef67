"""litellm's process: killed, closed, orphaned; and whom it and the program connect to."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from agent_tui.providers.base import ModelRef, ProviderError
from agent_tui.providers.host import ProviderHost
from tests.providers.requests import collect, failing, request_to, text_of
from tests.support.openai_server import (
    NoHeaders,
    OpenAiServer,
    Reply,
)
from tests.support.patience import PATIENCE_S
from tests.support.provider_process import LITELLMS, process_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.thorough
async def test_a_killed_process_is_replaced_once_when_nothing_had_come(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(NoHeaders(), Reply(text="second try"))
    task = asyncio.create_task(collect(host, request_to(server, name=LITELLMS)))
    assert await asyncio.to_thread(server.wait_for_requests, 1)
    first_pid = process_of(host).pid
    assert first_pid is not None
    os.kill(first_pid, signal.SIGKILL)
    assert text_of(await task) == "second try"
    assert process_of(host).pid != first_pid


async def test_a_process_killed_in_mid_stream_is_a_crash_and_the_next_request_works(
    host: ProviderHost, server: OpenAiServer
) -> None:
    server.play(Reply(text="so far", ending="hold"), Reply(text="alive"))
    stream = host.stream(request_to(server, name=LITELLMS))
    async with aclosing(stream):
        await anext(stream)
        pid = process_of(host).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ProviderError) as raised:
            async for _ in stream:
                pass
    assert raised.value.kind == "crashed"
    assert text_of(await collect(host, request_to(server, name=LITELLMS))) == "alive"


async def test_a_model_with_a_wire_of_ours_starts_no_process(
    tmp_path: Path, worker_environ: dict[str, str], server: OpenAiServer
) -> None:
    host = ProviderHost(log_path=tmp_path / "log", environ=worker_environ)
    server.play(Reply(text="here"))
    await host.warm(request_to(server).model)
    assert text_of(await collect(host, request_to(server))) == "here"
    assert process_of(host).pid is None
    await host.aclose()


@pytest.mark.parametrize("host_name", ["127.0.0.1", "localhost"])
async def test_a_server_on_this_machine_is_asked_without_the_proxy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: OpenAiServer, host_name: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    host = ProviderHost(log_path=tmp_path / "log", environ={})
    server.play(Reply(text="here"))
    request = request_to(server)
    address = server.base_url.replace("127.0.0.1", host_name)
    model = replace(request.model, base_url=address)
    assert text_of(await collect(host, replace(request, model=model))) == "here"
    await host.aclose()


async def test_certificates_that_are_not_there_are_said_by_the_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: OpenAiServer
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    host = ProviderHost(log_path=tmp_path / "log", environ={})
    await host.warm(request_to(server).model)
    _, error = await failing(host, request_to(server))
    assert "No such file or directory" in error.message
    monkeypatch.delenv("SSL_CERT_FILE")
    server.play(Reply(text="here"))
    assert text_of(await collect(host, request_to(server))) == "here"
    await host.aclose()


async def test_closing_the_host_ends_the_requests_under_way(
    tmp_path: Path, worker_environ: dict[str, str], server: OpenAiServer
) -> None:
    host = ProviderHost(log_path=tmp_path / "log", environ=worker_environ)
    server.play(Reply(text="so far", ending="hold"))
    async with aclosing(host.stream(request_to(server))) as stream:
        await anext(stream)
        await host.aclose()
        with pytest.raises(ProviderError) as raised:
            async for _ in stream:
                pass
    assert raised.value.kind == "interrupted"
    assert await asyncio.to_thread(server.wait_for_disconnects)


async def test_closing_leaves_no_process(tmp_path: Path, worker_environ: dict[str, str]) -> None:
    host = ProviderHost(log_path=tmp_path / "log", environ=worker_environ)
    await host.warm(ModelRef(LITELLMS))
    pid = process_of(host).pid
    assert pid is not None
    await host.aclose()
    assert not psutil.pid_exists(pid)
    assert process_of(host).pid is None


@pytest.mark.thorough
async def test_a_process_whose_parent_was_killed_ends_by_itself(
    tmp_path: Path, worker_environ: dict[str, str]
) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(tmp_path / "log"), env=worker_environ, stdout=PIPE
    )
    assert parent.stdout is not None
    worker = psutil.Process(int(await parent.stdout.readline()))
    parent.kill()
    await parent.wait()
    await asyncio.to_thread(worker.wait, PATIENCE_S)
    assert not worker.is_running()


@pytest.mark.parametrize("name", ["some-model", LITELLMS])
async def test_only_this_machine_is_ever_connected_to(
    host: ProviderHost, server: OpenAiServer, connections: Path, name: str
) -> None:
    server.play(Reply(text="x"))
    await collect(host, request_to(server, name=name))
    addresses = set(connections.read_text(encoding="utf-8").split())
    assert addresses == {"127.0.0.1"}


FAMILIES = (
    *("openai/meta-llama/Llama-2-7b-chat", "openai/meta-llama-3-70b", "openai/command-r-plus"),
    *("openai/replicate/llama-2", "openai/gpt-4o", "openai/claude-3-opus", "mistral/mistral-large"),
    *("groq/llama3-70b", "together_ai/meta-llama/Llama-3-70b", "openrouter/cohere/command-r"),
    *("deepseek/deepseek-chat", "fireworks_ai/llama-v3", "xai/grok-2", "ollama_chat/llama-3"),
    *("huggingface/meta-llama/Llama-2-7b", "hosted_vllm/meta-llama/Llama-3-8b", "cohere/command-r"),
    *("lm_studio/llama-2", "perplexity/llama-3", "nvidia_nim/meta/llama3-8b", "databricks/dbrx"),
    *("anyscale/meta-llama/Llama-2-70b", "replicate/meta/llama-2-70b-chat", "qwen/qwen3-coder"),
)


@pytest.mark.parametrize("name", FAMILIES)
async def test_no_name_of_a_model_makes_it_call_anybody_else(
    host: ProviderHost, server: OpenAiServer, connections: Path, name: str
) -> None:
    server.play(*[Reply(text="x", usage=None)] * 3)
    request = request_to(server)
    model = replace(request.model, name=name)
    with suppress(ProviderError):  # servers of some answer in other words than this one
        await asyncio.wait_for(collect(host, replace(request, model=model)), PATIENCE_S)
    assert set(connections.read_text(encoding="utf-8").split()) <= {"127.0.0.1", "localhost"}


@pytest.mark.parametrize(
    ("name", "homes"),
    [
        ("replicate/meta/llama-2-70b-chat", {"api.replicate.com"}),
        ("huggingface/meta-llama/Llama-2-7b", {"huggingface.co", "router.huggingface.co"}),
        ("together_ai/meta-llama/Llama-2-7b", {"api.together.xyz"}),
        ("cohere_chat/command-r-plus", {"api.cohere.ai"}),
    ],
)
async def test_a_service_is_asked_at_its_own_address_and_nowhere_else(
    host: ProviderHost, server: OpenAiServer, connections: Path, name: str, homes: set[str]
) -> None:
    request = request_to(server)
    with suppress(ProviderError, TimeoutError):
        model = replace(request.model, name=name, base_url="")
        await asyncio.wait_for(collect(host, replace(request, model=model)), PATIENCE_S)
    assert set(connections.read_text(encoding="utf-8").split()) <= homes


PARENT = """
import asyncio, os, sys
from pathlib import Path
from agent_tui.providers.base import ModelRef
from agent_tui.providers.host import ProviderHost

async def main():
    host = ProviderHost(log_path=Path(sys.argv[1]), environ=os.environ)
    asyncio.create_task(host.warm(ModelRef("azure_ai/some-model")))
    while host.caller.pid is None:
        await asyncio.sleep(0)
    print(host.caller.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
