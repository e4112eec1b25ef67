"""A local model's server: ``python -m agent_tui.features.local.server``.

Only this file names xllamacpp. An order arrives as one line on stdin, the answer leaves as one line
on the original stdout (see `server_messages`), and the process ends when stdin closes. llama.cpp
blocks the interpreter while it loads a model, so nothing here could notice the end of the program:
on Linux the kernel is told to end the process with its parent.

One request is answered at a time and has the whole window; others wait.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict
from http.client import HTTPConnection
from typing import Final, NoReturn, Protocol, cast
from urllib.parse import urlsplit

from agent_tui.features.local.server_messages import LoadAnswer, LoadOrder, NotServed, ServedLocal

_PR_SET_PDEATHSIG = 1
_ERRORS_ONLY = 1
"""llama.cpp's verbosity at which no prompt is logged."""

_BATCH_TOKENS = 256
"""Tokens of a prompt read between two checks for cancellation.

About a second of a small model's work on two cores; llama.cpp's 2,048 read no faster there.
"""

_PROMPT_CACHE_MIB = 512
"""Memory for conversations that wait for their turn (llama.cpp's own limit is 8 GiB)."""

_NO_ORIGIN: Final = ""


class _FileParams(Protocol):
    path: str


class _CpuParams(Protocol):
    n_threads: int


class _ServerParams(Protocol):
    """The part of ``xllamacpp.CommonParams`` that is set here."""

    model: _FileParams
    model_alias: set[str]
    cpuparams: _CpuParams
    n_ctx: int
    n_gpu_layers: int
    n_parallel: int
    n_batch: int
    n_ubatch: int
    cache_ram_mib: int
    hostnames: list[str]
    port: int
    api_keys: list[str]
    cors_origins: str
    cors_credentials: bool
    ui: bool
    offline: bool
    endpoint_slots: bool
    endpoint_props: bool
    endpoint_metrics: bool
    verbosity: int


class _Server(Protocol):
    listening_address: str


class _LlamaCpp(Protocol):
    """The part of the xllamacpp module that is used here."""

    def CommonParams(self) -> _ServerParams:
        """The server's parameters with llama.cpp's defaults."""
        ...

    def Server(self, params: _ServerParams) -> _Server:
        """Load the model and listen; raises RuntimeError after logging why it cannot."""
        ...


def main() -> NoReturn:
    """Serve until stdin closes."""
    _end_with_parent()
    answer_fd = os.dup(1)
    os.dup2(2, 1)  # a library's stray print must not break the line
    line = sys.stdin.buffer.readline()
    if not line:
        os._exit(0)
    order: LoadOrder = json.loads(line)
    if os.getppid() != order["parent_pid"]:  # it ended before the kernel was told
        os._exit(0)
    answer, server = _load(order)
    os.write(answer_fd, json.dumps(asdict(answer)).encode("ascii") + b"\n")
    if server is None:
        sys.exit(0)  # an orderly exit, so that llama.cpp writes the rest of its log
    sys.stdin.buffer.read()
    os._exit(0)  # an orderly exit would wait for requests in progress


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _load(order: LoadOrder) -> tuple[LoadAnswer, _Server | None]:
    """The answer, and the server, which lives as long as it is referenced."""
    try:
        llama = cast(_LlamaCpp, importlib.import_module("xllamacpp"))
    except ImportError as error:
        return NotServed("missing", str(error)), None
    try:
        server = llama.Server(_set(llama.CommonParams(), order))
    except RuntimeError as error:
        return NotServed("refused", str(error)), None
    return _read_back(server.listening_address, order["key"]), server


def _set(params: _ServerParams, order: LoadOrder) -> _ServerParams:
    params.model.path = order["path"]
    params.model_alias = {order["alias"]}
    params.n_ctx = order["context"]
    params.cpuparams.n_threads = order["threads"] or -1
    params.n_gpu_layers = order["gpu_layers"]
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = _BATCH_TOKENS
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [order["key"]]
    params.cors_origins = _NO_ORIGIN
    params.cors_credentials = False
    params.ui = False
    params.offline = True
    params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
    params.verbosity = _ERRORS_ONLY
    return params


def _read_back(address: str, key: str) -> ServedLocal:
    """What the running server reports about its model."""
    properties = _get(address, "/props", key)
    settings = cast(Mapping[str, int], properties["default_generation_settings"])
    abilities = cast(Mapping[str, bool], properties["chat_template_caps"])
    (model,) = cast(list[Mapping[str, Mapping[str, int]]], _get(address, "/v1/models", key)["data"])
    return ServedLocal(
        url=f"{address}/v1",
        window=settings["n_ctx"],
        trained_window=model["meta"]["n_ctx_train"],
        knows_tools=abilities["supports_tools"],
        has_template=bool(properties["chat_template"]),
    )


def _get(address: str, path: str, key: str) -> Mapping[str, object]:
    connection = HTTPConnection(urlsplit(address).netloc)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        answer: Mapping[str, object] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return answer


if __name__ == "__main__":
    main()
