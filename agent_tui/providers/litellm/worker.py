"""The provider process, ``python -m agent_tui.providers.litellm.worker``: only it names litellm.

Commands come as lines on stdin, events go as lines to what was stdout (see `protocol`);
whatever litellm prints goes to stderr. The process ends when stdin closes, so it never
outlives its parent.

How a cut stream is told from a whole one: litellm reports a normal stop when a stream ends
without a finish reason. Its stream object keeps the reason it really received in
``received_finish_reason`` (``intermittent_finish_reason`` while chunks still come), and a
finish is passed on only if one of them is set. That holds for every provider whose chunks go
through litellm's common stream object (all that speak HTTP); the few that set "stop" by
themselves (vertex through Google's SDK, mock replies) count as whole.
Usage that litellm counted itself is told by the absence of a chunk that carried any.
"""

import asyncio
import contextlib
import importlib
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, Never, Protocol, TypeVar, cast

from agent_tui.messages import JsonObject
from agent_tui.providers.base import FinishChunk, UsageChunk
from agent_tui.providers.keys import secret_values
from agent_tui.providers.litellm.arguments import DUMMY_KEY, request_arguments
from agent_tui.providers.litellm.coalesce import Coalescer
from agent_tui.providers.litellm.exceptions import fault_of
from agent_tui.providers.litellm.protocol import (
    Cancel,
    Ended,
    Event,
    Fault,
    Start,
    Warm,
    Warmed,
    event_line,
    parse_command,
)
from agent_tui.providers.litellm.replies import (
    CallSplitter,
    Part,
    ReplyStream,
    chunks_of,
    finish_reason,
    usage_of,
    was_finished,
    was_usage_sent,
)

_T = TypeVar("_T")

_FLUSH_INTERVAL_S = 0.03
"""Deltas wait this long for company: 33 lines a second are smooth and cost little."""

_EXIT_GRACE_S = 2.0
_NO_PRICES: Mapping[str, object] = MappingProxyType({})
_QUIET_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai", "asyncio")


class _LiteLlm(Protocol):
    """As much of the litellm module as is used here."""

    suppress_debug_info: bool
    provider_list: Collection[str]
    model_cost: Mapping[str, Mapping[str, object]]

    async def acompletion(self, **arguments: object) -> ReplyStream:
        """Send a request; with ``stream`` among the arguments."""
        ...


def main() -> None:
    """Run until stdin closes."""
    events_fd = os.dup(1)
    os.dup2(2, 1)  # a stray print of a library must not break the lines
    asyncio.run(_serve(events_fd))
    os._exit(0)  # threads of libraries may still hang in a request


async def _serve(events_fd: int) -> None:
    commands: asyncio.Queue[bytes] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read_commands() -> None:
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(commands.put_nowait, line)
        loop.call_soon_threadsafe(commands.put_nowait, b"")
        time.sleep(_EXIT_GRACE_S)  # the parent is gone; an import holding the loop must not stay
        os._exit(0)

    def send(request_id: int, event: Event) -> None:
        line = memoryview(event_line(request_id, event))
        while line:
            line = line[os.write(events_fd, line) :]

    threading.Thread(target=read_commands, daemon=True).start()
    worker = _Worker(send)
    while line := await commands.get():
        worker.obey(line)
    await worker.stop()


