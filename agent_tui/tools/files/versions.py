"""Records the state of a file, and restores it."""

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from agent_tui.atomic_files import scratch_beside, sync_file
from agent_tui.regular_files import open_in
from agent_tui.safe_paths import follow_links, open_folder
from agent_tui.sessions.file.kept_files import MOST_FILE_BYTES, KeptFiles, digest_of
from agent_tui.sessions.replay.file_changes import FileVersion
from agent_tui.tools.files.memory import NoOpenTexts, OpenTexts
from agent_tui.tools.files.opening import read_judged_file

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
    """The current state of the file at `path`; stores its content if possible.

    Args:
        path: Absolute. No links are followed: what is behind a link on the way does not exist.
        kept: Stores the content; None stores nothing.
        why_held: Called before anything is stored.
        open_texts: Provides the content of files open in an editor.
    """
    try:
        with open_folder(path.parent) as folder:
            status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                return _version_of_link(path.name, folder, status.st_mode, kept)
            mode = PROGRAM if status.st_mode & stat.S_IXUSR else FILE
            try:
                with open_in(folder, path) as file:
                    now = os.fstat(file.fileno())
                    if now.st_size > MOST_FILE_BYTES:  # reading it could take minutes
                        digest = f"{now.st_size}-{now.st_mtime_ns}"
                        return FileVersion(digest=digest, mode=mode, why_not=TOO_LARGE)
                    content = open_texts.present(path, file.read())
            except OSError:
                return FileVersion(digest=_UNREADABLE, mode=mode, why_not=_UNREADABLE)
    except (OSError, ValueError):
        return FileVersion()
    if why := why_held(path) if kept is not None else "":
        return FileVersion(digest=digest_of(content), mode=mode, why_not=why)
    return store_version(content, mode, kept)


def _version_of_link(name: str, folder: int, mode: int, kept: KeptFiles | None) -> FileVersion:
    """The version of what is no regular file: of a link, where it leads."""
    if not stat.S_ISLNK(mode):
        return FileVersion(digest=NO_FILE, why_not="it is not a regular file")
    with contextlib.suppress(OSError):
        return store_version(os.fsencode(os.readlink(name, dir_fd=folder)), LINK, kept)
    return FileVersion(digest=_UNREADABLE, why_not=_UNREADABLE)


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
        else:
            content = read_judged_file(source, MOST_FILE_BYTES)
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
        with contextlib.suppress(FileNotFoundError), open_folder(path.parent) as folder:
            os.unlink(path.name, dir_fd=folder)
        return
    content = kept.content(wanted.digest)
    if content is None:
        raise OSError(wanted.why_not or "its earlier content is no longer stored")
    with open_folder(path.parent, makes=True) as folder, scratch_beside(path) as scratch:
        if wanted.mode == LINK:
            os.symlink(os.fsdecode(content), scratch.name, dir_fd=folder)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            descriptor = os.open(scratch.name, flags, 0o666, dir_fd=folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                usual = _usual_permissions(path.name, folder, os.fstat(descriptor))
                os.fchmod(descriptor, _with_executable_bits(usual, wanted.mode))
                sync_file(descriptor)
        os.replace(scratch.name, path.name, src_dir_fd=folder, dst_dir_fd=folder)


def _usual_permissions(name: str, folder: int, new: os.stat_result) -> int:
    """The permissions of the regular file `name` in `folder`, else those of a `new` one."""
    status = new
    with contextlib.suppress(OSError):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return stat.S_IMODE((status if stat.S_ISREG(status.st_mode) else new).st_mode)


def _with_executable_bits(permissions: int, mode: int) -> int:
    """`permissions`, with the executable bits that `mode` wants."""
    return permissions | (permissions & 0o444) >> 2 if mode == PROGRAM else permissions & ~0o111
