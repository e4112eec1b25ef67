"""The program's folders: there, writable, private, on a disk that keeps what is written."""

import os
import shlex
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_tui.cli.doctor.check import Check, State
from agent_tui.cli.doctor.mounts import file_system
from agent_tui.cli.doctor.surroundings import Surroundings
from agent_tui.cli.doctor.wording import shown_path
from agent_tui.local_models.sizes import size_text

_SECTION = "folders"
_MIN_FREE_BYTES = 200_000_000
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "afs", "ceph")
_MEMORY = ("tmpfs", "ramfs")


def check_folder(around: Surroundings, name: str, path: Path) -> Iterator[Check]:
    """One of our folders.

    Args:
        around: Where we are.
        name: What it holds, as in ``sessions``.
        path: The folder.
    """
    shown = shown_path(path, around.environ)
    if not path.is_absolute():
        advice = "Set HOME to your home folder, or name whole paths in AGENT_TUI_*_DIR."
        yield Check(_SECTION, name, "bad", f"{shown} depends on the working folder", advice)
        return
    nearest = next(folder for folder in (path, *path.parents) if os.path.lexists(folder))
    if not nearest.is_dir():
        advice = f"Move it away: {_quoted(nearest)}"
        found = f"{shown_path(nearest, around.environ)} is in the way: it is not a folder"
        yield Check(_SECTION, name, "bad", found, advice)
        return
    if not os.access(nearest, os.W_OK | os.X_OK):
        yield Check(_SECTION, name, *_not_writable(nearest, shown, name))
        return
    if nearest != path:
        yield Check(_SECTION, name, "info", f"{shown}, made when it is needed")
        return
    yield _privacy_check(name, path, shown)


def check_disk(around: Surroundings) -> Iterator[Check]:
    """Free space and the kind of disk below the folders that must keep what is written."""
    folders = {"sessions": around.folders.sessions, "data": around.folders.data}
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


def check_sessions(around: Surroundings) -> Iterator[Check]:
    """How many sessions there are, how large, and whether others can read them."""
    root = around.folders.sessions
    if root is None:
        found = f"session_dir {around.loaded.settings.session_dir}: there is no such home folder"
        advice = "Write the whole path in config.toml."
        yield Check(_SECTION, "sessions", "bad", found, advice)
        return
    tally = _count_sessions(root)
    found = f"{tally.files:,} in {size_text(tally.size_bytes)}"
    if tally.unreadable:
        advice = f"Look at its owner and rights: ls -ld {_quoted(tally.unreadable[0])}"
        found += f"; {len(tally.unreadable)} folders cannot be read"
        yield Check(_SECTION, "sessions in it", "bad", found, advice)
    elif tally.open_to_others:
        found += f"; others on this machine can read {tally.open_to_others:,} of them"
        advice = f"chmod -R go-rwx {_quoted(root)}"
        yield Check(_SECTION, "sessions in it", "warning", found, advice)
    else:
        yield Check(_SECTION, "sessions in it", "ok", found)


def check_log(around: Surroundings) -> Iterator[Check]:
    """The log file, which can grow."""
    path = around.folders.log_file
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    shown, advice = shown_path(path, around.environ), f"chmod 600 {_quoted(path)}"
    if stat.S_IMODE(status.st_mode) & 0o077:
        yield Check(_SECTION, "log file", "warning", f"{shown}: others can read it", advice)
    else:
        yield Check(_SECTION, "log file", "ok", f"{shown}, {size_text(status.st_size)}")


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
        found = f"{shown} cannot be written: it belongs to another person (uid {owner})"
        advice = f'sudo chown -R "$(id -un)" {quoted}'
    else:
        found = f"{shown} cannot be written"
        advice = f"chmod u+rwx {quoted} (no help on a disk that is mounted read-only)"
    return ("warning" if name == "config" else "bad"), found, advice


def _privacy_check(name: str, path: Path, shown: str) -> Check:
    """Settings may be read by others but not changed; the rest is the person's alone."""
    mode = stat.S_IMODE(path.stat().st_mode)
    forbidden, verb = (0o022, "change") if name == "config" else (0o077, "look into")
    if mode & forbidden:
        advice = f"chmod {'go-w' if name == 'config' else '700'} {_quoted(path)}"
        found = f"{shown}: others on this machine can {verb} it"
        return Check(_SECTION, name, "warning", found, advice)
    return Check(_SECTION, name, "ok", shown)


def _space_check(name: str, folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    found = f"{size_text(free)} free"
    label = f"disk of {name}"
    if free >= _MIN_FREE_BYTES:
        return Check(_SECTION, label, "ok", found)
    return Check(_SECTION, label, "warning", found, "Make room: a full disk stops the session.")


def _kind_checks(name: str, kind: str) -> Iterator[Check]:
    if kind in _MEMORY:
        found, advice = f"{kind}: gone when the machine stops", "a disk"
    elif kind in _NETWORK:
        found, advice = f"{kind}: locks may not hold between machines", "a disk of this machine"
    else:
        return
    text = f"Name a folder on {advice} as AGENT_TUI_DATA_DIR to be safe."
    yield Check(_SECTION, f"disk of {name}", "warning", found, text)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
