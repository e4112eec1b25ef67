"""The program's folders and the working folder: there, writable, private, on a safe disk."""

import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_tui.agent.prompt.context_files import load_context_files
from agent_tui.cli.doctor.check import Check, Environment, State, shown_path
from agent_tui.cli.folders import kept_trust
from agent_tui.local_models.model import size_text
from agent_tui.permissions.trust import FolderTrust

_FOLDERS = "folders"
_MIN_FREE_BYTES = 200_000_000
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "ceph")
_MEMORY = ("tmpfs", "ramfs")
_MOUNTS_FILE = Path("/proc/self/mountinfo")
_WORKSPACE = "working folder"


def check_folder(env: Environment, name: str, path: Path) -> Iterator[Check]:
    """One of our folders.

    Args:
        env: What is looked at.
        name: What it holds, as in ``sessions``.
        path: The folder.
    """
    shown = shown_path(path, env.environ)
    if not path.is_absolute():
        advice = "Set HOME to your home folder, or AGENT_TUI_HOME to a full path."
        yield Check(_FOLDERS, name, "bad", f"{shown} is relative to the working folder", advice)
        return
    nearest = next(folder for folder in (path, *path.parents) if os.path.lexists(folder))
    if not nearest.is_dir():
        advice = f"Move it away: {_quoted(nearest)}"
        found = f"{shown_path(nearest, env.environ)} is not a folder"
        yield Check(_FOLDERS, name, "bad", found, advice)
        return
    if not os.access(nearest, os.W_OK | os.X_OK):
        yield Check(_FOLDERS, name, *_not_writable(nearest, shown, name))
        return
    if nearest != path:
        yield Check(_FOLDERS, name, "info", f"{shown}, created when needed")
        return
    yield _privacy_check(name, path, shown)


def check_disk(env: Environment) -> Iterator[Check]:
    """Free space and the kind of disk below the folders that must keep what is written."""
    folders = {"sessions": env.folders.sessions, "data": env.folders.data}
    seen: set[Path] = set()
    for name, path in folders.items():
        if path is None or not path.is_absolute():
            continue
        nearest = next(folder for folder in (path, *path.parents) if folder.is_dir())
        disk = file_system(nearest)
        if disk.place in seen:
            continue
        seen.add(disk.place)
        yield _space_check(name, nearest)
        yield from _kind_checks(name, disk.kind)


def check_sessions(env: Environment) -> Iterator[Check]:
    """How many sessions there are, how large, and whether others can read them."""
    root = env.folders.sessions
    if root is None:
        found = f"session_dir {env.loaded.settings.session_dir}: no such home folder"
        advice = "Write the full path in config.toml."
        yield Check(_FOLDERS, "sessions", "bad", found, advice)
        return
    tally = _count_sessions(root)
    found = f"{tally.files:,}, {size_text(tally.size_bytes)}" if tally.files else "none"
    if tally.unreadable:
        advice = f"Check its owner and permissions: ls -ld {_quoted(tally.unreadable[0])}"
        found += f"; {len(tally.unreadable)} folders cannot be read"
        yield Check(_FOLDERS, "session files", "bad", found, advice)
    elif tally.open_to_others:
        found += f"; others on this machine can read {tally.open_to_others:,} of them"
        advice = f"chmod -R go-rwx {_quoted(root)}"
        yield Check(_FOLDERS, "session files", "warning", found, advice)
    else:
        yield Check(_FOLDERS, "session files", "ok", found)


def check_log(env: Environment) -> Iterator[Check]:
    """The log file, which can grow."""
    path = env.folders.log_file
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    shown, advice = shown_path(path, env.environ), f"chmod 600 {_quoted(path)}"
    if stat.S_IMODE(status.st_mode) & 0o077:
        yield Check(
            _FOLDERS, "log file", "warning", f"{shown}: others on this machine can read it", advice
        )
    else:
        yield Check(_FOLDERS, "log file", "ok", f"{shown}, {size_text(status.st_size)}")


@dataclass(slots=True)
class _Tally:
    files: int
    size_bytes: int
    open_to_others: int
    unreadable: list[Path]


def _count_sessions(root: Path) -> _Tally:
    tally = _Tally(0, 0, 0, [])

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            tally.unreadable.append(Path(str(error.filename)))

    for folder, _, names in os.walk(root, onerror=note):
        for name in names:
            if not name.endswith(".jsonl"):
                continue
            try:
                status = Path(folder, name).stat()
            except OSError:  # removed meanwhile, or a link to nothing
                continue
            tally.files += 1
            tally.size_bytes += status.st_size
            tally.open_to_others += bool(status.st_mode & 0o077)
    return tally


