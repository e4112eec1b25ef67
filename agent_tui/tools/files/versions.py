"""Records the state of a file, and restores it."""

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from agent_tui.atomic_files import scratch_beside, sync_file
from agent_tui.regular_files import open_regular_file, read_regular_file
from agent_tui.safe_paths import follow_links
from agent_tui.sessions.file.kept_files import MOST_FILE_BYTES, KeptFiles, digest_of
from agent_tui.sessions.replay.file_changes import FileVersion
from agent_tui.tools.files.memory import NoOpenTexts, OpenTexts

FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120000
"""The file modes that are distinguished, as in git."""

TOO_LARGE = f"it is larger than {MOST_FILE_BYTES // 1_000_000} MB"
NO_FILE = "it is no file"
_UNREADABLE = "it could not be read"
_NO_ROOM = "the store of earlier versions is full"
_ON_DISK = NoOpenTexts()

WhyHeld = Callable[[Path], str]
"""Returns why a file's content must not be copied anywhere; empty if it may be."""


def version_of(
    path: Path,
    kept: KeptFiles | None = None,
    why_held: WhyHeld = lambda _path: "",
    open_texts: OpenTexts = _ON_DISK,
) -> FileVersion:
    """The current state of the file at `path`; stores its content if possible. Follows no links.

    Args:
        path: Absolute.
        kept: Stores the content; None stores nothing.
        why_held: Called before anything is stored.
        open_texts: Provides the content of files open in an editor.
    """
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return FileVersion()
    if stat.S_ISLNK(status.st_mode):
        with contextlib.suppress(OSError):
            return store_version(os.fsencode(path.readlink()), LINK, kept)
        return FileVersion(digest=_UNREADABLE, why_not=_UNREADABLE)
    if not stat.S_ISREG(status.st_mode):
        return FileVersion(digest=NO_FILE, why_not="it is not a regular file")
    mode = PROGRAM if status.st_mode & stat.S_IXUSR else FILE
    try:
        if status.st_size > MOST_FILE_BYTES:
            return FileVersion(digest=_digest(path), mode=mode, why_not=TOO_LARGE)
        content = open_texts.present(path, read_regular_file(path))
    except OSError:
        return FileVersion(digest=_UNREADABLE, mode=mode, why_not=_UNREADABLE)
    if why := why_held(path) if kept is not None else "":
        return FileVersion(digest=digest_of(content), mode=mode, why_not=why)
    return store_version(content, mode, kept)


def store_version(content: bytes, mode: int, kept: KeptFiles | None) -> FileVersion:
    """The version with this content, which is stored if possible."""
    is_kept = kept is not None and kept.keep(content)
    why_not = "" if is_kept or kept is None else _NO_ROOM
    return FileVersion(digest=digest_of(content), mode=mode, is_kept=is_kept, why_not=why_not)


def text_of_version(version: FileVersion, source: Path | KeptFiles) -> str | None:
    """The text of a file in `version`, empty if it did not exist; None if it cannot be shown.

    Args:
        version: A regular file's; links and binary files have no text.
        source: The file if it is in that version now, else the store of earlier contents.
    """
    if not version.digest:
        return ""
    if version.mode == LINK:
        return None
    try:
        if isinstance(source, KeptFiles):
            content = source.content(version.digest)
        elif source.stat().st_size > MOST_FILE_BYTES:
            return None
        else:
            content = read_regular_file(source)
        return content.decode("utf-8") if content is not None else None
    except (OSError, UnicodeDecodeError):
        return None


def make_so(path: Path, wanted: FileVersion, kept: KeptFiles) -> None:
    """Restore the file at `path` to `wanted`, in one step; missing folders are created.

    An existing file keeps its permissions except for the executable bits.

    Raises:
        OSError: It cannot be restored, or the content is gone; the file is unchanged.
    """
    if follow_links(str(path.parent)) != str(path.parent):
        raise OSError(f"{path.parent} now points elsewhere")
    if not wanted.digest:
        path.unlink(missing_ok=True)
        return
    content = kept.content(wanted.digest)
    if content is None:
        raise OSError(wanted.why_not or "its earlier content is no longer stored")
    path.parent.mkdir(parents=True, exist_ok=True)
    with scratch_beside(path) as scratch:
        if wanted.mode == LINK:
            scratch.symlink_to(os.fsdecode(content))
        else:
            descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), _permissions(path, scratch, wanted.mode))
                sync_file(file.fileno())
        scratch.replace(path)


def _permissions(path: Path, scratch: Path, mode: int) -> int:
    """The permissions of the file at `path`, else of a new file; executable if `mode` says so."""
    place = path if path.is_file() and not path.is_symlink() else scratch
    usual = stat.S_IMODE(place.stat().st_mode)
    if mode == PROGRAM:
        return usual | (usual & 0o444) >> 2
    return usual & ~0o111


def _digest(path: Path) -> str:
    with open_regular_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
