"""Runs a program inside Landlock and seccomp: ``landlock_launcher.py ORDER -- PROGRAM``.

Started with ``python -I -S`` and without any of our modules. It forks: the child confines itself
and becomes the program; this process stays outside and creates the IP sockets that are requested
inside, each bound to the loopback device, which only a process with ``CAP_NET_RAW`` could undo. If
this process ends, so does the program; from then on no socket is created. If its parent ends, this
process ends all that runs inside. It writes the inode of each socket to the descriptor `NOTES`, if
that is open, before it hands the socket out.

Calls and structures are those of ``linux/landlock.h`` and ``linux/seccomp.h``. They have the same
numbers on all machines that `seccomp` has a filter for, except ``seccomp(2)`` itself.
"""

import base64
import ctypes
import errno
import fcntl
import json
import os
import platform
import select
import signal
import socket
import stat
import struct
import sys
import threading
import zlib
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TypedDict


class Order(TypedDict):
    """What the wall allows; JSON, compressed, in base64.

    `rules` are paths with a kind of access each: ``read`` (and run), ``write`` (and all of
    ``read``), ``use`` (a device). `filter` is for seccomp, in base64.
    """

    rules: list[tuple[str, str]]
    filter: str


NOTES, INODE = 102, struct.Struct("=Q")
"""The descriptor that gets the inodes of sockets, and the form of each."""

_FAILED = 125
"""The exit code if the wall could not be set up; the program was not started then."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER = 1, 24, 36
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 38, 47
_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
_MOST_CAPABILITIES = 64

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES = 1 << 6 | 1 << 11
_REFER, _TRUNCATE, _USE_DEVICE = 1 << 13, 1 << 14, 1 << 15
_ALL = (1 << 13) - 1
"""What the first version of Landlock supports."""
_LATER = {2: _REFER, 3: _TRUNCATE, 5: _USE_DEVICE}
"""What each later version added."""
_OLDEST = 2
"""Before this version no file could be moved to another folder."""
_SCOPES_SINCE, _ABSTRACT_SOCKETS_AND_SIGNALS = 6, 3
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_KINDS = {
    "read": _READ,
    "write": (_ALL & ~_MAKE_DEVICES) | _REFER | _TRUNCATE,
    "use": _READ_FILE | _WRITE_FILE | _TRUNCATE | _USE_DEVICE,
}
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _USE_DEVICE
_PATH_BENEATH = 1

_SET_MODE_FILTER, _WITH_LISTENER = 1, 1 << 3
_RECEIVE, _ANSWER, _ADD_HANDLE = 0xC0502100, 0xC0182101, 0x40182103
_NOTIFICATION, _NUMBER_OF_BYTES = struct.Struct("=QIIiIQ6Q"), 80
_REPLY, _HANDLE = struct.Struct("=QqiI"), struct.Struct("=QIIII")
_AND_ANSWER = 2
_TYPE_MASK = 0xF
_SYN_RETRIES = 1
"""A connection to another machine fails after three seconds, not after two minutes."""

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Set up the wall and run the program in it; exits with the program's exit code."""
    order: Order = json.loads(zlib.decompress(base64.b64decode(sys.argv[1])))
    program = sys.argv[sys.argv.index("--") + 1 :]
    ours, theirs = socket.socketpair()
    outside, starter = os.getpid(), os.pidfd_open(os.getppid())
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if not child:
        ours.close()
        os.close(starter)
        _become(order, program, theirs, outside)
    theirs.close()
    _, handles, _, _ = socket.recv_fds(ours, 1, 1)
    _let_go_of_input()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_keep_going, args=(child,), daemon=True).start()
    if handles:
        _make_sockets(handles[0], {os.pidfd_open(child), starter})
        os.kill(child, signal.SIGKILL)  # no effect if it has ended
    _, status = os.waitpid(child, 0)
    _end_orphans()
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


def _let_go_of_input() -> None:
    """Close our copy of the input, so that its other end notices when the program closes it."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _end_orphans() -> None:
    """End what the program left running: all of it becomes a child of this process in turn."""
    with suppress(ChildProcessError):
        while True:
            for pid in _children():
                with suppress(OSError):  # it has ended
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _children() -> list[int]:
    """The children of this process, by the kernel's list if it has one: programs may fork fast."""
    parent = os.getpid()
    with suppress(FileNotFoundError):
        listed = Path(f"/proc/self/task/{parent}/children").read_bytes()
        return list(map(int, listed.split()))
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            found += [int(folder.name)] if int(fields[1]) == parent else []
    return found


