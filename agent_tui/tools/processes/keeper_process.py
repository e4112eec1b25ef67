"""The process that starts commands and ends all they started: ``python -I -S keeper_process.py``.

It keeps a guardian ready, a fork of itself, for what the program sends through the socket that is
their stdin: one byte, with the descriptors of a lifeline, of the command's output and, if used, of
its input, its stderr and others for it. The guardian reads an `Order` from the lifeline, starts the
command as leader of a new session and reports on the lifeline. When the program closes its end, or
dies, the guardian ends what is left of the command; its own end closes when everything is gone, and
it waits again. A guardian whose keeper process is killed ends its command, too.

On Linux a guardian is the reaper of its command's orphans, so that none escapes by forking twice or
with a new session; this process is the reaper for a guardian that was killed. Elsewhere only
processes that stay in the command's process group are found. Neither can end processes of another
user (``sudo``).

Started without site-packages. Guardians are forked in advance and reused, as a Python fork takes
longer than starting a command. Neither has the program's name in its command line: who kills all
that has it (``pkill -9 -f agent-tui``) leaves those that end the commands.
"""

import ctypes
import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypedDict

_TERM_GRACE_S = 0.5
"""Seconds between SIGTERM and SIGKILL."""

_KILL_PATIENCE_S = 10.0
"""Seconds; what the kernel has not ended by then (it waits for a dead disk) is abandoned."""

_COUNT_AGAIN_S = 0.1
"""Seconds between checks whether a command has too many processes."""

_COUNT_ANYWAY_S = 10.0
"""Seconds after which to count anyway: processes that ended hide new ones in the total."""

_LOOK_AGAIN_S = 0.01
"""Seconds; by then killed processes may be gone, or another process may fit."""

_NO_MORE_ORDERS = 3
"""The exit code of a guardian whose program ended while it waited."""

_SWEEPS = 20
"""How often the children are killed before all processes of the machine are looked at."""

KEEPER_NAME = b"command-keeper"
"""What lists of processes show (Linux)."""

_FAILED = 1
_WORKS, _WAITS = b"works", b"waits"
_PR_SET_DUMPABLE, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 4, 15, 36
_ARGUMENTS = slice(45, 47)
"""Where ``/proc/PID/stat`` has ``arg_start`` and ``arg_end``, counted after the name."""

_IS_LINUX = sys.platform == "linux"
FIRST_FILE, MOST_FILES = (512, 240) if _IS_LINUX else (100, 64)
"""The number under which a command finds the first file it is given, besides its streams, and how
many these can be. The process that starts it uses the lower numbers. Linux sends 253 descriptors at
once and usually lets a program open 1,024; macOS lets it open 256."""

