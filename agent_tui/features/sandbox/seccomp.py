"""The system calls that are refused inside a wall: a filter program for seccomp.

It refuses what would leave the wall (namespaces, mounts), what reaches other processes (ptrace),
what the kernel keeps outside any namespace (keyrings, clocks, modules), large parts of the kernel
that commands do not need (io_uring, bpf, perf, fanotify), and sockets of unusual families. A
refused call fails with EPERM, so most programs continue without it. ``clone3`` fails with ENOSYS:
its flags are in memory, where a filter cannot look, and C libraries then use ``clone``.

Debuggers and tracers (gdb, strace, LeakSanitizer), browsers that create their own namespaces,
nested containers and programs for 32-bit x86 do not work under it.

The numbers come from the kernel's tables: ``arch/x86/entry/syscalls/syscall_64.tbl``
(``asm/unistd_64.h``) and, for aarch64, ``include/uapi/asm-generic/unistd.h``. Layout and opcodes
are those of ``linux/seccomp.h`` and ``linux/bpf_common.h``.
"""

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

_Instruction: TypeAlias = tuple[int, int, int, int]
"""Opcode, how many to skip if true, how many if false, operand (``struct sock_filter``)."""


class _Numbers(NamedTuple):
    """The numbers of a system call; None if the machine does not have it."""

    x86_64: int | None
    aarch64: int | None