def _not_writable(nearest: Path, shown: str, name: str) -> tuple[State, str, str]:
    owner = nearest.stat().st_uid
    quoted = _quoted(nearest)
    if owner != os.geteuid():
        found = f"cannot write to {shown}: another user owns it (uid {owner})"
        advice = f'sudo chown -R "$(id -un)" {quoted}'
    else:
        found = f"cannot write to {shown}"
        advice = f"chmod u+rwx {quoted} (does not help on a read-only disk)"
    return ("warning" if name == "config" else "bad"), found, advice


def _privacy_check(name: str, path: Path, shown: str) -> Check:
    """Settings may be read by others but not changed; the rest is the person's alone."""
    mode = stat.S_IMODE(path.stat().st_mode)
    forbidden, verb = (0o022, "change") if name == "config" else (0o077, "read")
    if mode & forbidden:
        advice = f"chmod {'go-w' if name == 'config' else '700'} {_quoted(path)}"
        found = f"{shown}: others on this machine can {verb} it"
        return Check(_FOLDERS, name, "warning", found, advice)
    return Check(_FOLDERS, name, "ok", shown)


def _space_check(name: str, folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    found = f"{size_text(free)} free"
    label = f"disk of {name}"
    if free >= _MIN_FREE_BYTES:
        return Check(_FOLDERS, label, "ok", found)
    return Check(
        _FOLDERS, label, "warning", found, "Free some space. A full disk stops the session."
    )


def _kind_checks(name: str, kind: str) -> Iterator[Check]:
    if kind in _MEMORY:
        found, advice = f"{kind}: lost when the machine stops", "a disk"
    elif kind in _NETWORK:
        found, advice = f"{kind}: file locks may not work between machines", "a local disk"
    else:
        return
    text = f"To be safe, set AGENT_TUI_DATA_DIR to a folder on {advice}."
    yield Check(_FOLDERS, f"disk of {name}", "warning", found, text)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


@dataclass(frozen=True, slots=True)
class FileSystem:
    """Where it begins and what it is (``ext4``, ``nfs4``); `kind` is empty where unknown."""

    place: Path
    kind: str


def file_system(folder: Path, mounts_file: Path = _MOUNTS_FILE) -> FileSystem:
    """The file system of `folder` (absolute); its root and no kind where nothing is told.

    The file's form is in the kernel's Documentation/filesystems/proc.rst: the fifth field is the
    place, the first one after a lone ``-`` the kind; later lines cover earlier ones.
    """
    best = FileSystem(Path(folder.anchor), "")
    try:
        lines = mounts_file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        real = folder.resolve()
    except (OSError, RuntimeError):
        return best
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.partition(" ")[0]
        if len(fields) < 5:
            continue
        place = Path(re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), fields[4]))
        if real.is_relative_to(place) and len(place.parts) >= len(best.place.parts):
            best = FileSystem(place, kind)
    return best


def check_workspace(env: Environment) -> Iterator[Check]:
    """Whether it is there and can be written, its repository, and the instructions in force."""
    cwd = env.cwd
    if cwd is None:
        advice = "Change to another folder, or name one with --cwd."
        yield Check(_WORKSPACE, "folder", "bad", "no longer exists", advice)
        return
    shown = shown_path(cwd, env.environ)
    if os.access(cwd, os.W_OK | os.X_OK):
        yield Check(_WORKSPACE, "folder", "ok", shown)
    else:
        advice = "The model can only read here. Work in a folder that you can write to."
        yield Check(_WORKSPACE, "folder", "warning", f"cannot write to {shown}", advice)
    yield _repository_check(env, cwd)
    yield from _instructions(env, cwd, kept_trust())


def _instructions(env: Environment, cwd: Path, trust: FolderTrust) -> Iterator[Check]:
    """What the model is told here, and what it is not for want of trust."""
    if trust.problem:
        advice = "It is moved aside the next time you trust a folder."
        yield Check(_WORKSPACE, "trust", "warning", trust.problem, advice)
    files = load_context_files(env.folders.config, cwd, trust.may_obey)
    names = ", ".join(shown_path(file.path, env.environ) for file in files)
    yield Check(_WORKSPACE, "AGENTS.md", "ok" if files else "info", names or "none")
    for file in files:
        if file.was_cut:
            found = f"{shown_path(file.path, env.environ)}: too long, only the beginning is used"
            yield Check(_WORKSPACE, "AGENTS.md", "warning", found, "Shorten it.")
    if withheld := trust.withheld(cwd):
        names = ", ".join(shown_path(file.path, env.environ) for file in withheld)
        advice = "If you trust their author: agent-tui trust add"
        found = f"{names}: {withheld[0].why}"
        yield Check(_WORKSPACE, "not read", "info", found, advice)


def _repository_check(env: Environment, cwd: Path) -> Check:
    """Git itself is not asked: a folder nobody trusts yet may tell it to run things."""
    root = next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), None)
    if root is None:
        advice = "To review and revert changes with git: git init"
        return Check(_WORKSPACE, "repository", "info", "not in a git repository", advice)
    return Check(_WORKSPACE, "repository", "ok", shown_path(root, env.environ))
