"""The servers of local models and their processes: one at a time, started as needed."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import TypeAdapter

from agent_tui.errors import ModelFileError
from agent_tui.features.local.gguf import read_gguf, refuse_unusable
from agent_tui.features.local.library import ModelLibrary
from agent_tui.features.local.model import LocalModel
from agent_tui.features.local.server_messages import LoadAnswer, LoadOrder, NotServed, ServedLocal
from agent_tui.features.local.settings import LocalSettings
from agent_tui.installation import install_command
from agent_tui.providers.base import ProviderError
from agent_tui.providers.keys import secret_values
from agent_tui.providers.log_file import ProcessLog, append_to_log

SERVER_COMMAND: Final = (sys.executable, "-P", "-m", "agent_tui.features.local.server")

_EXIT_GRACE_S = 10.0
"""Seconds for a process that has refused a model, and is writing its log."""

_ANSWER: TypeAdapter[LoadAnswer] = TypeAdapter(LoadAnswer)
_ERROR_LINE = re.compile(r"^[\d.]+ E (.+)", re.M)
_CAUSE = re.compile(r"error loading model: (.+)|(GGML_ASSERT.+)|(failed to allocate .+)")
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


@dataclass(frozen=True, slots=True)
class LoadFailure:
    """Why no server started.

    Args:
        reason: ``missing``: xllamacpp is not installed. ``refused``: llama.cpp does not accept the
            model. ``broke``: the process crashed on it. ``killed``: something else ended it.
        detail: What the log or the process said about it.
    """

    reason: Literal["missing", "refused", "broke", "killed"]
    detail: str


class LoadError(Exception):
    """The model was not loaded."""

    def __init__(self, failure: LoadFailure) -> None:
        super().__init__(f"{failure.reason}: {failure.detail}")
        self.failure = failure


class LocalServerProcess:
    """A server that is ready. Use `launch` to create one."""

    def __init__(self, process: Process, served: ServedLocal, log: ProcessLog) -> None:
        self._process = process
        self._log = log
        self.served = served

    @classmethod
    async def launch(
        cls,
        command: Sequence[str],
        order: LoadOrder,
        log_path: Path,
        environ: Mapping[str, str],
    ) -> Self:
        """Start a process with `command` and wait until the model is loaded.

        It gets its own session, so that Ctrl+C in the terminal does not reach it, and its stderr
        goes to the log `log_path`. The key goes through its stdin; nothing in `environ` that looks
        like a key is passed on. Cancelling ends the process.

        Raises:
            LoadError: The model cannot be loaded, or the process ended before it was.
            OSError: The process cannot be started.
        """
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd="/",
            env=_child_environ(environ, order["key"]),
            start_new_session=True,
        )
        assert process.stderr is not None
        log = ProcessLog(process.stderr, log_path, (order["key"], *secret_values(environ)))
        try:
            answer = await _answer(process, order)
            if isinstance(answer, ServedLocal):
                return cls(process, answer, log)
            assert process.stdin is not None
            process.stdin.close()  # this ends it if it waits for more
            await _ends_within(process, _EXIT_GRACE_S)
        except asyncio.CancelledError:
            await _end(process)
            await log.finish()
            raise
        status = await _end(process)
        await log.finish()
        raise LoadError(_failure(answer, status, log.text))

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether its end has not been noticed yet."""
        return self._process.returncode is None

    async def ends_within(self, limit_s: float) -> bool:
        """Whether the process ends within `limit_s`: its broken connections show up earlier."""
        return await _ends_within(self._process, limit_s)

    async def aclose(self) -> None:
        """Kill it, as there is nothing to save; returns when it is gone."""
        await _end(self._process)
        await self._log.finish()


async def _answer(process: Process, order: LoadOrder) -> LoadAnswer | None:
    """The process's answer; None if it ends without one."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order).encode("ascii") + b"\n")
    if not (line := await process.stdout.readline()):
        return None
    try:
        return _ANSWER.validate_json(line)
    except ValueError:
        return NotServed("refused", "its server sent an invalid answer")


async def _ends_within(process: Process, limit_s: float) -> bool:
    try:
        await asyncio.wait_for(process.wait(), limit_s)
    except TimeoutError:
        return False
    return True


async def _end(process: Process) -> int:
    """Kill the process group if it still runs; returns its exit status."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):  # it ended, but we do not know yet
            os.killpg(process.pid, signal.SIGKILL)
    return await process.wait()