MACHINES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""``AUDIT_ARCH_X86_64`` and ``AUDIT_ARCH_AARCH64`` of ``linux/audit.h``."""

REFUSED: Final = {
    "mount": _Numbers(165, 40),
    "umount2": _Numbers(166, 39),
    "pivot_root": _Numbers(155, 41),
    "chroot": _Numbers(161, 51),
    "open_tree": _Numbers(428, 428),
    "move_mount": _Numbers(429, 429),
    "fsopen": _Numbers(430, 430),
    "fsconfig": _Numbers(431, 431),
    "fsmount": _Numbers(432, 432),
    "fspick": _Numbers(433, 433),
    "mount_setattr": _Numbers(442, 442),
    "open_tree_attr": _Numbers(467, 467),
    "setns": _Numbers(308, 268),
    "open_by_handle_at": _Numbers(304, 265),
    "ptrace": _Numbers(101, 117),
    "process_vm_readv": _Numbers(310, 270),
    "process_vm_writev": _Numbers(311, 271),
    "kcmp": _Numbers(312, 272),
    "pidfd_getfd": _Numbers(438, 438),
    "add_key": _Numbers(248, 217),
    "request_key": _Numbers(249, 218),
    "keyctl": _Numbers(250, 219),
    "io_uring_setup": _Numbers(425, 425),
    "io_uring_enter": _Numbers(426, 426),
    "io_uring_register": _Numbers(427, 427),
    "bpf": _Numbers(321, 280),
    "perf_event_open": _Numbers(298, 241),
    "userfaultfd": _Numbers(323, 282),
    "fanotify_init": _Numbers(300, 262),
    "kexec_load": _Numbers(246, 104),
    "kexec_file_load": _Numbers(320, 294),
    "create_module": _Numbers(174, None),
    "init_module": _Numbers(175, 105),
    "finit_module": _Numbers(313, 273),
    "delete_module": _Numbers(176, 106),
    "reboot": _Numbers(169, 142),
    "swapon": _Numbers(167, 224),
    "swapoff": _Numbers(168, 225),
    "quotactl": _Numbers(179, 60),
    "quotactl_fd": _Numbers(443, 443),
    "acct": _Numbers(163, 89),
    "syslog": _Numbers(103, 116),
    "vhangup": _Numbers(153, 58),
    "settimeofday": _Numbers(164, 170),
    "clock_settime": _Numbers(227, 112),
    "adjtimex": _Numbers(159, 171),
    "clock_adjtime": _Numbers(305, 266),
    "iopl": _Numbers(172, None),
    "ioperm": _Numbers(173, None),
    "uselib": _Numbers(134, None),
    "_sysctl": _Numbers(156, None),
    "nfsservctl": _Numbers(180, 42),
    "lookup_dcookie": _Numbers(212, 18),
}

SHARED_MEMORY: Final = {
    "shmget": _Numbers(29, 194),
    "shmat": _Numbers(30, 196),
    "shmctl": _Numbers(31, 195),
    "semget": _Numbers(64, 190),
    "semop": _Numbers(65, 193),
    "semctl": _Numbers(66, 191),
    "semtimedop": _Numbers(220, 192),
    "msgget": _Numbers(68, 186),
    "msgsnd": _Numbers(69, 189),
    "msgrcv": _Numbers(70, 188),
    "msgctl": _Numbers(71, 187),
    "mq_open": _Numbers(240, 180),
    "mq_unlink": _Numbers(241, 181),
}
"""Calls that could reach other programs of the user if the wall has no IPC namespace: the objects
have ids or names that need not be opened first. ``shmdt``, and what sends to a POSIX queue, take
only what the refused ones return."""

CHECKED: Final = {
    "clone": _Numbers(56, 220),
    "clone3": _Numbers(435, 435),
    "unshare": _Numbers(272, 97),
    "ioctl": _Numbers(16, 29),
    "socket": _Numbers(41, 198),
    "socketpair": _Numbers(53, 199),
    "prlimit64": _Numbers(302, 261),
}
"""Calls that are refused only with some arguments."""

_X32_BIT: Final = 0x40000000
"""Set in the numbers of the x32 ABI, a second way to make each call (``asm/unistd.h``)."""
_NAMESPACES: Final = 0x7E020000
"""``CLONE_NEW*`` of ``linux/sched.h``: mount, cgroup, UTS, IPC, user, PID, network."""
_NEW_TIME: Final = 0x80
"""``CLONE_NEWTIME``, which only ``unshare`` and ``clone3`` know."""
_TERMINAL_INPUT: Final = (0x5412, 0x541C)
"""``TIOCSTI`` and ``TIOCLINUX`` of ``asm-generic/ioctls.h``: they simulate typing by the user."""
_UNIX, _IPV4, _IPV6, _NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE = 0
_TYPE_MASK, _STREAM, _SEQUENCED = 0xF, 1, 5
"""Linux's numbers, whatever system this runs on. An unconnected unix socket of another type sends
to any name; ``SOCK_RAW`` is one of datagrams, too (``unix_create``)."""

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_KILL, _ASK, _ALLOW = 0x80000000, 0x7FC00000, 0x7FFF0000
_REFUSE, _IS_UNKNOWN = 0x00050001, 0x00050026
"""The call fails with EPERM, or with ENOSYS."""


def filter_program(machine: str, *, has_own_spaces: bool = True) -> bytes:
    """The filter for `machine`, as ``bwrap --seccomp`` and ``seccomp(2)`` take it.

    Args:
        machine: As `platform.machine` returns it: ``x86_64`` or ``aarch64``.
        has_own_spaces: Whether the wall has its own network and IPC namespaces. If not, shared
            memory and named unix sockets are refused, and the listener of the filter
            (`landlock_launcher`) creates the IP sockets.

    Raises:
        KeyError: The machine is of another kind.
    """
    program = _on_machine(machine)
    for name in ("clone", "unshare"):
        flags = _NAMESPACES | (_NEW_TIME if name == "unshare" else 0)
        program += _call(machine, name, [*_argument(0), *_unless(_IF_ANY_BIT, flags, _REFUSE)])
    program += _call(machine, "clone3", [_give(_IS_UNKNOWN)])
    refused_inputs = [
        word for request in _TERMINAL_INPUT for word in _unless(_IF_EQUAL, request, _REFUSE)
    ]
    program += _call(machine, "ioctl", [*_argument(1), *refused_inputs])
    program += _call(machine, "socket", _socket_rules(has_own_spaces=has_own_spaces))
    refused: Iterable[str] = REFUSED
    if not has_own_spaces:
        refused = (*REFUSED, *SHARED_MEMORY)
        program += _call(machine, "socketpair", _pair_rules())
        own_limits = _unless(_IF_EQUAL, 0, _ALLOW)
        program += _call(machine, "prlimit64", [*_argument(0), *own_limits, _give(_REFUSE)])
    for name in refused:
        program += _call(machine, name, [_give(_REFUSE)])
    program.append(_give(_ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _on_machine(machine: str) -> list[_Instruction]:
    """Load the number of the call; a call by another machine's table kills the process."""
    start = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_IF_EQUAL, 1, 0, MACHINES[machine]),
        _give(_KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":
        start += _unless(_IF_AT_LEAST, _X32_BIT, _REFUSE)
    return start


def _socket_rules(*, has_own_spaces: bool) -> list[_Instruction]:
    """The rules for ``socket(family, type, protocol)``."""
    for_ip = _ALLOW if has_own_spaces else _ASK
    families = {_IPV4: for_ip, _IPV6: for_ip}
    families |= {_UNIX: _ALLOW} if has_own_spaces else {}
    rules = [*_argument(0)]
    for family, action in families.items():
        rules += _unless(_IF_EQUAL, family, action)
    rules += [(_IF_EQUAL, 1, 0, _NETLINK), _give(_REFUSE)]
    return [*rules, *_argument(2), *_unless(_IF_EQUAL, _NETLINK_ROUTE, _ALLOW), _give(_REFUSE)]


def _pair_rules() -> list[_Instruction]:
    """The rules for ``socketpair(family, type, protocol)`` without a network namespace."""
    rules = [*_argument(0), (_IF_EQUAL, 1, 0, _UNIX), _give(_REFUSE)]
    rules += [*_argument(1), (_AND, 0, 0, _TYPE_MASK)]
    for kind in (_STREAM, _SEQUENCED):
        rules += _unless(_IF_EQUAL, kind, _ALLOW)
    return [*rules, _give(_REFUSE)]


def _call(machine: str, name: str, rules: list[_Instruction]) -> list[_Instruction]:
    """Apply `rules` to the call `name`, whose number is loaded; allow it if none matches."""
    numbers = (REFUSED | SHARED_MEMORY | CHECKED)[name]
    number = numbers.x86_64 if machine == "x86_64" else numbers.aarch64
    if number is None:
        return []
    return [(_IF_EQUAL, 0, len(rules) + 1, number), *rules, _give(_ALLOW)]


def _argument(index: int) -> list[_Instruction]:
    """Load the lower half of an argument; the kernel uses no more of these."""
    return [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index)]


def _unless(comparison: int, operand: int, action: int) -> list[_Instruction]:
    """Continue unless the comparison is true; then return `action`."""
    return [(comparison, 0, 1, operand), _give(action)]


def _give(action: int) -> _Instruction:
    return (_RETURN, 0, 0, action)
