"""What the four kinds of model servers answer about themselves, and servers that answer badly."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from agent_tui.providers.base import ModelInfo
from agent_tui.providers.servers.kinds import Ports, ServerAddress, own_kinds
from agent_tui.providers.servers.models import ServedModel
from agent_tui.providers.servers.server_catalog import RunningServer, find_servers, server_at
from tests.support.openai_script import Failure
from tests.support.openai_server import OpenAiServer
from tests.support.patience import PATIENCE_S

LLAMA_CPP: dict[str, Any] = {
    "/props": {
        "default_generation_settings": {"id": 0, "n_ctx": 8_192, "params": {"temperature": 0.8}},
        "total_slots": 1,
        "model_path": "/models/small.gguf",
        "modalities": {"vision": True, "audio": False},
        "chat_template": "{% for message in messages %}{{ message.content }}{% endfor %}",
        "chat_template_caps": {"supports_tools": False, "supports_system_role": True},
    },
    "/v1/models": {
        "object": "list",
        "data": [
            {
                "id": "/models/small.gguf",
                "object": "model",
                "owned_by": "llamacpp",
                "meta": {"n_ctx_train": 8_192, "n_params": 134_515_008},
            }
        ],
    },
}

OLLAMA: dict[str, Any] = {
    "/api/tags": {
        "models": [
            {"name": "qwen3:8b", "size": 5_225_388_164, "details": {"family": "qwen3"}},
            {"name": "tiny:latest", "size": 637_700_138},
        ]
    },
    "/api/ps": {"models": [{"name": "qwen3:8b", "context_length": 32_768, "size_vram": 1}]},
    "/api/show": {
        "capabilities": ["completion", "tools", "thinking"],
        "parameters": 'temperature 0.6\nstop "<|im_end|>"',
        "model_info": {"qwen3.context_length": 40_960},
    },
    "/v1/models": {
        "object": "list",
        "data": [
            {"id": "qwen3:8b", "object": "model", "owned_by": "library"},
            {"id": "tiny:latest", "object": "model", "owned_by": "library"},
        ],
    },
}

LM_STUDIO_V0: dict[str, Any] = {
    "/api/v0/models": {
        "data": [
            {
                "id": "openai/gpt-oss-20b",
                "type": "llm",
                "state": "loaded",
                "max_context_length": 131_072,
                "loaded_context_length": 16_000,
                "capabilities": ["tool_use"],
            },
            {
                "id": "gemma-3-4b",
                "type": "vlm",
                "state": "not-loaded",
                "max_context_length": 131_072,
                "capabilities": [],
            },
            {"id": "text-finder", "type": "embeddings", "state": "not-loaded"},
        ]
    },
    "/v1/models": {
        "data": [
            {"id": "openai/gpt-oss-20b", "owned_by": "organization_owner"},
            {"id": "gemma-3-4b", "owned_by": "organization_owner"},
            {"id": "text-finder", "owned_by": "organization_owner"},
        ]
    },
}

LM_STUDIO: dict[str, Any] = {
    "/api/v1/models": {
        "models": [
            {
                "type": "llm",
                "key": "openai/gpt-oss-20b",
                "size_bytes": 12_109_566_560,
                "loaded_instances": [
                    {"id": "openai/gpt-oss-20b", "config": {"context_length": 16_000}},
                    {"id": "openai/gpt-oss-20b:2", "config": {"context_length": 8_000}},
                ],
                "max_context_length": 131_072,
                "capabilities": {"vision": False, "trained_for_tool_use": True},
            },
            {
                "type": "llm",
                "key": "gemma-3-4b",
                "size_bytes": 3_341_000_000,
                "loaded_instances": [],
                "max_context_length": 131_072,
                "capabilities": {"vision": True, "trained_for_tool_use": False},
            },
            {"type": "embedding", "key": "text-finder", "loaded_instances": []},
        ]
    },
    "/v1/models": LM_STUDIO_V0["/v1/models"],
}

VLLM: dict[str, Any] = {
    "/v1/models": {
        "object": "list",
        "data": [{"id": "Qwen/Qwen3-Coder", "owned_by": "vllm", "max_model_len": 65_536}],
    }
}

LOADING = Failure(
    503, '{"error":{"message":"Loading model","type":"unavailable_error","code":503}}'
)
WANTS_KEY = Failure(
    401, '{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}'
)

Answering = Callable[[socket.socket, threading.Event], None]
"""What is done with each connection until the event is set or the other side is gone."""


@contextmanager
def listening(answer: Answering | None) -> Iterator[int]:
    """A port whose connections `answer` deals with; None: they are never taken up."""
    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        server.settimeout(0.05)

        def serve() -> None:
            while not stopped.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                threading.Thread(target=deal, args=(connection,), daemon=True).start()

        def deal(connection: socket.socket) -> None:
            assert answer is not None
            with connection, suppress(OSError):
                connection.settimeout(5)
                connection.recv(65_536)
                answer(connection, stopped)

        thread = threading.Thread(target=serve, daemon=True)
        if answer is not None:
            thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stopped.set()
            if answer is not None:
                thread.join()


def drip_head(connection: socket.socket, stopped: threading.Event) -> None:
    """A header line that never ends."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Never: ")
    while not stopped.wait(0.02):
        connection.sendall(b"x")


def drip_body(connection: socket.socket, stopped: threading.Event) -> None:
    """A body that never ends."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while not stopped.wait(0.02):
        connection.sendall(b" ")


def pour(connection: socket.socket, stopped: threading.Event) -> None:
    """As much as is taken."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n[")
    while not stopped.is_set():
        connection.sendall(b"1," * 100_000)


def say_nothing(_connection: socket.socket, stopped: threading.Event) -> None:
    """Take the request and keep silent."""
    stopped.wait()


def answer_bytes(raw: bytes) -> Answering:
    """The same bytes to every request, and the connection stays open."""

    def answer(connection: socket.socket, stopped: threading.Event) -> None:
        connection.sendall(raw)
        stopped.wait()

    return answer


def models_of(base_url: str) -> tuple[ServedModel, ...]:
    """The chat models of the server at `base_url`; none where nothing answers."""
    server = server_at(base_url)
    return server.models if server else ()


def find_server(server: OpenAiServer, kind: str) -> RunningServer:
    """What is found at `server`, where one of this kind would be."""
    address = ServerAddress(kind, server.base_url.removesuffix("/v1"))
    (found,) = find_servers([address], patience_s=PATIENCE_S)
    return found


def infos(server: RunningServer) -> dict[str, ModelInfo]:
    """What is known of each of its models, by its name there."""
    return {model.ref.model_id: model.info for model in server.list_models()}


def all_at(port: int) -> Ports:
    """Every kind of server, looked for at `port` of this machine."""
    return {kind.name: (port,) for kind in own_kinds()}
