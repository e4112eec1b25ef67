"""Child processes in their own groups, which never outlive the call that started them.

They are children of a `keeper_process`, which ends them even if the program is killed.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from agent_tui.config.defaults import MOST_PROCESSES
from agent_tui.errors import ToolError
from agent_tui.tools.processes import keeper_process
from agent_tui.tools.processes.keeper_process import FIRST_FILE, KeeperReply, Order

READ_BYTES = 65_536
"""Bytes of one read; also the usual capacity of a pipe."""

_DRAIN_S = 0.5
"""Seconds to read on after the child ended while something it started holds the pipe."""

_GONE_WITHIN_S = 5.0
"""Seconds to wait for the end of what was started; the keeper then continues without us."""

_GOODBYE_S = 0.5
"""Seconds for a child to exit once its input is closed."""

_KEEPER_COMMAND = (sys.executable, "-I", "-S", "-X", "utf8", keeper_process.__file__)
_KEEPER_ENDED = "The process that runs commands was killed from outside. Try again."
_WALL_FELL = "the sandbox of this conversation has ended. Run the command again for a new one."
_CONFINED_START_S = 10.0
"""Seconds for a sandbox to start a command; commands inside can stop the keeper there."""

_MOST_ANSWERS = 8
"""A guardian sends at most three messages; one in a sandbox may have been replaced."""

_MOST_ERROR_CHARS = 500
_MOST_PROCESSES, _MOST_SIGNALS, _MOST_CODES = 1 << 32, 128, 256


@dataclass(frozen=True, slots=True)
class Confinement:
    """A sandbox in which a keeper runs, with all its commands.

    Args:
        argv: The words before the keeper's own: a program that sets up the sandbox and starts it.
        outside: Starts that program, and ends it with the sandbox even after our own end.
        handles: Open file descriptors that it receives, by their numbers there. These
            are higher than those that are in use there: 100 or more.
    """

    argv: tuple[str, ...]
    outside: "ProcessKeeper"
    handles: Mapping[int, int] = field(default_factory=dict[int, int])


class Child:
    """A running child and the output of its whole group."""

    def __init__(self, output: asyncio.StreamReader, process: "_Process") -> None:
        self._output = output
        self._ending = process.ending
        self._gone = process.gone
        self._excess = process.excess

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        is_over = self._ending.done() and not self._ending.cancelled()
        return self._ending.result() if is_over else None

    @property
    def excess(self) -> int:
        """The process count at which it was killed for exceeding the limit; 0 if it was not."""
        return self._excess.result() if self._excess.done() else 0

    async def pause(self, most_s: float) -> None:
        """Wait this many seconds, or until everything that the child started has ended."""
        await asyncio.wait((self._gone,), timeout=most_s)

    def read_until_exit(self) -> AsyncGenerator[bytes, None]:
        """Output as it arrives, until the pipe closes or the child has ended and it is quiet.

        A background process that keeps the pipe open does not delay this.
        """
        return self._read_until(self._ending)

    def read_until_gone(self) -> AsyncGenerator[bytes, None]:
        """Output as it arrives, until everything that the child started has ended."""
        return self._read_until(self._gone)

    async def _read_until(
        self, end: "asyncio.Future[int] | asyncio.Future[None]"
    ) -> AsyncGenerator[bytes, None]:
        while True:
            read = asyncio.ensure_future(self._output.read(READ_BYTES))
            try:
                await asyncio.wait((read, end), return_when=asyncio.FIRST_COMPLETED)
                if not read.done():
                    await asyncio.wait((read,), timeout=_DRAIN_S)
                if not read.done():
                    return
                chunk = read.result()
            finally:
                read.cancel()
            if not chunk:
                await asyncio.wait((end,))
                return
            yield chunk


@dataclass(frozen=True, slots=True)
class TalkingChild:
    """A running child with pipes for all three streams, and its exit code.

    `ending` is negative for a signal.
    """

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    ending: "asyncio.Future[int]"


class _GuardedProcess:
    """A child of a guardian, for callers without an event loop.

    The guardian ends it and all it started when this object is closed or the program dies.
    """

    def __init__(self, lifeline: socket.socket) -> None:
        self._lifeline = lifeline
        self._unread = b""
        self._is_gone = False
        self.exit_code: int | None = None
        self.error = ""

    @property
    def is_over(self) -> bool:
        """Whether the child has ended, or could not be started."""
        return self.wait(0)

    def wait(self, timeout_s: float) -> bool:
        """Wait until the child has ended; returns whether it has."""
        until = time.monotonic() + timeout_s
        while self.exit_code is None and self._read(until):
            pass
        return self._is_gone or self.exit_code is not None

    def end(self) -> None:
        """Have the guardian end what is left, with SIGTERM first. Does not wait."""
        with suppress(OSError):
            self._lifeline.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End what is left, and wait until it is gone."""
        self.end()
        until = time.monotonic() + _GONE_WITHIN_S
        while self._read(until):
            pass
        self._lifeline.close()

    def _read(self, until: float) -> bool:
        """Read the guardian's next messages; false if none comes in time, or none will."""
        if self._is_gone:
            return False
        try:
            self._lifeline.settimeout(max(until - time.monotonic(), 0))
            chunk = self._lifeline.recv(READ_BYTES)
        except (TimeoutError, BlockingIOError):
            return False
        except OSError:
            chunk = b""
        self._is_gone = not chunk
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        for answer in map(_parse_answer, lines):
            self.exit_code = answer.get("exit_code", self.exit_code)
            self.error = answer.get("error", self.error)
        return not self._is_gone