_MOST_HANDLES = 8 + MOST_FILES
_UNHEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that a command cannot use against its parent, the guardian."""


class Order(TypedDict):
    """What to start: program and arguments, working folder, complete environment.

    With more than `most_processes` at a time, all of them are killed (on Linux); 0 is no limit.
    `numbers` are those under which the command gets the last descriptors that were sent. A command
    that `goes_on` is continued if something stops it, and all it started is killed when it ends.
    """

    argv: list[str]
    cwd: str
    environ: dict[str, str]
    keeps_stderr: bool
    most_processes: int
    numbers: list[int]
    goes_on: bool


class KeeperReply(TypedDict, total=False):
    """A guardian's message: that the command runs, why it does not, how it ended.

    `excess` is the process count at which it was killed.
    """

    pid: int
    error: str
    excess: int
    exit_code: int


class _Process(NamedTuple):
    """A process (negative: a whole group) and the id of its group."""

    pid: int
    group: int


class _Wakeups:
    """Waits for readable input and for the end of children at the same time.

    Signals that would end this process only wake it; unlike ignoring them, this is not inherited by
    commands.
    """

    def __init__(self) -> None:
        self._ended, self._noting = socket.socketpair()
        self._ended.setblocking(False)
        self._noting.setblocking(False)
        for number in (signal.SIGCHLD, *_UNHEEDED):
            signal.signal(number, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._noting.fileno(), warn_on_full_buffer=False)

    def wait(self, *sources: socket.socket, limit_s: float | None = None) -> list[socket.socket]:
        """Wait until a child has ended, one of `sources` is readable or the time is up.

        Returns:
            Those that are readable.
        """
        readable, _, _ = select.select([self._ended, *sources], [], [], limit_s)
        with suppress(BlockingIOError):
            while self._ended.recv(512):
                pass
        return [source for source in sources if source in readable]


class _Census:
    """Detects when this process has more than `most` living descendants.

    Counting reads a file for each process on the machine, so it happens only if enough new ones
    have started to get halfway from the last count to `most`, and at intervals.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._room = most
        self._due = _tasks_of_machine() + most // 2
        self._last_count = time.monotonic()

    def excess(self) -> int:
        """How many there are if they are too many, else 0."""
        tasks = _tasks_of_machine()
        self._due = min(self._due, tasks + self._room // 2)
        if tasks < self._due and time.monotonic() < self._last_count + _COUNT_ANYWAY_S:
            return 0
        count = len(_descendants(spared=()))
        self._last_count = time.monotonic()
        self._room = self._most - count
        self._due = tasks + self._room // 2
        return count if self._room < 0 else 0


class _Guardian:
    """Ends one command and everything it started. Runs in a separate process.

    Args:
        wakeups: Tells when a child has ended.
        lifeline: The program's, readable once it is closed.
        keeper: The keeper process's, readable once that has ended.
        handles: What was sent for the command.
    """

    def __init__(
        self,
        wakeups: _Wakeups,
        lifeline: socket.socket,
        keeper: socket.socket,
        handles: list[int],
    ) -> None:
        self._wakeups = wakeups
        self._lifeline = lifeline
        self._keeper = keeper
        self._handles = handles
        self._leader = 0
        self._goes_on = self._is_leader_over = False

    def run(self) -> bool:
        """Start the command and wait for its end; returns whether nothing of it is left."""
        try:
            with self._lifeline.makefile("rb") as orders:
                order: Order = json.loads(orders.readline())
            most = order["most_processes"]
            census = _Census(most) if most and _IS_LINUX else None
            self._goes_on = order["goes_on"]
            self._leader = _start(order, self._handles)
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            self._tell({"error": why})
            return True
        finally:
            for handle in self._handles:
                os.close(handle)
        self._tell({"pid": self._leader})
        limit_s = _COUNT_AGAIN_S if census else None
        while self._is_any_left():
            if self._goes_on and self._is_leader_over:
                return self._kill_all()
            if self._wakeups.wait(self._lifeline, self._keeper, limit_s=limit_s):
                return self._end_all()
            if census and (excess := census.excess()):
                self._tell({"excess": excess})
                return self._kill_all()
        return True

    def _end_all(self) -> bool:
        """End what is left, with time for cleanup; returns whether nothing is left."""
        _signal_all([process.pid for process in self._living()], signal.SIGTERM)
        deadline = time.monotonic() + _TERM_GRACE_S
        while self._is_any_left() and (left_s := deadline - time.monotonic()) > 0:
            self._wakeups.wait(limit_s=left_s if _IS_LINUX else _LOOK_AGAIN_S)
        return self._kill_all()

    def _kill_all(self) -> bool:
        """Kill what is left; returns whether nothing is left."""
        deadline = time.monotonic() + _KILL_PATIENCE_S
        while self._is_any_left() and time.monotonic() < deadline:
            is_any = _kill(self._living())
            if not (_kill_children(spared=()) or is_any):
                break
            self._wakeups.wait(limit_s=_LOOK_AGAIN_S)
        return not self._is_any_left()

    def _is_any_left(self) -> bool:
        """Whether any process of the command runs; on Linux, orphans are our children."""
        try:
            while True:
                pid, status = _wait_for_any(goes_on=self._goes_on)
                if pid == 0:
                    return True
                if pid == self._leader:
                    self._is_leader_over = True
                    self._tell({"exit_code": os.waitstatus_to_exitcode(status)})
        except ChildProcessError:
            return not _IS_LINUX and _signal_all([-self._leader], 0)

    def _living(self) -> list[_Process]:
        if _IS_LINUX:
            return _descendants(spared=())
        return [_Process(-self._leader, self._leader)]

    def _tell(self, answer: KeeperReply) -> None:
        with suppress(OSError):  # nobody is listening any more
            self._lifeline.sendall(json.dumps(answer).encode() + b"\n")


def main() -> None:
    """Keep a guardian ready until the program ends, and stay until the last one has ended."""
    _become_reaper()
    _close_memory()
    _take_name()
    control = socket.socket(fileno=0)
    # A datagram socket could send to any address, which some sandboxes forbid. macOS has no other
    # kind that keeps messages apart.
    kind = socket.SOCK_SEQPACKET if _IS_LINUX else socket.SOCK_DGRAM
    news, telling = socket.socketpair(type=kind)
    wakeups = _Wakeups()
    guardians: set[int] = set()
    waiting: set[int] = set()
    is_wanted, kills_until = True, 0.0
    while is_wanted or guardians or kills_until:
        if is_wanted and not waiting:
            waiting = _fork_guardian(control, news, telling)
            guardians |= waiting
        is_short = is_wanted and not waiting
        if wakeups.wait(news, limit_s=_LOOK_AGAIN_S if is_short or kills_until else None):
            kind, pid = news.recv(32).split()
            (waiting.add if kind == _WAITS else waiting.discard)(int(pid))
        ended = _reap()
        guardians -= ended.keys()
        waiting &= guardians
        is_wanted &= _NO_MORE_ORDERS not in ended.values()
        if not {0, _NO_MORE_ORDERS}.issuperset(ended.values()):
            kills_until = time.monotonic() + _KILL_PATIENCE_S
        if kills_until and not _has_killed_strays(guardians, kills_until):
            kills_until = 0.0


def _fork_guardian(control: socket.socket, news: socket.socket, telling: socket.socket) -> set[int]:
    """Fork a guardian that waits for an order; its process id, or none if there is no room."""
    try:
        pid = os.fork()
    except OSError:
        return set()
    if pid == 0:
        exit_code = _FAILED
        try:
            news.close()  # otherwise sending would succeed without any receiver
            exit_code = _guard(control, telling)
        finally:
            os._exit(exit_code)
    return {pid}


def _guard(control: socket.socket, telling: socket.socket) -> int:
    """Run as a guardian; returns its exit code."""
    _become_reaper()
    wakeups = _Wakeups()
    while True:
        if telling in wakeups.wait(control, telling):
            return 0  # the keeper process has ended
        try:
            asked, handles, _, _ = socket.recv_fds(control, 1, _MOST_HANDLES, socket.MSG_DONTWAIT)
        except BlockingIOError:  # a signal, or another guardian has the order
            continue
        if not asked:
            return _NO_MORE_ORDERS
        _note(telling, _WORKS)
        for handle in handles:
            os.set_inheritable(handle, False)
        with socket.socket(fileno=handles[0]) as lifeline:
            if not _Guardian(wakeups, lifeline, telling, handles[1:]).run():
                return _FAILED
        if not _note(telling, _WAITS):
            return 0


def _note(telling: socket.socket, what: bytes) -> bool:
    """Report a guardian's state to the process that forked it; false if that has ended."""
    try:
        telling.send(b"%b %d" % (what, os.getpid()))
    except OSError:
        return False
    return True


def _wait_for_any(*, goes_on: bool) -> tuple[int, int]:
    """A child that has ended, and its status; 0 if none has.

    Args:
        goes_on: Whether stopped children are continued.

    Raises:
        ChildProcessError: There is no child.
    """
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG | (os.WUNTRACED if goes_on else 0))
        if not (pid and os.WIFSTOPPED(status)):
            return pid, status
        _signal_all([pid], signal.SIGCONT)