def _failure(answer: NotServed | None, status: int, log: str) -> LoadFailure:
    """What went wrong, in llama.cpp's words if it gave any."""
    detail = _cause(log)
    match answer:
        case NotServed("missing", missing):
            return LoadFailure("missing", missing)
        case NotServed("refused", refused):
            return LoadFailure("refused", detail or refused)
        case None if -status in _FROM_OUTSIDE:
            return LoadFailure("killed", f"signal {-status}")
        case _:
            how = f"signal {-status}" if status < 0 else f"status {status}"
            return LoadFailure("broke", detail or how)


def _cause(log: str) -> str:
    """The line of a log that says most about a failure; empty if none does."""
    if found := _CAUSE.search(log):
        return found[0].removeprefix("error loading model: ")
    errors = _ERROR_LINE.findall(log)
    return " ".join(errors[-1].split()) if errors else ""


def _child_environ(environ: Mapping[str, str], key: str) -> dict[str, str]:
    """`environ` without anything that is or looks like a key.

    A crash of llama.cpp must not start a debugger, which would put the prompt into the log.
    """
    hidden = {key, *secret_values(environ)}
    kept = {name: value for name, value in environ.items() if value not in hidden}
    return kept | {"GGML_NO_BACKTRACE": "1"}


_MEMORY_WORDS = ("insufficient memory", "failed to allocate", "failed to create context")


@dataclass(eq=False, slots=True)
class _Server:
    """The server of a model, and how many requests use it."""

    model: LocalModel
    launching: asyncio.Task[LocalServerProcess]
    uses: int = 0

    @property
    def launched(self) -> LocalServerProcess | None:
        """The process, if it was ready once; it may have died since."""
        if not self.launching.done() or self.launching.cancelled():
            return None
        return None if self.launching.exception() is not None else self.launching.result()

    @property
    def process(self) -> LocalServerProcess | None:
        """The process, if it is ready and alive."""
        process = self.launched
        return process if process is not None and process.is_alive else None

    @property
    def is_over(self) -> bool:
        """Whether the launch failed or the process has died since."""
        return self.launching.done() and self.process is None

    async def stop(self) -> None:
        """End the process, or cancel its launch. One that has died is closed, too."""
        self.launching.cancel()
        await asyncio.wait({self.launching})
        if (process := self.launched) is not None:
            await process.aclose()


