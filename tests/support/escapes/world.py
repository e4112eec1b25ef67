"""Decoys around a wall, the probes inside it, and the traces they left.

``python -m tests.support.escapes.world BACKEND FOLDER`` prints a JSON object: for each probe what
it got, and whether that is a trace. Everything is made and owned by who runs it.
"""

import asyncio
import ctypes
import json
import os
import pty
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from agent_tui.features.sandbox.plan import Backend
from agent_tui.features.sandbox.sandbox import Sandbox
from agent_tui.features.sandbox.wall_planner import Surroundings
from tests.support.escapes import probes
from tests.support.sandbox import covering

_DECOY = "decoy-"
_ENDING = ("end_process", "end_process_by_handle", "stop_process", "limit_process", "slow_process")
_LIVES_ON_S = 0.6
_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p


class Decoys:
    """What is outside of the wall: files, processes, listeners and what the kernel keeps."""

    def __init__(self, base: Path, stack: ExitStack) -> None:
        """Make all of it; `stack` takes it away."""
        self.token = _DECOY + secrets.token_hex(8)
        self.heard: list[str] = []
        self.base, self.work, self.home = base, base / "work", base / "home"
        self.outside = base / "outside"
        self._stack = stack
        self._tag = secrets.token_hex(6)
        self._make_files()
        self._make_repositories()
        self.victims = {name: self._victim() for name in ("", *_ENDING)}
        self._listen()
        self._fill_kernel()
        self.before = self._facts()

    def world(self, backend: Backend) -> dict[str, Any]:
        """What the probes are told."""
        disk = Path("/").stat().st_dev
        program = Path(probes.__file__).parents[3] / "agent_tui/tools"
        return {
            "tag": self._tag,
            "work": str(self.work),
            "home": str(self.home),
            "outside": str(self.outside),
            "program": str(program),
            "victims": self.victims,
            "victim": self.victims[""],
            "address": self.address,
            "tcp": self.tcp,
            "udp": self.udp,
            "address_outside": _own_address(),
            "abstract": self.abstract,
            "display": f"display-{self._tag}",
            "shm": f"shm-{self._tag}",
            "segment": self.segment,
            "semaphore": self.semaphore,
            "key": self.key,
            "terminal": self.terminal,
            "disk": f"{os.major(disk)}:{os.minor(disk)}",
            "setuid": str(self.base / "setuid-python"),
            "has_no_ipc_space": backend == "landlock",
            "had_capabilities": os.geteuid() == 0,
            "probes": probes.names(),
        }

    def traces(self, told: Mapping[str, str]) -> dict[str, dict[str, str | bool]]:
        """For each probe what it got, and whether it left anything outside."""
        facts = self._facts()
        files = self._trace_files()
        found: dict[str, dict[str, str | bool]] = {}
        for name, said in told.items():
            is_trace = (
                said.startswith("GOT")
                or self.token in said
                or name in self.heard
                or name in files
                or facts.get(name) != self.before.get(name)
            )
            found[name] = {"said": said.replace(self.token, "(the decoy)"), "trace": is_trace}
        return found

    def _make_files(self) -> None:
        for name in (".ssh/id_rsa", ".config/newest/token", ".config/agent-tui/settings"):
            _write(self.home / name, self.token)
        _write(self.home / self.token, "")  # a name that a list of the folder would tell
        _write(self.work / ".env", self.token)
        for name in ("notes", "truncated", "truncated-by-open", "removed", "moved", "mode"):
            _write(self.outside / name, "as it was\n")
        for name in ("times", "attribute"):
            _write(self.outside / name, "as it was\n")
        _write(self.home / ".local/bin/locked", "programs can be read, whatever is around them\n")
        (self.outside / "run").mkdir()
        (self.home / ".config/git").mkdir()

    def _make_repositories(self) -> None:
        for name in probes.GIT:
            git = probes.repository_of(self.work, name) / ".git"
            _write(git / "config", "[core]\n\tbare = false\n")
            _write(git / "hooks/pre-commit", "exit 0\n")
            _write(git / "HEAD", "ref: refs/heads/main\n")
            for folder in ("objects", "refs"):
                (git / folder).mkdir()
        _write(self.work / "tree/.git", "gitdir: ../.git/worktrees/tree\n")

    def _victim(self) -> int:
        """A process outside with the decoy in its environment, arguments, memory, input, folder."""
        reading, writing = os.pipe()
        os.write(writing, self.token.encode())
        os.close(writing)
        held = (
            "import ctypes, sys, time; held = ctypes.create_string_buffer(sys.argv[1].encode());"
            "print(ctypes.addressof(held), flush=True); time.sleep(60)"
        )
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", held, self.token],
            env={"DECOY": self.token},
            stdin=reading,
            stdout=subprocess.PIPE,
            cwd=self.home,
            text=True,
        )
        os.close(reading)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        assert process.stdout is not None
        self._stack.callback(process.stdout.close)
        self.address = int(process.stdout.readline())
        return process.pid

    def _listen(self) -> None:
        self.tcp = self._serve(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0))[1]
        self.udp = self._serve(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))[1]
        self.abstract = f"abstract-{self._tag}"
        unix = [f"{self.outside}/run/docker.sock", f"{self.outside}/run/bus"]
        unix += [f"{self.home}/.ssh/agent.sock", f"/tmp/display-{self._tag}", f"\0{self.abstract}"]
        for address in unix:
            self._serve(socket.AF_UNIX, socket.SOCK_STREAM, address)
        self._stack.callback(Path(f"/tmp/display-{self._tag}").unlink, missing_ok=True)
        self._serve(socket.AF_UNIX, socket.SOCK_DGRAM, f"{self.outside}/run/log")

    def _serve(self, family: int, kind: int, address: Any) -> Any:
        listener = self._stack.enter_context(socket.socket(family, kind))
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(16)
        threading.Thread(target=self._hear, args=(listener, kind), daemon=True).start()
        return listener.getsockname()

    def _hear(self, listener: socket.socket, kind: int) -> None:
        with suppress(OSError):
            while True:
                if kind == socket.SOCK_DGRAM:
                    self.heard.append(listener.recv(100).decode())
                    continue
                with listener.accept()[0] as made:
                    self.heard.append(made.recv(100).decode())

    def _fill_kernel(self) -> None:
        shm = Path("/dev/shm", f"shm-{self._tag}")
        shm.write_text(self.token)
        self._stack.callback(shm.unlink, missing_ok=True)
        self.segment = _libc.shmget(0, 4096, 0o600 | 0o1000)
        self._stack.callback(_libc.shmctl, self.segment, 0, None)
        at = _libc.shmat(self.segment, None, 0)
        ctypes.memmove(at, self.token.encode() + b"\0", len(self.token) + 1)
        self.semaphore = _libc.semget(0, 1, 0o600 | 0o1000)
        self._stack.callback(_libc.semctl, self.semaphore, 0, 0)
        _libc.semctl(self.semaphore, 0, 16, 5)  # SETVAL: taking one does not wait
        self.key = f"key-{self._tag}"
        added = 248 if os.uname().machine == "x86_64" else 217
        text = self.token.encode()
        _libc.syscall(added, b"user", self.key.encode(), text, len(text), -4)
        controlling, terminal = pty.openpty()
        self.terminal = os.ttyname(terminal)
        os.set_blocking(controlling, False)
        self._controlling = controlling
        self._stack.callback(os.close, controlling)
        self._stack.callback(os.close, terminal)

    def _facts(self) -> dict[str, object]:
        """By the probe that would change it: what is so outside."""
        facts: dict[str, object] = {}
        for name, file in (
            ("truncate_outside", "truncated"),
            ("truncate_by_open", "truncated-by-open"),
            ("remove_outside", "removed"),
            ("move_in", "moved"),
        ):
            facts[name] = _quiet_read(self.outside / file)
        facts["change_mode"] = (self.outside / "mode").stat().st_mode
        facts["change_times"] = (self.outside / "times").stat().st_mtime
        facts["change_attribute"] = os.listxattr(self.outside / "attribute")
        for name in _ENDING[:3]:
            status = _quiet_read(Path(f"/proc/{self.victims[name]}/stat"))
            facts[name] = status.rpartition(")")[2].split()[:1] in (["Z"], ["X"], ["T"], [])
        for name in probes.GIT:
            facts[name] = self._obeyed(probes.repository_of(self.work, name))
        return facts

    def _obeyed(self, repository: Path) -> object:
        """What git would obey there; nothing where it is as it was made."""
        hooks, config = repository / ".git/hooks", repository / ".git/config"
        listed = sorted(path.name for path in hooks.glob("*"))
        files = [hooks / "pre-commit", config]
        texts = [_quiet_read(file) for file in files]
        is_enabled = os.access(files[0], os.X_OK)
        is_as_made = listed == ["pre-commit"] and texts[0] == "exit 0\n" and not is_enabled
        if is_as_made and texts[1] == "[core]\n\tbare = false\n" and not hooks.is_symlink():
            return ""
        return [listed, texts, is_enabled]

    def _trace_files(self) -> set[str]:
        """The names of the probes that made a file, or wrote their name into one."""
        found: set[str] = set()
        mark = f"trace-{self._tag}-"
        places = [self.outside, self.home, self.home / ".config", self.home / ".config/git"]
        system = [Path(name) for name in ("/tmp", "/var/tmp", "/dev/shm", "/etc")]
        program = Path(probes.__file__).parents[3] / "agent_tui/tools"
        for folder in (*places, *system, program, self.work.parent):
            for path in folder.glob(f"{mark}*"):
                found.add(path.name.removeprefix(mark))
                if folder not in places:
                    path.unlink() if not path.is_dir() else path.rmdir()
        if (self.work / f"{mark}live_on").exists():
            found.add("live_on")
        written = [self.outside / "notes", self.home / ".bashrc", self.work / "tree/.git"]
        written += [self.home / ".config/git/attributes"]
        written += [self.work.parent / "gone/new/.git/config", self.work / "new/.git/config"]
        texts = " ".join(_quiet_read(file) for file in written)
        found |= {name for name in probes.names() if name in texts}
        with suppress(OSError):
            typed = os.read(self._controlling, 10_000).decode(errors="replace")
            found |= {name for name in probes.names() if name in typed}
        return found