def _reap() -> dict[int, int]:
    """The children that have ended, with their exit codes.

    A command can stop a guardian, which is continued: the kernel reports it like an end.
    """
    ended: dict[int, int] = {}
    with suppress(ChildProcessError):
        while (child := _wait_for_any(goes_on=True))[0]:
            ended[child[0]] = os.waitstatus_to_exitcode(child[1])
    return ended


def _has_killed_strays(guardians: set[int], until: float) -> bool:
    """Kill what a killed guardian has left to us; returns whether there may be more."""
    if not _IS_LINUX or time.monotonic() > until:
        return False
    is_any = _kill(_descendants(spared=guardians))
    return _kill_children(spared=guardians) or is_any


def _start(order: Order, handles: list[int]) -> int:
    """Start the command; returns its process id.

    Raises:
        OSError: There is no such program or folder, or no room for a process.
        ValueError: An argument cannot be passed to a program.
    """
    numbers = order["numbers"]
    count = len(handles) - len(numbers)
    if numbers and max(handles) >= min(numbers):  # one would take the place of another
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    output, *more = handles[:count]
    shared = output if order["keeps_stderr"] else subprocess.DEVNULL
    try:
        for handle, number in zip(handles[count:], numbers, strict=True):
            os.dup2(handle, number)
        process = subprocess.Popen(
            order["argv"],
            stdin=more[0] if more else subprocess.DEVNULL,
            stdout=output,
            stderr=more[1] if len(more) > 1 else shared,
            cwd=order["cwd"],
            env=order["environ"],
            start_new_session=True,
            pass_fds=numbers,
        )
    finally:
        for number in numbers:
            with suppress(OSError):
                os.close(number)
    process.returncode = 0  # it is reaped with the others, not by this object
    return process.pid