class _Worker:
    """Requests under way, each a task; litellm is imported by whichever command needs it first."""

    def __init__(self, send: Callable[[int, Event], None]) -> None:
        self._send = send
        self._requests: dict[int, asyncio.Task[None]] = {}
        self._loading: asyncio.Future[_LiteLlm] | None = None

    def obey(self, line: bytes) -> None:
        """Carry out one command; returns at once."""
        command = parse_command(line)
        match command:
            case Warm():
                self._track(0, self._warm())
            case Start():
                self._track(command.id, self._run(command))
            case Cancel():
                if (task := self._requests.get(command.id)) is not None:
                    task.cancel()

    async def stop(self) -> None:
        """Cancel everything, so that servers see their connections closed."""
        tasks = tuple(self._requests.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_EXIT_GRACE_S / 2)

    def _track(self, request_id: int, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._requests[request_id] = task
        task.add_done_callback(lambda _: self._requests.pop(request_id, None))

    async def _loaded(self) -> _LiteLlm:
        if self._loading is None:
            self._loading = asyncio.get_running_loop().run_in_executor(None, _load_litellm)
        return await asyncio.shield(self._loading)

    async def _warm(self) -> None:
        try:
            await _rehearse(await self._loaded())
        except Exception as error:  # noqa: BLE001 - the pump: reported, never fatal
            self._send(0, Warmed(f"{type(error).__name__}: {error}"))
        else:
            self._send(0, Warmed())

    async def _run(self, start: Start) -> None:
        outbox = _Outbox(lambda event: self._send(start.id, event))
        try:
            await _stream(await self._loaded(), start, outbox)
        except asyncio.CancelledError:
            outbox.discard()
        except _IdleTimeoutError:
            outbox.put(Fault("IdleTimeout", f"nothing came for {start.idle_timeout_s:g} s"))
        except Exception as error:  # noqa: BLE001 - the pump: whatever it was becomes data
            outbox.put(fault_of(error, secret_values(os.environ, (start.api_key_env,))))
        finally:
            outbox.put(Ended())


class _IdleTimeoutError(Exception):
    """Nothing came within the idle time."""


class _Outbox:
    """Events of one request on their way out; chunks wait up to `_FLUSH_INTERVAL_S`."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self._send = send
        self._waiting = Coalescer()
        self._timer: asyncio.TimerHandle | None = None
        self._flushed_at = 0.0

    def put(self, event: Event) -> None:
        """Send `event` in its turn; what is no chunk goes out at once with all before it."""
        if isinstance(event, Fault | Ended | Warmed):
            self._flush(is_end=True)
            self._send(event)
            return
        self._waiting.add(event)
        loop = asyncio.get_running_loop()
        if loop.time() - self._flushed_at >= _FLUSH_INTERVAL_S:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_later(_FLUSH_INTERVAL_S, self._flush)

    def discard(self) -> None:
        """Forget what waits: nobody listens any more."""
        self._waiting = Coalescer()

    def _flush(self, *, is_end: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for chunk in self._waiting.take(is_end=is_end):
            self._send(chunk)
        self._flushed_at = asyncio.get_running_loop().time()


def _load_litellm() -> _LiteLlm:
    """Import litellm without its network fetch, its ``.env`` file and its chatter."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # "DEV" reads a .env file in a folder above litellm
    # A model that draws a table repeats itself; stopping it is the person's decision.
    os.environ["REPEATED_STREAMING_CHUNK_LIMIT"] = str(10**9)
    import litellm

    module = cast(_LiteLlm, litellm)
    module.suppress_debug_info = True
    _forbid_hidden_retry()
    _send_bodies_as_they_are()
    for name in _QUIET_LOGGERS:  # their messages may quote the conversation
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return module


def _forbid_hidden_retry() -> None:
    """Have litellm's own HTTP client raise a lost connection instead of asking once more.

    That second request is paid for and lost: its client is closed before the reply is read.
    """
    http: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")

    async def refuse(*_arguments: object, **_named: object) -> Never:
        error = sys.exception()
        assert error is not None  # it is only called to handle one
        raise error

    http.AsyncHTTPHandler.single_connection_post_request = refuse


def _send_bodies_as_they_are() -> None:
    """Have OpenAI's client send a chat request's body without looking through all of it.

    It walks every message for values of its own types, at 600 messages for 100 ms a request.
    Ours are JSON already; what was not given is all it has to leave out.
    """
    chat: Any = importlib.import_module("openai.resources.chat.completions.completions")

    async def given(body: Mapping[str, object], _type: object) -> Mapping[str, object]:
        omitted = (chat.NotGiven, chat.Omit)
        return {name: value for name, value in body.items() if not isinstance(value, omitted)}

    chat.async_maybe_transform = given


async def _rehearse(litellm: _LiteLlm) -> None:
    """A mock request with tools, so that the first real one finds everything imported.

    Then one to a port of this machine where nobody listens: it sets up the HTTP client and
    its certificates, half a second of the first request, and fails at once.
    """
    tool: JsonObject = {
        "type": "function",
        "function": {
            "name": "noop",
            "description": "Does nothing.",
            "parameters": {"type": "object", "properties": {}},
        },
    }
    arguments: dict[str, object] = {
        "model": "openai/rehearsal",
        "api_key": DUMMY_KEY,
        "messages": [{"role": "user", "content": "rehearsal"}],
        "tools": [tool],
        "stream": True,
        "max_retries": 0,
    }
    async for _ in await litellm.acompletion(**arguments, mock_response="ready"):
        pass
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listened on: every connection is refused
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with contextlib.suppress(Exception):
            await litellm.acompletion(**arguments, api_base=nobody)


async def _stream(litellm: _LiteLlm, start: Start, outbox: _Outbox) -> None:
    """One request from the first byte to the finish reason, if there is one.

    Raises:
        _IdleTimeoutError: nothing came within the idle time, before the headers or after.
        Exception: whatever litellm raises.
    """
    known = _table_entry(litellm, start.model)
    max_output = known.get("max_output_tokens")
    arguments = request_arguments(
        start,
        litellm.provider_list,
        os.environ,
        table_max_output=max_output if isinstance(max_output, int) else None,
    )
    response = await _in_time(litellm.acompletion(**arguments), start.idle_timeout_s)
    calls = CallSplitter()
    reason = ""
    usage: object = None
    try:
        async for part in _parts(response, start.idle_timeout_s):
            usage = getattr(part, "usage", None) or usage
            for choice in part.choices[:1]:
                for chunk in chunks_of(choice.delta, calls):
                    outbox.put(chunk)
                reason = choice.finish_reason or reason
    finally:
        await response.aclose()
    if usage is not None:
        # A server of the person's own may call anything by a known name: no price.
        prices = _NO_PRICES if start.base_url else known
        is_estimate = not was_usage_sent(response)
        outbox.put(UsageChunk(usage_of(usage, prices, is_estimate=is_estimate)))
    if was_finished(response):
        outbox.put(FinishChunk(finish_reason(reason)))


async def _in_time(awaitable: Awaitable[_T], idle_timeout_s: float) -> _T:
    limit = asyncio.timeout(idle_timeout_s)
    try:
        async with limit:
            return await awaitable
    except TimeoutError:
        if limit.expired():
            raise _IdleTimeoutError from None
        raise


async def _parts(response: ReplyStream, idle_timeout_s: float) -> AsyncIterator[Part]:
    while True:
        try:
            yield await _in_time(anext(response), idle_timeout_s)
        except StopAsyncIteration:
            return


def _table_entry(litellm: _LiteLlm, model: str) -> Mapping[str, object]:
    """What litellm's table says of `model`, which it lists with or without the provider."""
    table = litellm.model_cost
    return table.get(model) or table.get(model.partition("/")[2]) or {}


if __name__ == "__main__":
    main()
