import errno
import platform
import re
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.features.sandbox.seccomp import CHECKED, REFUSED, SHARED_MEMORY, filter_program
from tests.support.rows import each_row
from tests.support.sandbox import needs_bwrap

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_ALL = REFUSED | SHARED_MEMORY | CHECKED
_ALLOW, _ASK, _KILL, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x80000000, 0x00050000
_HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def verdict(program: bytes, number: int, *arguments: int, machine: str) -> int:
    """Run the filter as the kernel would on this call (``struct seccomp_data``)."""
    padded = [argument & (1 << 64) - 1 for argument in (*arguments, *[0] * 6)][:6]
    data = struct.pack("=iIQ6Q", number, _AUDIT[machine], 0, *padded)
    instructions = list(struct.iter_unpack("=HBBI", program))
    at, value = 0, 0
    while True:
        opcode, if_true, if_false, operand = instructions[at]
        at += 1
        match opcode:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x54:
                value &= operand
            case 0x06:
                return operand
            case 0x15:
                at += if_true if value == operand else if_false
            case 0x35:
                at += if_true if value >= operand else if_false
            case 0x45:
                at += if_true if value & operand else if_false
            case _:
                raise AssertionError(f"no such opcode: {opcode:#x}")


def name_of(action: int) -> str:
    if action & 0xFFFF0000 == _ERRNO:
        return errno.errorcode[action & 0xFFFF]
    return {_ALLOW: "allowed", _ASK: "asked", _KILL: "killed"}[action]


def call(machine: str, name: str, *arguments: int, has_own_spaces: bool = True) -> str:
    number = getattr(_ALL[name], machine)
    program = filter_program(machine, has_own_spaces=has_own_spaces)
    return name_of(verdict(program, number, *arguments, machine=machine))


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_numbers_are_those_of_the_kernels_tables(machine: str):
    if not _HEADERS[machine].exists():
        pytest.skip("no headers of the kernel here")
    text = _HEADERS[machine].read_text()
    listed = {name: int(number) for name, number in re.findall(r"__NR_(\w+)\s+(\d+)\b", text)}
    ours = {name: getattr(numbers, machine) for name, numbers in _ALL.items()}
    newer = {"open_tree_attr"}
    assert {name: number for name, number in ours.items() if number != listed.get(name)} == {
        name: ours[name] for name in newer - listed.keys()
    }


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("has_own_spaces", [True, False])
def test_each_refused_call_is_refused_and_every_other_allowed(machine: str, has_own_spaces: bool):
    program = filter_program(machine, has_own_spaces=has_own_spaces)
    refused = REFUSED if has_own_spaces else REFUSED | SHARED_MEMORY
    numbers = {getattr(of, machine) for of in refused.values()} - {None}
    checked = {getattr(of, machine) for of in CHECKED.values()}
    for number in range(600):
        if number not in checked:
            expected = "EPERM" if number in numbers else "allowed"
            assert name_of(verdict(program, number, machine=machine)) == expected, number


@each_row("machine", ["x86_64", "aarch64"])
@each_row(
    ("name", "arguments", "expected"),
    [
        ("clone", (0x01200011,), "allowed"),  # what fork is
        ("clone", (0x3D0F00,), "allowed"),  # a thread
        ("clone", (0x10000011,), "EPERM"),
        ("clone", (0x00020011,), "EPERM"),
        ("clone", (0x40000011,), "EPERM"),
        ("clone", (0xFFFFFFFF_10000011,), "EPERM"),
        ("clone3", (0x7FFF0000, 88), "ENOSYS"),
        ("unshare", (0x400,), "allowed"),  # of open files
        ("unshare", (0x10000000,), "EPERM"),
        ("unshare", (0x80,), "EPERM"),
        ("ioctl", (0, 0x5401), "allowed"),
        ("ioctl", (0, 0x5412), "EPERM"),
        ("ioctl", (0, 0xFFFFFFFF_00005412), "EPERM"),  # the kernel looks at half of it
        ("ioctl", (0, 0x541C), "EPERM"),
        ("socket", (1, 1, 0), "allowed"),
        ("socket", (2, 1, 0), "allowed"),
        ("socket", (10, 2, 0), "allowed"),
        ("socket", (16, 3, 0), "allowed"),  # routes
        ("socket", (16, 3, 9), "EPERM"),  # the audit log
        ("socket", (17, 3, 0), "EPERM"),  # packets
        ("socket", (38, 5, 0), "EPERM"),  # the kernel's ciphers
        ("socket", (40, 1, 0), "EPERM"),  # the machine's host
        ("socketpair", (1, 2, 0), "allowed"),
        ("fanotify_init", (0x200, 0), "EPERM"),
        ("prlimit64", (1, 7), "allowed"),
    ],
)
def test_some_calls_depend_on_their_arguments(
    machine: str, name: str, arguments: tuple[int, ...], expected: str
):
    assert call(machine, name, *arguments) == expected


@each_row("machine", ["x86_64", "aarch64"])
@each_row(
    ("name", "arguments", "expected"),
    [
        ("socket", (1, 1, 0), "EPERM"),
        ("socket", (2, 1, 0), "asked"),
        ("socket", (10, 1, 0), "asked"),
        ("socket", (16, 3, 0), "allowed"),
        ("socketpair", (1, 1 | 0o2000000, 0), "allowed"),
        ("socketpair", (1, 5 | 0o4000, 0), "allowed"),
        ("socketpair", (1, 2 | 0o2000000, 0), "EPERM"),  # such a one sends to any name
        ("socketpair", (1, 3, 0), "EPERM"),  # the kernel makes it one of datagrams
        ("socketpair", (1, 3 | 0o2004000, 0), "EPERM"),
        ("socketpair", (1, 4, 0), "EPERM"),
        ("socketpair", (30, 1, 0), "EPERM"),  # TIPC
        ("semop", (7,), "EPERM"),
        ("semtimedop", (7,), "EPERM"),
        ("prlimit64", (0, 7), "allowed"),
        ("prlimit64", (1234, 7), "EPERM"),
    ],
)
def test_without_spaces_of_its_own_less_is_allowed(
    machine: str, name: str, arguments: tuple[int, ...], expected: str
):
    assert call(machine, name, *arguments, has_own_spaces=False) == expected


def test_no_other_table_of_calls_is_a_way_round():
    program = filter_program("x86_64")
    assert name_of(verdict(program, 0x40000000 + 39, machine="x86_64")) == "EPERM"
    assert name_of(verdict(program, 39, machine="aarch64")) == "killed"


_LOOK = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def result(name, *arguments):
    return name, libc[name](*arguments) and ctypes.get_errno()
print([result("unshare", 0x10000000), result("ptrace", 0, 0, 0, 0), result("unshare", 0x400)])
os.waitpid(os.fork() or os._exit(0), 0)
socket.create_connection(socket.create_server(("127.0.0.1", 0)).getsockname(), 1)
"""


@needs_bwrap
def test_the_kernel_takes_the_filter_from_bubblewrap():
    reading, writing = socket.socketpair()
    writing.sendall(filter_program(platform.machine()))
    writing.close()
    handle = reading.fileno()
    words = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc"]
    done = subprocess.run(
        [*words, "--seccomp", str(handle), "--", sys.executable, "-I", "-S", "-c", _LOOK],
        pass_fds=(handle,),
        capture_output=True,
        text=True,
    )
    reading.close()
    assert done.stdout == "[('unshare', 1), ('ptrace', 1), ('unshare', 0)]\n", done.stderr