class ProcessKeeper:
    """Starts child processes through a keeper process, which ends them even after our own end.

    It is started with the first child and ends with this object or the program, however that ends.
    Starting a child takes no longer than directly.

    A keeper in a sandbox is not trusted, as commands there may replace it: none of its process ids
    is used, and it is not restarted when it ends.

    Args:
        most_processes: A child with more processes at a time is killed with all of them (Linux).
        confinement: The sandbox; None for none.
    """

    def __init__(
        self,
        most_processes: int = MOST_PROCESSES,
        confinement: Confinement | None = None,
    ) -> None:
        self._most_processes = most_processes
        self._confinement = confinement
        self._fall = None if confinement is None else self._kill
        self._wall: _GuardedProcess | None = None
        self._is_killed = False
        self._groups = 0
        self._control: socket.socket | None = None
        self._sending = threading.Lock()
        self._finish: weakref.finalize[..., ProcessKeeper] | None = None

    @property
    def is_over(self) -> bool:
        """Whether the sandbox was started and has ended, or is being killed."""
        return self._wall is not None and (self._is_killed or self._wall.is_over)

    @property
    def is_in_use(self) -> bool:
        """Whether a group of children runs that is not vital."""
        return self._groups > 0

    def start(self) -> None:
        """Start the keeper process, if it has not been started.

        Raises:
            OSError: It cannot be started.
            ToolError: The keeper outside cannot start it.
        """
        if self._control is None:
            self._start()

    def close(self) -> None:
        """End the keeper process and all remaining children."""
        if self._finish is not None:
            self._finish()
        self._control = self._finish = None

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environ: Mapping[str, str],
        timeout_s: float,
        stdin: bytes = b"",
        keeps_stderr: bool = True,
    ) -> tuple[int, bytes]:
        """Run `argv` to its end, as `child_group` does. Blocking, in any thread.

        Returns:
            Its exit code (negative for a signal) and its output.

        Raises:
            ToolError: It cannot be started, or has not ended in `timeout_s` seconds.
        """
        order = self._order(argv, cwd, environ, keeps_stderr=keeps_stderr)
        with TemporaryFile() as output, TemporaryFile() as given:
            process = self._start_guarded(order, [output.fileno(), _fill(given, stdin)])
            try:
                if not process.wait(timeout_s):
                    raise ToolError(f"{argv[0]} did not end within {timeout_s:g} seconds")
            finally:
                process.close()
            if process.exit_code is None:
                raise _cannot_start(order, process.error or _KEEPER_ENDED)
            output.seek(0)
            return process.exit_code, output.read()

    @asynccontextmanager
    async def child_group(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environ: Mapping[str, str],
        stdin: bytes | None = None,
        files: Sequence[int] = (),
        keeps_stderr: bool = True,
        is_vital: bool = False,
    ) -> AsyncGenerator[Child, None]:
        """Start `argv` as the leader of a new session.

        On exit, and if the program dies, the child and all it started are ended, with SIGTERM
        first.

        Args:
            argv: Program and arguments; not passed through a shell.
            cwd: Working folder.
            environ: The complete environment.
            stdin: Its input; None is ``/dev/null``.
            files: Descriptors that it gets as `FIRST_FILE` and the next ones; at most
                `MOST_FILES`. They may be closed once it is started.
            keeps_stderr: Whether stderr is part of the output; otherwise it is discarded.
            is_vital: Whether it is continued if something stops it, and a sandbox ends with it.

        Raises:
            ToolError: The program or the folder does not exist.
        """
        order = self._order(argv, cwd, environ, keeps_stderr=keeps_stderr)
        order["goes_on"] = is_vital
        order["numbers"] = [FIRST_FILE + place for place in range(len(files))]
        reading, writing = os.pipe()
        with ExitStack() as handles:
            handles.callback(os.close, writing)
            output, transport = await _reader(reading)
            self._groups += not is_vital
            try:
                given = [writing]
                if stdin is not None:
                    given.append(_fill(handles.enter_context(TemporaryFile()), stdin))
                lifeline = self._lifeline([*given, *files], order)
                handles.close()
                async with _running(lifeline, order, self._fall) as process:
                    with self._falling_with(process.ending) if is_vital else nullcontext():
                        yield Child(output, process)
            finally:
                self._groups -= not is_vital
                transport.close()

    @asynccontextmanager
    async def talking_child(
        self, argv: Sequence[str], *, cwd: Path, environ: Mapping[str, str]
    ) -> AsyncGenerator[TalkingChild, None]:
        """Start `argv` as `child_group` does, with pipes for stdin, stdout and stderr.

        On exit its input is closed; if it does not exit soon after, it is killed.

        Raises:
            ToolError: The program or the folder does not exist.
        """
        order = self._order(argv, cwd, environ, keeps_stderr=False)
        with ExitStack() as handles, ExitStack() as ours:
            given: list[int] = []
            readers: list[asyncio.StreamReader] = []
            for _ in ("stdout", "stderr"):
                reading, writing = os.pipe()
                handles.callback(os.close, writing)
                given.append(writing)
                reader, transport = await _reader(reading)
                ours.callback(transport.close)
                readers.append(reader)
            taking, filling = os.pipe()
            handles.callback(os.close, taking)
            given.insert(1, taking)
            stdin = await _writer(filling)
            ours.callback(_drop_unsent, stdin)
            lifeline = self._lifeline(given, order)
            handles.close()
            async with _running(lifeline, order, self._fall) as process:
                try:
                    yield TalkingChild(stdin, readers[0], readers[1], process.ending)
                finally:
                    stdin.close()
                    await asyncio.wait((process.ending,), timeout=_GOODBYE_S)

    @contextmanager
    def _falling_with(self, ending: "asyncio.Future[int]") -> Generator[None]:
        """Kill the sandbox, if this keeper is in one, once `ending` is known in the block."""

        def fall(_ending: "asyncio.Future[int]") -> None:
            self._kill()

        ending.add_done_callback(fall)
        try:
            yield
        finally:
            ending.remove_done_callback(fall)

    def _kill(self) -> None:
        """Kill the sandbox: a command may have stopped the process that starts the others."""
        if self._wall is not None:
            self._is_killed = True
            self._wall.end()

    def _order(
        self, argv: Sequence[str], cwd: Path, environ: Mapping[str, str], *, keeps_stderr: bool
    ) -> Order:
        return Order(
            argv=list(argv),
            cwd=os.fspath(cwd),
            environ=dict(environ),
            keeps_stderr=keeps_stderr,
            most_processes=self._most_processes,
            numbers=[],
            goes_on=False,
        )

    def _lifeline(self, handles: Sequence[int], order: Order) -> socket.socket:
        """A connection to a new guardian, which receives `handles`."""
        ours, theirs = socket.socketpair()
        with theirs, self._sending:
            try:
                try:
                    self._send(theirs, handles)
                except (BrokenPipeError, ConnectionResetError) as error:  # it was killed since
                    self.close()
                    if self._confinement is not None:
                        raise ToolError(_WALL_FELL) from error
                    self._send(theirs, handles)
            except ToolError:
                ours.close()
                raise
            except OSError as error:
                ours.close()
                raise _cannot_start(order, error.strerror or str(error)) from error
        return ours

    def _send(self, lifeline: socket.socket, handles: Sequence[int]) -> None:
        control = self._control or self._start()
        socket.send_fds(control, [b"+"], [lifeline.fileno(), *handles])

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        wall = self._confinement
        with theirs:
            try:
                if wall is None:
                    process = _start_keeper(theirs)
                    self._finish = weakref.finalize(self, _close, ours, process)
                else:
                    self._wall = wall.outside._start_wall(wall, theirs)
                    self._finish = weakref.finalize(self, _close_wall, ours, self._wall, wall)
            except BaseException:
                ours.close()
                raise
        self._control = ours
        return ours

    def _start_wall(self, wall: Confinement, control: socket.socket) -> _GuardedProcess:
        """Start a keeper in `wall`, whose orders come from `control`; for as many processes."""
        order = Order(
            argv=[*wall.argv, *_KEEPER_COMMAND],
            cwd=os.sep,
            environ={},
            keeps_stderr=True,
            most_processes=0,  # each command inside has its own limit
            numbers=list(wall.handles),
            goes_on=True,
        )
        with Path(os.devnull).open("wb") as nowhere:
            return self._start_guarded(
                order, [nowhere.fileno(), control.fileno(), *wall.handles.values()]
            )

    def _start_guarded(self, order: Order, handles: Sequence[int]) -> _GuardedProcess:
        """Give `order` to a guardian.

        Raises:
            ToolError: There is no guardian, or it has just ended.
        """
        lifeline = self._lifeline(handles, order)
        try:
            lifeline.sendall(json.dumps(order).encode() + b"\n")
        except OSError as error:
            lifeline.close()
            raise _cannot_start(order, _KEEPER_ENDED) from error
        return _GuardedProcess(lifeline)