async def _run_inside(decoys: Decoys, backend: Backend) -> tuple[dict[str, str], float]:
    """What the probes tell, run by a `Sandbox`, and how long its wall took to stand."""
    gits = [probes.repository_of(decoys.work, name) / ".git" for name in probes.GIT]
    obeyed = [git / name for git in gits for name in ("hooks", "config")]
    read_only = (*obeyed, decoys.work / "tree/.git")
    parts = covering(hidden=(decoys.work / ".env",), read_only=read_only)
    around = Surroundings(
        home=decoys.home,
        own_folders=(decoys.home / ".config/agent-tui",),
        scratch_parent=decoys.base / "cache",
        environ={"PATH": "/usr/bin:/bin" if backend == "bubblewrap" else _without_bwrap(decoys)},
    )
    box = Sandbox("on", around, parts)
    environ = {"HOME": str(decoys.home), "PATH": "/usr/bin:/bin"}
    environ |= {"SSH_AUTH_SOCK": str(decoys.home / ".ssh/agent.sock")}
    try:
        state = box.state(decoys.work)
        assert state.backend == backend, state
        program = shutil.copy(probes.__file__, decoys.work / "probes.py")
        argv = [sys.executable, "-I", "-S", str(program), json.dumps(decoys.world(backend))]
        began = time.monotonic()
        keeper = await box.keeper(decoys.work)
        stands_after_s = time.monotonic() - began
        inside = box.environ(decoys.work, environ)
        async with keeper.child_group(
            argv, cwd=decoys.work, environ=inside, keeps_stderr=False
        ) as child:
            told = b"".join([chunk async for chunk in child.read_until_exit()])
        await asyncio.sleep(_LIVES_ON_S)  # what lives on has written by then
    finally:
        await box.close_walls()
    try:
        return json.loads(told), stands_after_s
    except ValueError:
        raise AssertionError(told[-3000:].decode(errors="replace")) from None


@contextmanager
def _decoys(base: Path) -> Iterator[Decoys]:
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with ExitStack() as stack:
        yield Decoys(base, stack)


def _without_bwrap(decoys: Decoys) -> str:
    """A folder of programs in which bubblewrap is not."""
    folder = decoys.base / "bin"
    folder.mkdir()
    for name in ("true", "git"):
        (folder / name).symlink_to(f"/usr/bin/{name}")
    return str(folder)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _quiet_read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _own_address() -> str:
    """The address of this machine in its network: nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made, suppress(OSError):
        made.connect(("198.51.100.1", 9))
        return str(made.getsockname()[0])
    return "127.0.0.2"


def main() -> None:
    """Run all probes inside a wall of the kind that the command line names."""
    backend: Backend = "landlock" if sys.argv[1] == "landlock" else "bubblewrap"
    with _decoys(Path(sys.argv[2]).resolve()) as decoys:
        told, stands_after_s = asyncio.run(_run_inside(decoys, backend))
        found = decoys.traces(told)
    json.dump({"probes": found, "stands_after_s": stands_after_s}, sys.stdout)


if __name__ == "__main__":
    main()