class LocalServers:
    """Starts the server a model needs; stops another model's once nothing uses it.

    A server that died is restarted when its model is next used.

    Args:
        library: The models.
        settings: The ``[local]`` section.
        log_path: File to which the servers' stderr is appended.
        api_key: The key that the servers require.
        environ: The servers' environment, passed on without keys; None: the program's own.
        command: The command that starts a server process.
    """

    def __init__(
        self,
        library: ModelLibrary,
        settings: LocalSettings,
        log_path: Path,
        api_key: str,
        *,
        environ: Mapping[str, str] | None = None,
        command: Sequence[str] = SERVER_COMMAND,
    ) -> None:
        self._library = library
        self._settings = settings
        self._log_path = log_path
        self._api_key = api_key
        self._environ = os.environ if environ is None else environ
        self._command = command
        self._servers: set[_Server] = set()
        self._wanted: _Server | None = None
        self._stopping: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the processes that are ready."""
        return tuple(s.process.pid for s in self._servers if s.process is not None)

    @asynccontextmanager
    async def use(self, name: str) -> AsyncGenerator[LocalServerProcess]:
        """The server of model `name`, ready, and kept running until the context ends.

        Raises:
            ProviderError: There is no such model, or it cannot be loaded.
        """
        model = await asyncio.to_thread(self._find, name)
        server = self._server_for(model)
        server.uses += 1
        try:
            yield await self._ready(server)
        finally:
            server.uses -= 1
            self._stop_unwanted()

    async def aclose(self) -> None:
        """End every server and wait until it is gone; no more are started."""
        self._is_closed = True
        for server in tuple(self._servers):
            self._stop(server)
        await asyncio.gather(*self._stopping)

    def note(self, text: str) -> None:
        """Append a line to the servers' log, if it can be written."""
        with contextlib.suppress(OSError):
            append_to_log(self._log_path, text)

    def _find(self, name: str) -> LocalModel:
        try:
            model = self._library.find(name)
        except ModelFileError as error:
            raise ProviderError("not_found", error.message, error.advice) from error
        if model is None or not model.is_there:
            raise _no_such_model(name, model)
        return model

    def _server_for(self, model: LocalModel) -> _Server:
        if self._is_closed:
            raise ProviderError("crashed", "The local model servers have been stopped.")
        usable = (s for s in self._servers if s.model == model and not s.is_over)
        server = next(usable, None)
        if server is None:
            server = _Server(model, asyncio.create_task(self._launch(model)))
            self._servers.add(server)
        self._wanted = server
        self._stop_unwanted()
        return server

    async def _ready(self, server: _Server) -> LocalServerProcess:
        try:
            return await asyncio.shield(server.launching)
        except LoadError as error:
            model, failure = server.model, error.failure
            if failure.reason in ("refused", "broke"):
                await asyncio.to_thread(_refuse_damaged, model)
            raise _load_error(model, failure, self._log_path) from error
        except OSError as error:
            message = f"Cannot start the server of local/{server.model.name}: {error}."
            raise ProviderError("bad_request", message) from error

    def _stop_unwanted(self) -> None:
        for server in tuple(self._servers):
            if server is not self._wanted and not server.uses:
                self._stop(server)

    def _stop(self, server: _Server) -> None:
        self._servers.discard(server)
        stopping = asyncio.create_task(server.stop())
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)

    async def _launch(self, model: LocalModel) -> LocalServerProcess:
        """Start the server; retries once if something killed it."""
        await asyncio.gather(*self._stopping)  # the new server may need their memory
        try:
            return await self._start(model)
        except LoadError as error:
            if error.failure.reason != "killed":
                raise
            self.note(f"local/{model.name} was killed while loading: {error.failure.detail}")
        return await self._start(model)

    async def _start(self, model: LocalModel) -> LocalServerProcess:
        order = LoadOrder(
            path=str(model.path),
            alias=model.name,
            key=self._api_key,
            context=model.window(self._settings.context),
            threads=self._settings.threads,
            gpu_layers=self._settings.gpu_layers,
            parent_pid=os.getpid(),
        )
        return await LocalServerProcess.launch(self._command, order, self._log_path, self._environ)


def _refuse_damaged(model: LocalModel) -> None:
    """Raise if the file of `model`, which llama.cpp did not load, is damaged.

    Raises:
        ProviderError: It is truncated or not a model, in clearer words than llama.cpp's.
    """
    try:
        refuse_unusable(model.path, read_gguf(model.path))
    except ModelFileError as error:
        message = f"Cannot load local/{model.name}: {error.message}"
        raise ProviderError("bad_request", message, model.recovery_hint) from error


def _no_such_model(name: str, model: LocalModel | None) -> ProviderError:
    """The error for a model that is not in the library, or whose file (`model`) is missing."""
    if model is None:
        message = f"No local model named {name}."
        hint = "List them with agent-tui models list, or download one with agent-tui models pull."
    else:
        message = f"The file for local/{name} is missing: {model.path}."
        hint = model.recovery_hint
    return ProviderError("not_found", message, hint)


def _load_error(model: LocalModel, failure: LoadFailure, log_path: Path) -> ProviderError:
    """The error for a model whose server did not start; retrying is left to the user."""
    name, detail = f"local/{model.name}", failure.detail
    match failure.reason:
        case "missing":
            message = f"{name} needs xllamacpp, which failed to import: {detail}."
            return ProviderError("not_found", message, f"Install it: {install_command('local')}")
        case "killed":
            message = f"The server of {name} was killed twice while loading ({detail})."
            hint = f"It may be out of memory. {_smaller()} See {log_path}."
        case "refused" | "broke" if any(word in detail for word in _MEMORY_WORDS):
            message = f"Not enough memory for {name}: {detail}."
            hint = _smaller()
        case _:
            message = f"llama.cpp cannot load {name} from {model.path}: {detail}."
            hint = "The file may be damaged or too new: pull or add it again, or switch models "
            hint += f"with {{model}}. See {log_path}."
    return ProviderError("bad_request", message, hint)


def _smaller() -> str:
    return "Use a smaller model{or_setting:set a smaller context under [local]}."
