"""The optional sandbox of the model's commands: bubblewrap, where it works.

Inside, there is no network and no process but the command's. Files are read-only except below
the workspace and in a ``/tmp`` of this program's own. Where people keep keys and where this
program keeps its settings and sessions is empty; so are ``/run`` and the real ``/tmp``, as a
command could have things run outside through the sockets there (of a bus, a container engine, a
terminal multiplexer). In the workspace, git's hooks and configuration stay as they are: they
would be run and obeyed outside, later.
"""

import os
import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_tui.config import SandboxMode
from agent_tui.paths import make_private_dir

_PROBE_S = 3.0
_KEY_FOLDERS: Final = (
    *(".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".password-store", ".mozilla"),
    *(".thunderbird", ".terraform.d", ".oci", ".config/gcloud", ".config/gh", ".config/glab-cli"),
    *(".config/op", ".config/hub", ".config/rclone", ".config/containers", ".config/chromium"),
    *(".config/google-chrome", ".config/BraveSoftware", ".local/share/keyrings"),
)
_KEY_FILES: Final = (
    *(".netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass", ".my.cnf", ".git-credentials"),
    *(".config/git/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".vault-token"),
    *(".gem/credentials", ".s3cfg", ".boto", ".bash_history", ".zsh_history"),
)
_MACHINE_FOLDERS: Final = (Path("/etc/ssl/private"), Path("/etc/ssh"))
_MACHINE_FILES: Final = (
    *(Path("/etc/shadow"), Path("/etc/shadow-"), Path("/etc/gshadow"), Path("/etc/gshadow-")),
    *(Path("/etc/sudoers"), Path("/etc/krb5.keytab")),
)
"""Secrets of the machine, which root could read."""
_READ_ONLY_OF_PROC: Final = tuple(
    f"/proc/{name}" for name in ("sys", "sysrq-trigger", "irq", "bus", "fs")
)
_HIDDEN_OF_PROC: Final = tuple(Path(f"/proc/{name}") for name in ("kcore", "keys", "timer_list"))
"""What container runtimes close in /proc (OCI runtime-spec, ``readonlyPaths``, ``maskedPaths``).

The kernel lets its uid 0 write there, in a user namespace, too.
"""
_SOCKET_FOLDERS: Final = (Path("/run"), Path("/var/run"), Path("/var/tmp"))
_NEEDED_OF_RUN: Final = Path("/run/current-system")
"""Where NixOS has its programs."""

_REFUSED: Final = re.compile(
    r"could not resolve|name or service not known|temporary failure in name resolution"
    r"|network is unreachable|no route to host|ENOTFOUND|EAI_AGAIN|ENETUNREACH|getaddrinfo"
    r"|failed to lookup address|no address associated",
    re.IGNORECASE,
)
_READ_ONLY: Final = re.compile(r"read-only file system|EROFS", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """What a command inside sees. All paths exist, are absolute and have no links in them.

    Args:
        workspace: May be written, and is where the command starts.
        scratch: Stands in for ``/tmp``.
        added: Other folders that may be written.
        hidden_folders: Are empty, with what lies in them; not what holds or is the workspace.
        hidden_files: Are empty.
        read_only: Files and folders below the workspace that may not be changed.
    """

    workspace: Path
    scratch: Path
    added: tuple[Path, ...] = ()
    hidden_folders: tuple[Path, ...] = ()
    hidden_files: tuple[Path, ...] = ()
    read_only: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class SandboxState:
    """Whether commands run in the sandbox; `problem` says why not although it is wanted."""

    is_on: bool
    problem: str = ""


def bwrap_argv(bwrap: str, plan: SandboxPlan) -> tuple[str, ...]:
    """The words to put before a command so that it runs as `plan` says.

    The order counts: what comes later is laid over what came before, so a key folder inside the
    workspace is hidden, and a workspace inside a hidden folder is there.
    """
    words = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for name in _READ_ONLY_OF_PROC:
        words += ["--ro-bind-try", name, name]
    for path in _HIDDEN_OF_PROC:
        words += ["--ro-bind", "/dev/null", str(path)] if path.exists() else []
    words += ["--bind", str(plan.scratch), "/tmp"]
    written = (plan.workspace, *plan.added)
    around = [
        hidden
        for hidden in plan.hidden_folders
        if any(folder.is_relative_to(hidden) for folder in written)
    ]
    for folder in around:
        words += ["--tmpfs", str(folder)]
    words += ["--ro-bind-try", str(_NEEDED_OF_RUN), str(_NEEDED_OF_RUN)]
    for folder in written:
        words += ["--bind", str(folder), str(folder)]
    for folder in plan.hidden_folders:
        words += [] if folder in around else ["--tmpfs", str(folder)]
    for file in plan.hidden_files:
        words += ["--ro-bind", "/dev/null", str(file)]
    for folder in _folders_around(plan.read_only, written):
        words += ["--bind", str(folder), str(folder)]
    for path in plan.read_only:
        words += ["--ro-bind", str(path), str(path)]
    return (*words, "--chdir", str(plan.workspace), "--")


def _folders_around(paths: Iterable[Path], written: Iterable[Path]) -> list[Path]:
    """The folders between those that may be written and `paths` in them, the outer ones first.

    Each has to be a mount of its own: the kernel renames no mount point, but it renames a folder
    that holds one, and another could then be put in its place.
    """
    roots = set(written)
    around = {
        folder
        for path in paths
        for folder in path.parents
        if folder not in roots and any(folder.is_relative_to(root) for root in roots)
    }
    return sorted(around)


def refusal_hint(output: str) -> str:
    """What to tell the model of a failed command if the sandbox is the likely cause."""
    if _REFUSED.search(output):
        return "the sandbox gives commands no network; the user can run this one with !"
    if _READ_ONLY.search(output):
        return "the sandbox lets commands write only in the working folders and in /tmp"
    return ""


class Sandbox:
    """Decides for a workspace whether its commands are sandboxed, and how.

    Whether bubblewrap works is tried once for each workspace: many containers and some
    distributions forbid the namespaces that it needs.
    """

    def __init__(
        self,
        mode: SandboxMode,
        *,
        home: Path,
        own_folders: Iterable[Path],
        scratch_parent: Path,
        environ: Mapping[str, str],
        added: Iterable[Path] = (),
    ) -> None:
        """Find out nothing yet.

        Args:
            mode: The setting.
            home: The person's home folder.
            own_folders: Where this program keeps settings, sessions and logs; hidden.
            scratch_parent: Where the folder is made that stands in for ``/tmp``.
            environ: Where ``PATH`` is looked up.
            added: Other folders that are worked in, and so may be written.
        """
        self._mode: SandboxMode = mode
        self._home = home
        self._own_folders = tuple(own_folders)
        self._added = tuple(added)
        self._scratch_parent = scratch_parent
        self._environ = environ
        self._scratch: Path | None = None
        self._states: dict[Path, SandboxState] = {}

    def state(self, cwd: Path) -> SandboxState:
        """Whether commands in `cwd` are sandboxed. Blocking when first asked."""
        if self._mode == "off":
            return SandboxState(is_on=False)
        if cwd not in self._states:
            problem = self._problem(cwd)
            self._states[cwd] = SandboxState(is_on=not problem, problem=problem)
        return self._states[cwd]

    def shows(self, cwd: Path, path: Path) -> bool:
        """Whether commands in `cwd` may read `path`; all where there is no sandbox. Blocking."""
        is_elsewhere = not path.is_relative_to(self._home.resolve())
        worked_in = (cwd, *self._added)
        if is_elsewhere or any(path.is_relative_to(folder.resolve()) for folder in worked_in):
            return True
        return not self.state(cwd).is_on

    def word(self, cwd: Path) -> str:
        """How commands in `cwd` run, in a word or two; empty where none is wanted. Blocking."""
        if self._mode == "off":
            return ""
        return "sandbox" if self.state(cwd).is_on else "no sandbox"

    def refusal(self, cwd: Path) -> str:
        """Why no command of the model may run in `cwd`; empty where one may. Blocking."""
        problem = self.state(cwd).problem
        if self._mode != "on" or not problem:
            return ""
        return f'commands run only in the sandbox (sandbox = "on"), but {problem}'

    def prefix(self, cwd: Path) -> tuple[str, ...]:
        """The words to put before a command in `cwd`; none where it is not sandboxed. Blocking."""
        return self._words(cwd) if self.state(cwd).is_on else ()

    def _problem(self, cwd: Path) -> str:
        bwrap = shutil.which("bwrap", path=self._environ.get("PATH"))
        if bwrap is None:
            return "bubblewrap (bwrap) is not installed"
        if self._home.resolve().is_relative_to(cwd.resolve()):
            return f"{cwd} contains the home folder, so a sandbox would protect nothing"
        try:
            tried = subprocess.run(
                [*self._words(cwd), "true"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_S,
                env={"PATH": self._environ.get("PATH", os.defpath)},
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap does not work here: {error}"
        if tried.returncode == 0:
            return ""
        said = tried.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"bubblewrap does not work here: {said or f'exit code {tried.returncode}'}"

    def _words(self, cwd: Path) -> tuple[str, ...]:
        bwrap = shutil.which("bwrap", path=self._environ.get("PATH")) or "bwrap"
        plan = plan_for(cwd, self._home, self._own_folders, self._scratch_here(), self._added)
        return bwrap_argv(bwrap, plan)

    def _scratch_here(self) -> Path:
        """The stand-in for ``/tmp``; made when first needed, removed with this object."""
        if self._scratch is None:
            try:
                parent = make_private_dir(self._scratch_parent)
                self._scratch = Path(tempfile.mkdtemp(prefix="tmp-", dir=parent))
            except OSError:  # a read-only home; one in the system's folder does as well
                self._scratch = Path(tempfile.mkdtemp(prefix="agent-tui-"))
            weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        return self._scratch


def plan_for(
    cwd: Path,
    home: Path,
    own_folders: Iterable[Path],
    scratch: Path,
    added: Iterable[Path] = (),
) -> SandboxPlan:
    """The plan for the workspace `cwd` and the `added` folders on this machine as it is now.

    What is not there cannot be hidden, so it is to be asked for anew before each command.
    """
    workspace, others = cwd.resolve(), tuple(folder.resolve() for folder in added)
    folders = {*(home / name for name in _KEY_FOLDERS), *own_folders}
    folders |= {*_MACHINE_FOLDERS, *_SOCKET_FOLDERS}
    files = {*(home / name for name in _KEY_FILES), *_MACHINE_FILES}
    gits = [folder / ".git" for folder in (workspace, *others)]
    return SandboxPlan(
        workspace=workspace,
        scratch=scratch.resolve(),
        added=others,
        hidden_folders=tuple(
            folder for folder in _present(folders) if folder.is_dir() and folder != workspace
        ),
        hidden_files=tuple(file for file in _present(files) if file.is_file()),
        read_only=tuple(_present(git / name for git in gits for name in ("hooks", "config"))),
    )


def _present(paths: Iterable[Path]) -> list[Path]:
    return sorted({path.resolve() for path in paths if path.exists()})
