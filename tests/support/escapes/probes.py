"""Ways out of a wall, each tried in a process of its own: ``python -I -S probes.py WORLD``.

Runs inside. `WORLD` is JSON: where the decoys are that `world` made outside, and their numbers. A
probe leaves a trace by making a file called ``trace-TAG-NAME``, by writing its name into a decoy,
by telling a listener its name, by ending a decoy process, or by returning what it got: the text of
a decoy key, or ``GOT`` and what it could do. Nothing that is tried would harm a machine on which
it worked: a system call that changes something gets arguments that change nothing.
"""

import ctypes
import errno
import fcntl
import json
import os
import pty
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PATIENCE_S = 4.0
_libc = ctypes.CDLL(None, use_errno=True)
_IS_X86 = os.uname().machine == "x86_64"

World = dict[str, Any]
GIT = (
    *("write_hook", "add_hook", "enable_hook", "write_git_config", "replace_git_config"),
    *("remove_git_config", "set_git_config", "replace_hooks", "rename_git", "rename_repository"),
    *("rename_folder_around", "exchange_git", "link_hooks", "uncover_git_config"),
    *("reopen_git_config", "clear_read_only"),
)
"""The probes with a repository of their own."""


class Probes:
    """One method for each way; the name of the method is the name of the probe."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.trace = f"trace-{world['tag']}-{name}"
        self.work = Path(world["work"])
        self.home = Path(world["home"])
        self.outside = Path(world["outside"])
        self.world = world
        self.victim = int(world["victims"].get(name, world["victim"]))

    # Files outside.

    def write_outside(self) -> object:
        return (self.outside / self.trace).write_text("")

    def write_home(self) -> object:
        return (self.home / ".bashrc").write_text(self.name)

    def write_home_folder(self) -> object:
        return (self.home / ".config" / self.trace).write_text("")

    def write_tmp(self) -> object:
        return Path("/tmp", self.trace).write_text("")

    def write_shm(self) -> object:
        return Path("/dev/shm", self.trace).write_text("")

    def write_etc(self) -> object:
        return Path("/etc", self.trace).write_text("")

    def write_program(self) -> object:
        return Path(self.world["program"], self.trace).write_text("")

    def write_interpreter(self) -> object:
        return _opened(os.__file__, os.O_WRONLY)

    def append_outside(self) -> object:
        with (self.outside / "notes").open("a") as file:
            return file.write(self.name)

    def truncate_outside(self) -> object:
        return os.truncate(self.outside / "truncated", 0)

    def truncate_by_open(self) -> object:
        return os.open(self.outside / "truncated-by-open", os.O_RDONLY | os.O_TRUNC)

    def remove_outside(self) -> object:
        return (self.outside / "removed").unlink()

    def make_folder_outside(self) -> object:
        return (self.outside / self.trace).mkdir()

    def make_pipe_outside(self) -> object:
        return os.mkfifo(self.outside / self.trace)

    def make_link_outside(self) -> object:
        return (self.outside / self.trace).symlink_to("/")

    def move_out(self) -> object:
        (self.work / self.trace).write_text("")
        return (self.work / self.trace).rename(self.outside / self.trace)

    def move_in(self) -> object:
        return (self.outside / "moved").rename(self.work / "moved")

    def write_through_link(self) -> object:
        (self.work / "way").symlink_to(self.outside)
        return (self.work / "way" / self.trace).write_text("")

    def write_through_hard_link(self) -> object:
        (self.work / "hard").hardlink_to(self.outside / "notes")
        with (self.work / "hard").open("a") as file:
            return file.write(self.name)

    def write_through_parent(self) -> object:
        handle = os.open(self.work, os.O_RDONLY)
        way = f"../outside/{self.trace}"
        return os.open(way, os.O_CREAT | os.O_WRONLY, dir_fd=handle)

    def write_through_proc_root(self) -> object:
        return Path(f"/proc/self/root{self.outside}", self.trace).write_text("")

    def change_mode(self) -> object:
        return (self.outside / "mode").chmod(0o777)

    def change_times(self) -> object:
        return os.utime(self.outside / "times", (1, 1))

    def change_attribute(self) -> object:
        return os.setxattr(self.outside / "attribute", "user.trace", b"x")

    def lock_outside(self) -> object:
        with (self.home / ".local/bin/locked").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            return "GOT a lock"

    # Keys and what else is not to be seen.

    def read_key(self) -> object:
        return (self.home / ".ssh/id_rsa").read_text()

    def read_key_by_link(self) -> object:
        (self.work / "key").symlink_to(self.home / ".ssh/id_rsa")
        return (self.work / "key").read_text()

    def read_key_by_hard_link(self) -> object:
        (self.work / "hard-key").hardlink_to(self.home / ".ssh/id_rsa")
        return (self.work / "hard-key").read_text()

    def read_key_of_new_program(self) -> object:
        return (self.home / ".config/newest/token").read_text()

    def read_own_settings(self) -> object:
        return (self.home / ".config/agent-tui/settings").read_text()

    def read_key_by_handle(self) -> object:
        handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
        mount = ctypes.c_int()
        path = os.fsencode(self.home / ".ssh/id_rsa")
        _call("name_to_handle_at", -100, path, handle, ctypes.byref(mount), 0)
        at = os.open("/", os.O_RDONLY)
        return os.read(_call("open_by_handle_at", at, handle, os.O_RDONLY), 100).decode()

    def read_env_file(self) -> object:
        return (self.work / ".env").read_text()

    def list_home(self) -> object:
        return " ".join(path.name for path in self.home.iterdir())

    def see_names_at_home(self) -> object:
        return f"GOT a size: {(self.home / '.ssh/id_rsa').stat().st_size}"

    def watch_names_at_home(self) -> object:
        watcher = _call("inotify_init1", 0)
        _call("inotify_add_watch", watcher, os.fsencode(self.home / ".ssh"), 0xFFF)
        return "GOT to hear of the files there"

    def read_shadow(self) -> object:
        return f"GOT {len(Path('/etc/shadow').read_bytes())} bytes of password hashes"

    def read_environ(self) -> object:
        return "\n".join(os.environ.values())

    def read_handles(self) -> object:
        got = [_target(f"/proc/self/fd/{handle}") for handle in range(3, 64)]
        left = [one for one in got if one and one not in ("/dev/null", self.world["own_handle"])]
        return f"GOT {left}" if left else ""

    def read_handles_of_first(self) -> object:
        folder = Path("/proc/1/fd")
        for entry in folder.iterdir():
            with (entry / "home" if entry.is_dir() else entry).open("rb") as file:
                os.set_blocking(file.fileno(), False)
                if text := file.read(1):
                    return f"GOT a handle: {_target(entry)} {text}"
        return ""

    # What git obeys. Each has a repository of its own.

    def _repository(self) -> Path:
        return repository_of(self.work, self.name)

    def write_hook(self) -> object:
        return (self._repository() / ".git/hooks/pre-commit").write_text(self.name)

    def add_hook(self) -> object:
        return (self._repository() / ".git/hooks/post-checkout").write_text(self.name)

    def enable_hook(self) -> object:
        return (self._repository() / ".git/hooks/pre-commit").chmod(0o755)

    def write_git_config(self) -> object:
        with (self._repository() / ".git/config").open("a") as file:
            return file.write(f"[alias]\n\tst = !{self.name}\n")

    def replace_git_config(self) -> object:
        file = self._repository() / ".git/config.new"
        file.write_text(self.name)
        return file.rename(self._repository() / ".git/config")

    def remove_git_config(self) -> object:
        return (self._repository() / ".git/config").unlink()

    def set_git_config(self) -> object:
        words = ["git", "config", "core.hooksPath", self.name]
        return subprocess.run(words, cwd=self._repository(), check=True, env={"PATH": "/usr/bin"})

    def replace_hooks(self) -> object:
        hooks = self._repository() / ".git/hooks"
        hooks.rename(self._repository() / ".git/gone")
        return self._plant(self._repository())

    def rename_git(self) -> object:
        (self._repository() / ".git").rename(self._repository() / "gone")
        return self._plant(self._repository())

    def rename_repository(self) -> object:
        self._repository().rename(self.work / "gone")
        return self._plant(self._repository())

    def rename_folder_around(self) -> object:
        self._repository().parent.rename(self.work / "all-gone")
        return self._plant(self._repository())

    def rename_workspace(self) -> object:
        self.work.rename(self.work.parent / "gone")
        return self._plant(self._repository())

    def exchange_git(self) -> object:
        other = self._repository() / "other"
        self._plant(other)
        here, there = os.fsencode(self._repository() / ".git"), os.fsencode(other / ".git")
        return _call("renameat2", -100, here, -100, there, 2)

    def link_hooks(self) -> object:
        hooks = self._repository() / ".git/hooks"
        shutil.rmtree(hooks)
        hooks.symlink_to(self.work)
        return (hooks / "pre-commit").write_text(self.name)

    def uncover_git_config(self) -> object:
        _call("umount2", os.fsencode(self._repository() / ".git/config"), 2)
        return self.write_git_config()

    def reopen_git_config(self) -> object:
        path = os.fsencode(self._repository() / ".git/config")
        _call("mount", None, path, None, 32 | 4096, None)
        return self.write_git_config()

    def clear_read_only(self) -> object:
        path = os.fsencode(self._repository() / ".git/config")
        settings = struct.pack("QQQQ", 0, 1, 0, 0)
        _call("mount_setattr", -100, path, 0, settings, len(settings))
        return self.write_git_config()

    def write_worktree_pointer(self) -> object:
        return (self.work / "tree/.git").write_text(f"gitdir: {self.work}/{self.name}\n")

    def write_git_attributes_of_all(self) -> object:
        return (self.home / ".config/git/attributes").write_text(self.name)

    def make_new_repository(self) -> object:
        return self._plant(self.work / "new")

    def _plant(self, repository: Path) -> None:
        """Make a repository whose hooks are ours."""
        (repository / ".git/hooks").mkdir(parents=True)
        (repository / ".git/hooks/pre-commit").write_text(self.name)
        (repository / ".git/config").write_text(self.name)

    # Mounts, namespaces, the root.

    def unshare_user(self) -> object:
        _call("unshare", 0x10000000)
        return "GOT a user namespace"

    def unshare_mounts(self) -> object:
        _call("unshare", 0x00020000)
        return "GOT a mount namespace"

    def clone_user(self) -> object:
        number = 56 if _IS_X86 else 220
        child = _result(_libc.syscall(number, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0))
        if not child:
            os._exit(0)
        return "GOT a user namespace"

    def clone3_user(self) -> object:
        order = ctypes.create_string_buffer(struct.pack("8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0))
        child = _result(_libc.syscall(435, order, 64))
        if not child:
            os._exit(0)
        return "GOT a user namespace"

    def mount_folder(self) -> object:
        _call("mount", b"tmpfs", os.fsencode(self.work), b"tmpfs", 0, None)
        return "GOT a mount"

    def clone_mount(self) -> object:
        return f"GOT a mount: {_result(_libc.syscall(428, -100, b'/', 1))}"

    def open_file_system(self) -> object:
        return f"GOT a file system: {_result(_libc.syscall(430, b'tmpfs', 0))}"

    def enter_mounts_of_first(self) -> object:
        _call("setns", os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)
        return "GOT in"

    def enter_network_outside(self) -> object:
        _call("setns", os.open(f"/proc/{self.victim}/ns/net", os.O_RDONLY), 0)
        return "GOT in"

    def change_root(self) -> object:
        start = os.open("/", os.O_RDONLY)
        os.chroot(self.work)
        os.fchdir(start)
        return "GOT another root"

    def turn_root(self) -> object:
        _call("pivot_root", b".", b".")
        return "GOT another root"

    # Processes outside.

    def read_root_of_process(self) -> object:
        return Path(f"/proc/{self.victim}/root{self.home}/.ssh/id_rsa").read_text()

    def read_root_of_first(self) -> object:
        return Path(f"/proc/1/root{self.home}/.ssh/id_rsa").read_text()

    def read_folder_of_process(self) -> object:
        return Path(f"/proc/{self.victim}/cwd/.ssh/id_rsa").read_text()

    def read_environ_of_process(self) -> object:
        return Path(f"/proc/{self.victim}/environ").read_bytes().decode()

    def read_environ_of_parents(self) -> object:
        found = (_quietly(path.read_bytes) for path in Path("/proc").glob("[0-9]*/environ"))
        return b"".join(filter(None, found)).decode()

    def read_arguments_of_process(self) -> object:
        return Path(f"/proc/{self.victim}/cmdline").read_bytes().decode()

    def read_handle_of_process(self) -> object:
        return Path(f"/proc/{self.victim}/fd/0").read_text()

    def read_memory_of_process(self) -> object:
        with Path(f"/proc/{self.victim}/mem").open("rb", 0) as memory:
            memory.seek(int(self.world["address"]))
            return memory.read(64).decode(errors="replace")

    def read_memory_by_call(self) -> object:
        text = ctypes.create_string_buffer(64)
        here = struct.pack("PN", ctypes.addressof(text), 64)
        there = struct.pack("PN", int(self.world["address"]), 64)
        _call("process_vm_readv", self.victim, here, 1, there, 1, 0)
        return text.raw.decode(errors="replace")

    def trace_process(self) -> object:
        _call("ptrace", 0x4206, self.victim, 0, 0)
        return "GOT hold of a process"

    def trace_keeper(self) -> object:
        _call("ptrace", 0x4206, int(self.world["keeper"]), 0, 0)
        return "GOT hold of what started this"

    def write_memory_of_keeper(self) -> object:
        return _opened(f"/proc/{self.world['keeper']}/mem", os.O_RDWR)

    def write_memory_of_others(self) -> object:
        own = {str(os.getpid()), str(os.getppid())}
        for process in Path("/proc").glob("[0-9]*"):
            path = str(process / "mem")
            if process.name not in own and _quietly(lambda one=path: _opened(one, os.O_RDWR)):
                return f"GOT {path}"
        return ""

    def open_handles_of_keeper(self) -> object:
        for handle in range(16):
            path = f"/proc/{self.world['keeper']}/fd/{handle}"
            if _quietly(lambda one=path: _opened(one, os.O_RDWR)):
                return f"GOT {_target(path)}"
        return ""

    def take_handle_of_keeper(self) -> object:
        handle = os.pidfd_open(int(self.world["keeper"]))
        return f"GOT {_result(_libc.syscall(438, handle, 0, 0))}"

    def take_handle_of_process(self) -> object:
        handle = os.pidfd_open(self.victim)
        return os.read(_result(_libc.syscall(438, handle, 0, 0)), 100).decode()

    def compare_processes(self) -> object:
        number = 312 if _IS_X86 else 272
        return f"GOT {_result(_libc.syscall(number, os.getpid(), self.victim, 0, 0, 0))}"

    def end_process(self) -> object:
        return os.kill(self.victim, signal.SIGKILL)

    def end_process_by_handle(self) -> object:
        return signal.pidfd_send_signal(os.pidfd_open(self.victim), signal.SIGKILL)

    def stop_process(self) -> object:
        return os.kill(self.victim, signal.SIGSTOP)

    def limit_process(self) -> object:
        resource.prlimit(self.victim, resource.RLIMIT_NOFILE, (7, 7))
        return "GOT to limit a process"

    def slow_process(self) -> object:
        os.setpriority(os.PRIO_PROCESS, self.victim, 19)
        return "GOT to slow a process down"

    # Sockets of others.

    def reach_tcp(self) -> object:
        with socket.create_connection(("127.0.0.1", self.world["tcp"]), 1) as made:
            made.sendall(self.name.encode())

    def reach_tcp_by_address(self) -> object:
        with socket.create_connection(
            (self.world["address_outside"], self.world["tcp"]), 0.3
        ) as it:
            it.sendall(self.name.encode())

    def reach_udp(self) -> object:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            made.sendto(self.name.encode(), ("127.0.0.1", self.world["udp"]))

    def reach_other_machine(self) -> object:
        """A connection by UDP only looks for a way: nothing is sent."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            made.connect(("198.51.100.1", 9))
            return "GOT a way to another machine"

    def untie_socket(self) -> object:
        """A socket is to have no device but loopback; whether there is another says `/sys`."""
        with socket.socket() as made:
            tied = made.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0")
            if tied == b"lo":
                made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"")
            elif socket.if_nameindex() == [(1, "lo")]:
                return ""
            return "GOT a socket for every device"

    def ask_resolver(self) -> object:
        socket.getaddrinfo("example.invalid", 80)
        return "GOT an answer"

    def reach_docker(self) -> object:
        return self._tell(self.outside / "run/docker.sock")

    def reach_agent(self) -> object:
        return self._tell(os.environ.get("SSH_AUTH_SOCK") or self.home / ".ssh/agent.sock")

    def reach_bus(self) -> object:
        return self._tell(self.outside / "run/bus")

    def reach_display(self) -> object:
        return self._tell("/tmp/" + self.world["display"])

    def reach_abstract(self) -> object:
        return self._tell("\0" + self.world["abstract"])

    def reach_log(self) -> object:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
            made.sendto(self.name.encode(), str(self.outside / "run/log"))

    def reach_log_by_pair(self) -> object:
        self._tell_by_pair(socket.SOCK_DGRAM)

    def reach_log_by_raw_pair(self) -> object:
        self._tell_by_pair(socket.SOCK_RAW)

    def _tell_by_pair(self, kind: int) -> None:
        one, _other = socket.socketpair(socket.AF_UNIX, kind)
        one.sendto(self.name.encode(), str(self.outside / "run/log"))

    def _tell(self, where: object) -> None:
        with socket.socket(socket.AF_UNIX) as made:
            made.settimeout(1)
            made.connect(str(where))
            made.sendall(self.name.encode())

    def make_packet_socket(self) -> object:
        return _made_socket(17, socket.SOCK_RAW)

    def make_raw_socket(self) -> object:
        return _made_socket(socket.AF_INET, socket.SOCK_RAW, 1)

    def make_cipher_socket(self) -> object:
        return _made_socket(38, 5)

    def make_host_socket(self) -> object:
        return _made_socket(40, socket.SOCK_STREAM)

    def make_device_events_socket(self) -> object:
        return _made_socket(16, socket.SOCK_RAW, 15)

    def change_routes(self) -> object:
        """Asks for a device of a kind that there is not."""
        with socket.socket(16, socket.SOCK_RAW, 0) as made:
            made.send(struct.pack("=IHHIIBxHiII", 32, 16, 0x5, 1, 0, 0, 0, 0, 0, 0))
            code = -struct.unpack_from("=i", made.recv(4096), 16)[0]
        return "" if code == errno.EPERM else f"GOT to change devices: {errno.errorcode.get(code)}"

    # Shared memory, keys of the kernel, terminals.

    def read_shm(self) -> object:
        return Path("/dev/shm", self.world["shm"]).read_text()

    def read_system_v_memory(self) -> object:
        _libc.shmat.restype = ctypes.c_void_p
        at = _libc.shmat(int(self.world["segment"]), None, 0o10000)
        if at in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "")
        return ctypes.string_at(at, 64).decode(errors="replace")

    def take_semaphore(self) -> object:
        operation = struct.pack("=HhH", 0, -1, 0o4000)  # IPC_NOWAIT
        return f"GOT it: {_call('semop', self.world['semaphore'], operation, 1)}"

    def make_message_queue(self) -> object:
        handle = _call("mq_open", b"/" + self.trace.encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
        return f"GOT a queue: {handle}" if self.world["has_no_ipc_space"] else ""

    def read_keyring(self) -> object:
        number = 250 if _IS_X86 else 219
        key = _result(_libc.syscall(number, 10, -4, b"user", self.world["key"].encode(), 0))
        text = ctypes.create_string_buffer(100)
        _result(_libc.syscall(number, 11, key, text, 100))
        return text.value.decode()

    def add_to_keyring(self) -> object:
        number = 248 if _IS_X86 else 217
        return f"GOT {_result(_libc.syscall(number, b'user', b'trace', b'x', 1, -1))}"

    def type_into_own_terminal(self) -> object:
        _, terminal = pty.openpty()
        fcntl.ioctl(terminal, 0x5412, b"x")
        return "GOT to type"

    def type_into_terminal(self) -> object:
        with Path(self.world["terminal"]).open("r+b", 0) as terminal:
            fcntl.ioctl(terminal, 0x5412, b"x")
            return "GOT to type"

    def write_to_terminal(self) -> object:
        with Path(self.world["terminal"]).open("wb", 0) as terminal:
            return terminal.write(self.name.encode())

    def open_own_terminal(self) -> object:
        os.close(os.open("/dev/tty", os.O_RDWR))
        return "GOT a terminal"

    # The kernel and the machine.

    def set_core_pattern(self) -> object:
        return _opened("/proc/sys/kernel/core_pattern", os.O_WRONLY)

    def set_panic(self) -> object:
        return _opened("/proc/sys/kernel/panic", os.O_WRONLY)

    def press_keys(self) -> object:
        return _opened("/proc/sysrq-trigger", os.O_WRONLY)

    def read_kernel_memory(self) -> object:
        with Path("/proc/kcore").open("rb", 0) as memory:
            return f"GOT {len(memory.read(4))} bytes" if memory.read(4) else ""

    def open_memory_device(self) -> object:
        return _opened("/dev/mem", os.O_RDONLY)

    def open_disk(self) -> object:
        return _opened(f"/dev/block/{self.world['disk']}", os.O_RDONLY)

    def open_disk_by_name(self) -> object:
        for path in Path("/dev").iterdir():
            if stat.S_ISBLK(path.stat().st_mode):
                return _opened(path, os.O_RDONLY)
        return ""

    def make_disk(self) -> object:
        major, _, minor = self.world["disk"].partition(":")
        os.mknod(self.work / "disk", stat.S_IFBLK | 0o600, os.makedev(int(major), int(minor)))
        return _opened(self.work / "disk", os.O_RDONLY)

    def write_sys(self) -> object:
        for folder in ("/sys/kernel", "/sys/power", "/sys/module"):
            for name in ("uevent_helper", "state", "profiling", "mm/ksm/run", "fscaps"):
                if (path := Path(folder, name)).exists() and _quietly(lambda p=path: _opens(p)):
                    return f"GOT {path} to write to"
        return ""

    def make_control_group(self) -> object:
        for folder in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"):
            if Path(folder).is_dir():
                Path(folder, self.trace).mkdir()
                Path(folder, self.trace).rmdir()
                return "GOT a control group"
        return ""

    def read_kernel_log(self) -> object:
        text = ctypes.create_string_buffer(64)
        return f"GOT {_result(_libc.syscall(103 if _IS_X86 else 116, 3, text, 64))} bytes"

    def load_bpf(self) -> object:
        """Asks for a map of no kind."""
        number = 321 if _IS_X86 else 280
        return _unless_refused(_libc.syscall(number, 0, bytes(64), 0))

    def watch_performance(self) -> object:
        number = 298 if _IS_X86 else 241
        settings = struct.pack("IIQ", 1, 64, 0) + bytes(48)
        return _unless_refused(_libc.syscall(number, settings, 0, -1, -1, 0))

    def handle_faults(self) -> object:
        return _unless_refused(_libc.syscall(323 if _IS_X86 else 282, 1))

    def make_ring(self) -> object:
        return _unless_refused(_libc.syscall(425, 0, 0))

    def load_kernel(self) -> object:
        return _unless_refused(_libc.syscall(320 if _IS_X86 else 294, -1, -1, 0, 0, -1))

    def load_module(self) -> object:
        return _unless_refused(_libc.syscall(313 if _IS_X86 else 273, -1, b"", 0))

    def restart_machine(self) -> object:
        return _unless_refused(_libc.syscall(169 if _IS_X86 else 142, 0, 0, 0, 0))

    def set_clock(self) -> object:
        return _unless_refused(_libc.syscall(164 if _IS_X86 else 170, None, None))

    def set_name_of_machine(self) -> object:
        """To what it is."""
        name = os.uname().nodename.encode()
        got = _unless_refused(_libc.sethostname(name, len(name)))
        return got if self.world["has_no_ipc_space"] else ""

    def call_by_other_table(self) -> object:
        if not _IS_X86:
            return ""
        result = _libc.syscall(0x40000000 + 39)
        return f"GOT {result}" if result > 0 else ""

    # More rights.

    def become_root(self) -> object:
        if not os.access(program := self.world["setuid"], os.X_OK):
            return ""
        words = [program, "-I", "-S", "-c", "import os; print(os.geteuid(), os.getuid())"]
        effective, real = subprocess.run(words, capture_output=True, check=True).stdout.split()
        return "GOT to be root" if effective == b"0" and real != b"0" else ""

    def keep_capabilities(self) -> object:
        lines = Path("/proc/self/status").read_text().splitlines()
        named = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        names = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
        held = {name: named[name] for name in names if int(named[name], 16)}
        if os.getuid() and not self.world["had_capabilities"]:
            held.pop("CapBnd", None)  # what a user without any may not take from the bound
        return f"GOT {held}" if held else ""

    def gain_rights(self) -> object:
        return "" if _libc.prctl(39, 0, 0, 0, 0) == 1 else "GOT new privileges by programs"

    def lift_filter(self) -> object:
        text = Path("/proc/self/status").read_text()
        return "" if "Seccomp:\t2" in text else "GOT no filter"

    # Afterwards.

    def live_on(self) -> object:
        """A process that left its session and its parent writes when the command is over."""
        if os.fork():
            return ""
        os.setsid()
        if not os.fork():
            os.closerange(0, 64)
            time.sleep(0.3)
            (self.work / self.trace).write_text("")
        os._exit(0)


def repository_of(work: Path, name: str) -> Path:
    """Where the probe `name` has its repository."""
    return work / ("around" if name == "rename_folder_around" else "repositories") / name


def _result(value: int) -> int:
    if value < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return value


def _call(name: str, *arguments: object) -> int:
    return _result(_libc[name](*arguments))


def _unless_refused(value: int) -> str:
    number = ctypes.get_errno() if value < 0 else 0
    return "" if number in (errno.EPERM, errno.ENOSYS) else f"GOT to call it: {number}"


def _made_socket(*kind: int) -> str:
    with socket.socket(*kind):
        return "GOT a socket"


def _opened(path: object, flags: int) -> str:
    os.close(os.open(str(path), flags))
    return f"GOT {path}"


def _opens(path: Path) -> bool:
    return bool(_opened(path, os.O_WRONLY))


def _target(path: object) -> str:
    try:
        return str(Path(str(path)).readlink())
    except OSError:
        return ""


def _quietly(does: Callable[[], Any]) -> Any:
    try:
        return does()
    except OSError:
        return None


def _tried(world: World, name: str) -> str:
    try:
        return str(getattr(Probes(world, name), name)() or "")
    except Exception as error:  # noqa: BLE001 - whatever stops a probe is what it tells
        return f"no: {type(error).__name__}: {error}"


def names() -> list[str]:
    """All probes."""
    return [name for name, value in vars(Probes).items() if callable(value) and name[0] != "_"]


def main() -> None:
    """Try all, each in a process of its own, and print what each got."""
    world: World = json.loads(sys.argv[1])
    world["keeper"] = os.getppid()
    told: dict[str, str] = {}
    for name in world["probes"]:
        reading, writing = os.pipe()
        world["own_handle"] = _target(f"/proc/self/fd/{writing}")
        child = os.fork()
        if not child:
            os.close(reading)
            said = _tried(world, name).encode(errors="replace")[:4000]
            os.write(writing, said)
            os._exit(0)
        os.close(writing)
        ready, _, _ = select.select([reading], [], [], _PATIENCE_S)
        told[name] = os.read(reading, 8000).decode(errors="replace") if ready else "no: too slow"
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