def _become(order: Order, program: list[str], outside: socket.socket, parent: int) -> NoReturn:
    """Confine this process, hand out the listener, and become the program."""
    try:
        _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        if os.getppid() != parent:
            os._exit(_FAILED)
        _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        with suppress(OSError):  # there is none
            os.close(NOTES)
        _drop_capabilities()
        _restrict_files(order["rules"])
        listener = _filter_calls(base64.b64decode(order["filter"]))
        socket.send_fds(outside, [b"+"], [listener])
        os.close(listener)
        outside.close()
        os.execvp(program[0], program)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        sys.stderr.write(f"the wall cannot be put up: {error.strerror}{where}\n")
        sys.stderr.flush()
        os._exit(_FAILED)


def _check(result: int) -> int:
    """Return the result of a C library or kernel call, unless it is an error."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _drop_capabilities() -> None:
    """Drop root's capabilities for good: ``no_new_privs`` prevents getting them back."""
    for number in range(_MOST_CAPABILITIES):  # fails harmlessly for missing numbers and
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # if this process has none
    _libc.prctl(_PR_CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header, none = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24)
    _check(_libc.syscall(_CAPSET[platform.machine()], header, none))


def _restrict_files(rules: list[tuple[str, str]]) -> None:
    version = _check(_libc.syscall(_CREATE_RULESET, None, 0, 1))
    if version < _OLDEST:
        raise OSError(errno.ENOSYS, "the kernel's Landlock is too old")
    known = _ALL
    for since, right in _LATER.items():
        known |= right if version >= since else 0
    scopes = _ABSTRACT_SOCKETS_AND_SIGNALS if version >= _SCOPES_SINCE else 0
    handled = struct.pack("=QQQ", known, 0, scopes)[: 24 if scopes else 8]
    ruleset = _check(_libc.syscall(_CREATE_RULESET, handled, len(handled), 0))
    for path, kind in rules:
        with suppress(FileNotFoundError, PermissionError):  # gone since, or not visible to us
            _add_rule(ruleset, path, _KINDS[kind] & known)
    _check(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _add_rule(ruleset: int, path: str, rights: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, handle)
        _check(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(handle)


def _filter_calls(instructions: bytes) -> int:
    """Apply the filter to this process and its children; returns its listener."""
    code = ctypes.create_string_buffer(instructions, len(instructions))
    program = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(code))
    number = _SECCOMP[platform.machine()]
    return _check(_libc.syscall(number, _SET_MODE_FILTER, _WITH_LISTENER, program))


def _keep_going(child: int) -> None:
    """Continue the program whenever a command stops it: it starts all commands."""
    with suppress(ChildProcessError, ProcessLookupError):
        while True:
            os.waitid(os.P_PID, child, os.WSTOPPED)
            os.kill(child, signal.SIGCONT)


def _make_sockets(listener: int, needed: set[int]) -> None:
    """Create the requested sockets until one of the processes `needed` has ended."""
    waiting = select.poll()
    for handle in (listener, *needed):
        waiting.register(handle, select.POLLIN)
    while True:
        ready = dict(waiting.poll())
        if needed & ready.keys():
            return
        if ready[listener] & select.POLLIN:
            with suppress(OSError):  # the requester has ended, or a signal interrupted it
                _answer(listener)


def _answer(listener: int) -> None:
    asked = bytearray(_NUMBER_OF_BYTES)
    fcntl.ioctl(listener, _RECEIVE, asked)
    question, _, _, _, _, _, family, kind, protocol, *_ = _NOTIFICATION.unpack(asked)
    try:
        made = _loopback_socket(family, kind, protocol)
    except OSError as error:
        number = error.errno or errno.EPERM
        fcntl.ioctl(listener, _ANSWER, bytearray(_REPLY.pack(question, 0, -number, 0)))
        return
    with made:
        with suppress(OSError):  # nobody wants to know
            os.write(NOTES, INODE.pack(os.fstat(made.fileno()).st_ino))
        flags = kind & socket.SOCK_CLOEXEC
        given = _HANDLE.pack(question, _AND_ANSWER, made.fileno(), 0, flags)
        fcntl.ioctl(listener, _ADD_HANDLE, bytearray(given))


def _loopback_socket(family: int, kind: int, protocol: int) -> socket.socket:
    """A TCP socket that is bound to the loopback device.

    No other kind: a UDP query to this machine's resolver would send names outside.

    Raises:
        OSError: It is not a TCP socket, or the machine has no loopback.
    """
    if kind & _TYPE_MASK != socket.SOCK_STREAM or protocol not in (0, socket.IPPROTO_TCP):
        raise OSError(errno.EPROTONOSUPPORT, "")
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, _SYN_RETRIES)
    except OSError:
        made.close()
        raise
    return made


if __name__ == "__main__":
    main()
