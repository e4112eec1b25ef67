"""Models through litellm, which lives in a process of its own: the `Provider` of real use."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Final

from agent_tui.durations import shortest
from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelRef,
    ModelRequest,
    NoticeChunk,
    ProviderError,
)
from agent_tui.providers.faults.classify import provider_error
from agent_tui.providers.litellm.protocol import (
    Alive,
    Cancel,
    Ended,
    Event,
    Fault,
    Start,
    Warm,
    Warmed,
    command_line,
)
from agent_tui.providers.litellm.refusals import Refusals, Way
from agent_tui.providers.litellm.worker_process import WorkerDiedError, WorkerProcess
from agent_tui.providers.silence import SilenceLimits, Wait
from agent_tui.text import repair_json

_STUCK_AFTER_S = 120.0
"""A process gives a sign of life every two seconds; a machine that swaps may hold it up."""

_CHECKS = 4
"""So often a process must be found without a sign: the program may itself have been stopped."""

_WARM_ID: Final = 0
_MAX_LESSONS: Final = 6
"""How often one request is sent anew: by another wire or name, without a field or old thinking."""


class ProviderHost:
    """Owns the provider process: starts it, sends it requests, restarts it when it dies.

    Args:
        log_path: File to which the process's stderr is appended.
        environ: The process's environment; it finds the keys there. They are read nowhere else
            and never cross the pipe.
        silence: How long a server may be silent, before its first byte and after, unless a
            request says so itself.
        stuck_after_s: When a process without any sign of life is ended.
    """

    def __init__(
        self,
        *,
        log_path: Path,
        environ: Mapping[str, str],
        silence: SilenceLimits | None = None,
        stuck_after_s: float = _STUCK_AFTER_S,
    ) -> None:
        self._log_path = log_path
        self._environ = environ
        self._silence = silence or SilenceLimits.without_bytes()
        self._stuck_after_s = stuck_after_s
        self._ids = itertools.count(_WARM_ID + 1)
        self._launching: asyncio.Task[WorkerProcess] | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self._warm_problem = ""
        self._refusals = Refusals()
        self._answered: set[tuple[str, str]] = set()

    @property
    def pid(self) -> int | None:
        """Number of the provider process, None while there is none."""
        if self._launching is None or not self._launching.done():
            return None
        return None if self._launching.exception() else self._launching.result().pid

    @property
    def warm_problem(self) -> str:
        """Why the last `warm` failed, for a diagnosis; empty when it did not."""
        return self._warm_problem

    def start(self) -> None:
        """Start the process in the background, unless it runs; needs a running event loop."""
        if self._launching is None or _is_over(self._launching):
            self._launching = asyncio.create_task(
                WorkerProcess.launch(self._log_path, self._environ)
            )

    async def warm(self, model: ModelRef) -> None:
        """Have the process get ready for `model`: seconds where it is spoken to through litellm."""
        with contextlib.suppress(WorkerDiedError):
            worker = await self._worker()
            events = worker.listen(_WARM_ID)
            worker.send(Warm(self._refusals.wire_to(model).name))
            match await events.get():
                case None:
                    events.put_nowait(None)  # for whoever else waits for the same process
                case Warmed(problem):
                    self._warm_problem = problem
                case _:
                    pass

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`. What the provider refuses to have back is left out once.

        Raises:
            ProviderError: the request failed, or the stream broke off.
        """
        if request.silence is None:
            request = replace(request, silence=self._silence)
        place = (request.model.provider, request.model.base_url)
        told: list[str] = []
        unknown: ProviderError | None = None
        for tries_left in reversed(range(_MAX_LESSONS + 1)):
            way = self._refusals.way(request)
            has_begun = False
            try:
                async with aclosing(self._spoken(way)) as chunks:
                    async for chunk in chunks:
                        if not has_begun:
                            for text in filter(None, told):
                                yield NoticeChunk(text)
                        has_begun = True
                        self._answered.add(place)
                        yield chunk
                return
            except ProviderError as error:
                error.has_answered = place in self._answered
                may_repeat = tries_left > 0 and not has_begun
                lesson = self._refusals.learn(way, error) if may_repeat else None
                if lesson is None:
                    if unknown is not None and error.kind == "not_found":
                        raise unknown from error  # the other name was only a guess
                    raise
                unknown = unknown or (error if error.kind == "not_found" else None)
                told.append(lesson)

    async def _spoken(self, way: Way) -> AsyncGenerator[Chunk, None]:
        """One request; a death of the process before the first chunk is made good once.

        Raises:
            ProviderError: the request failed, or the stream broke off.
        """
        request, request_id = way.request, next(self._ids)
        line = await asyncio.to_thread(_start_line, request_id, way)
        for is_last_attempt in (False, True):
            has_begun = False
            try:
                async with aclosing(self._attempt(request_id, line, request)) as chunks:
                    async for chunk in chunks:
                        has_begun = True
                        yield chunk
                return
            except WorkerDiedError as error:
                if has_begun or is_last_attempt:
                    raise self._crashed(request, error) from error

    def forget_worker(self) -> None:
        """Let the next request start a new process, which sees the environment as it is then.

        For a key that came in while the program runs. Requests under way end as crashed.
        """
        if self._launching is not None:
            retiring = asyncio.create_task(_end(self._launching))
            self._launching = None
            self._retiring.add(retiring)
            retiring.add_done_callback(self._retiring.discard)

    async def aclose(self) -> None:
        """End the process and wait until it is gone."""
        self.forget_worker()
        await asyncio.gather(*self._retiring)

    async def _attempt(
        self, request_id: int, line: bytes, request: ModelRequest
    ) -> AsyncGenerator[Chunk, None]:
        worker = await self._worker()
        events = worker.listen(request_id)
        worker.send_line(line)
        is_mid_stream = has_finished = has_ended = False
        try:
            while True:
                match await self._next_event(events, worker):
                    case None:
                        has_ended = True
                        raise WorkerDiedError(await worker.ending())
                    case Alive(word_s=word_s, byte_s=byte_s):
                        request.on_wait(Wait(word_s, byte_s))
                    case Fault() as fault:
                        raise provider_error(fault, request.model, is_mid_stream=is_mid_stream)
                    case Ended():
                        has_ended = True
                        break
                    case Warmed():
                        continue
                    case chunk:
                        is_mid_stream = True
                        has_finished |= isinstance(chunk, FinishChunk)
                        yield chunk
        finally:
            if not has_ended:
                worker.send(Cancel(request_id))
            worker.forget(request_id)
        if not has_finished:
            fault = (
                Fault("Interrupted", "the stream ended without a finish reason")
                if is_mid_stream
                else Fault("EmptyReply", "it sent no reply")
            )
            raise provider_error(fault, request.model, is_mid_stream=is_mid_stream)

    async def _worker(self) -> WorkerProcess:
        self.start()
        assert self._launching is not None
        try:
            return await asyncio.shield(self._launching)
        except OSError as error:
            raise WorkerDiedError(f"could not be started: {error}") from error

    async def _next_event(
        self, events: "asyncio.Queue[Event | None]", worker: WorkerProcess
    ) -> Event | None:
        """The next event, a sign of life at the least.

        Raises:
            WorkerDiedError: The process gives none, whatever its servers do: it was ended.
        """
        for _ in range(_CHECKS):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._stuck_after_s / _CHECKS):
                    return await events.get()
        stuck = f"did not respond for {shortest(self._stuck_after_s)} and was killed"
        worker.kill(stuck)
        raise WorkerDiedError(stuck)

    def _crashed(self, request: ModelRequest, error: WorkerDiedError) -> ProviderError:
        return ProviderError(
            "crashed",
            f"{request.model.name}: the provider process {error}.",
            f"Try again, or see {self._log_path}.",
        )


async def _end(launching: "asyncio.Task[WorkerProcess]") -> None:
    with contextlib.suppress(OSError):  # it never started
        worker = await launching
        await worker.aclose()


def _is_over(launching: "asyncio.Task[WorkerProcess]") -> bool:
    """Whether a launch failed or its process has died since."""
    if not launching.done():
        return False
    return launching.exception() is not None or not launching.result().is_alive


def _start_line(request_id: int, way: Way) -> bytes:
    request, model = way.request, way.request.model
    assert request.silence is not None
    return command_line(
        Start(
            id=request_id,
            wire=way.wire.name,
            model=model.name,
            model_id=way.model_id,
            without=list(way.without),
            messages=way.wire.write(request.system, request.messages, model),
            tools=[_tool(spec) for spec in request.tools],
            base_url=model.base_url,
            api_key_env=model.api_key_env,
            max_output_tokens=request.max_output_tokens,
            thinking=request.thinking,
            silence=request.silence,
            reply_schema=request.reply_schema,
            grammar=request.grammar,
            cache_key=request.cache_key,
        )
    )


def _tool(spec: ToolSpec) -> JsonObject:
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters": repair_json(spec.parameters),
    }