def _tasks_of_machine() -> int:
    """How many processes and threads the machine has; 0 if unknown."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/loadavg").read_bytes().split()[3].partition(b"/")[2])
    return 0


def _descendants(spared: Collection[int]) -> list[_Process]:
    """Living processes below this one, parents first, without `spared` and their descendants."""
    children: defaultdict[int, list[tuple[_Process, bytes]]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it has ended
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split(maxsplit=3)
                process = _Process(int(folder.name), int(fields[2]))
                children[int(fields[1])].append((process, fields[0]))
    found: list[_Process] = []
    parents = [os.getpid()]
    for parent in parents:
        for process, state in children[parent]:
            if process.pid not in spared:
                parents.append(process.pid)
                found += [process] if state not in b"ZX" else []
    return found


def _kill_children(spared: Collection[int]) -> bool:
    """Kill the children of this process; returns whether any is left that could be signalled.

    What forks and ends again and again has another id, and group, before a look at all processes
    finds it. But each orphan is our child at once, and the kernel lists these in microseconds.
    """
    ours = set(spared)
    return all(_signal_all(_children() - ours, signal.SIGKILL) for _ in range(_SWEEPS))


def _children() -> set[int]:
    """The children of this process; none if the system has no list of them."""
    with suppress(OSError):
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_bytes()
        return set(map(int, listed.split()))
    return set()


def _kill(processes: Sequence[_Process]) -> bool:
    """Kill `processes` and their groups; returns whether any existed and could be signalled.

    Each command is its own session, so its groups contain no other processes. The last, which are
    the deepest, come first: if this process is killed meanwhile, other guardians are left.
    """
    deepest, own = processes[::-1], {0, os.getpgrp()}
    groups = dict.fromkeys(process.group for process in deepest if process.group not in own)
    is_any = _signal_all([-group for group in groups], signal.SIGKILL)
    return _signal_all([process.pid for process in deepest], signal.SIGKILL) or is_any


def _signal_all(pids: Iterable[int], number: int) -> bool:
    """Signal processes (negative: groups); returns whether any could be signalled."""
    is_any = False
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            is_any = True
    return is_any


def _become_reaper() -> None:
    if _IS_LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _take_name() -> None:
    """Replace the command line of this process, and of those that it forks, by `KEEPER_NAME`."""
    if _IS_LINUX:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = map(int, fields[_ARGUMENTS])
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, KEEPER_NAME, len(KEEPER_NAME))
        ctypes.CDLL(None).prctl(_PR_SET_NAME, KEEPER_NAME, 0, 0, 0)


def _close_memory() -> None:
    """Protect this process and the guardians from ptrace by commands of the same user."""
    if _IS_LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


if __name__ == "__main__":
    main()