def _start_keeper(control: socket.socket) -> "subprocess.Popen[bytes]":
    """Start a keeper process outside, whose orders come from `control`."""
    return subprocess.Popen(
        _KEEPER_COMMAND,
        stdin=control.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=os.sep,
        env={},
        start_new_session=True,
    )


def _close(control: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    control.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GONE_WITHIN_S)


def _close_wall(control: socket.socket, process: _GuardedProcess, _wall: Confinement) -> None:
    """Let the keeper inside end its commands, then end the sandbox.

    `_wall` keeps the keeper outside alive for as long.
    """
    control.close()
    process.wait(_GONE_WITHIN_S)
    process.close()


async def _reader(handle: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """Read from `handle`, which closes with the transport."""
    output = asyncio.StreamReader(limit=READ_BYTES)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(output), os.fdopen(handle, "rb", 0)
    )
    return output, transport


async def _writer(handle: int) -> asyncio.StreamWriter:
    """Write to `handle`, which closes with the writer."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(handle, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _drop_unsent(writer: asyncio.StreamWriter) -> None:
    """Drop what an ended child did not read; otherwise its handle would stay open."""
    if writer.transport.get_write_buffer_size() or not writer.is_closing():
        writer.transport.abort()


def _fill(file: IO[bytes], content: bytes) -> int:
    """Write `content` to `file` (a pipe holds less) and rewind it; returns its descriptor."""
    file.write(content)
    file.seek(0)
    return file.fileno()


@dataclass(frozen=True, slots=True)
class _Process:
    """A running command.

    `ending` is its exit code (negative for a signal), `gone` is set when all of its processes have
    ended, `excess` is the process count at which it was killed for exceeding the limit.
    """

    ending: "asyncio.Future[int]"
    gone: "asyncio.Future[None]"
    excess: "asyncio.Future[int]"


@asynccontextmanager
async def _running(
    lifeline: socket.socket, order: Order, fall: Callable[[], None] | None
) -> AsyncGenerator[_Process, None]:
    """Run `order`. On exit all its processes are ended.

    Args:
        lifeline: Connection to a guardian.
        order: What to start.
        fall: Kills the sandbox around a guardian that does not answer; None without a sandbox.
    """
    try:
        answers, orders = await asyncio.open_connection(sock=lifeline)
    except BaseException:
        lifeline.close()
        raise
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[int] = loop.create_future()
    excess: asyncio.Future[int] = loop.create_future()
    gone: asyncio.Future[None] | None = None
    try:
        orders.write(json.dumps(order).encode() + b"\n")
        try:
            within_s = None if fall is None else _CONFINED_START_S
            async with asyncio.timeout(within_s):  # `wait_for` may swallow a cancellation
                started = await _answer(answers)
        except TimeoutError:
            started = KeeperReply()
        is_told = "pid" in started or "error" in started
        if not is_told and fall is not None:
            fall()
            raise ToolError(_WALL_FELL)
        if "pid" not in started:
            raise _cannot_start(order, started.get("error", _KEEPER_ENDED))
        gone = asyncio.ensure_future(_follow(answers, ending, excess))
        yield _Process(ending, gone, excess)
    finally:
        try:
            await _until_gone(answers, orders, gone)
        finally:
            ending.cancel()


async def _until_gone(
    answers: asyncio.StreamReader,
    orders: asyncio.StreamWriter,
    gone: "asyncio.Future[None] | None",
) -> None:
    gone = gone or asyncio.ensure_future(_end_of(answers))
    try:
        with suppress(OSError):
            orders.write_eof()
        await asyncio.wait((gone,), timeout=_GONE_WITHIN_S)
    finally:
        gone.cancel()
        orders.close()
    with suppress(OSError):
        await orders.wait_closed()


async def _follow(
    answers: asyncio.StreamReader,
    ending: "asyncio.Future[int]",
    excess: "asyncio.Future[int]",
) -> None:
    """Set the exit code and the excess process count as they are reported, until the end."""
    for _ in range(_MOST_ANSWERS):
        answer = await _answer(answers)
        if not answer:
            break
        if "excess" in answer and not excess.done():
            excess.set_result(answer["excess"])
        elif "exit_code" in answer and not ending.done():
            ending.set_result(answer["exit_code"])
    if not ending.done():
        ending.set_result(-signal.SIGKILL)


async def _end_of(answers: asyncio.StreamReader) -> None:
    with suppress(OSError):
        await answers.read()


async def _answer(answers: asyncio.StreamReader) -> KeeperReply:
    """The guardian's next message; empty if it has ended or sends something invalid."""
    try:
        return _parse_answer(await answers.readline())
    except (OSError, ValueError):  # the line is too long
        return {}


def _parse_answer(line: bytes) -> KeeperReply:
    """A guardian's message; empty if it is none."""
    try:
        said: object = json.loads(line or b"{}")
    except (ValueError, RecursionError):
        return {}
    match said:
        case {"pid": int(pid)}:
            return {"pid": pid}
        case {"error": str(error)}:
            return {"error": error[:_MOST_ERROR_CHARS]}
        case {"excess": int(excess)} if 0 < excess < _MOST_PROCESSES:
            return {"excess": excess}
        case {"exit_code": int(code)} if -_MOST_SIGNALS < code < _MOST_CODES:
            return {"exit_code": code}
        case _:
            return {}


def _cannot_start(order: Order, why: str) -> ToolError:
    return ToolError(f"{order['argv'][0]} cannot be started in {order['cwd']}: {why}")
