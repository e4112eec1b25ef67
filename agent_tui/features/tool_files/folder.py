"""The files of the folder as they are now, and the user's answers about them."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_tui import paths
from agent_tui.agent.consent import ConsentFile
from agent_tui.atomic_files import replace_private_file
from agent_tui.errors import ConfigError
from agent_tui.regular_files import open_regular_file, read_regular_file
from agent_tui.safe_paths import real_path

MAX_FILE_BYTES = 64_000
"""The user reads all of a file before it is loaded: 1,500 lines."""

MAX_FILES = 50


@dataclass(frozen=True, slots=True)
class FileText:
    """One file that may be loaded.

    Args:
        path: Where it is.
        text: All of it.
    """

    path: Path
    text: str

    @property
    def fingerprint(self) -> str:
        """The hash of the path and the text, to which the user's answer is bound."""
        named = f"{self.path}\0{self.text}"
        return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class UnusableFile:
    """A file, or the whole folder, that is not loaded; `why` follows its path."""

    path: Path
    why: str


def find_files(folder: Path, writable: Iterable[Path]) -> Iterator[FileText | UnusableFile]:
    """Yield the Python files of `folder` in order; names with a dot or ``_`` first are left out.

    Blocking.

    Args:
        folder: It may be missing.
        writable: Folders where the model's commands may write.
    """
    try:
        status = folder.lstat()
        names = sorted(entry.name for entry in os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield UnusableFile(folder, f"cannot be read: {error.strerror}")
        return
    names = [name for name in names if name.endswith(".py") and name[0] not in "._"]
    if names and (why := _why_not_from(folder, status, writable)):
        yield UnusableFile(folder, why)
        return
    for name in names[:MAX_FILES]:
        yield _read(folder / name)
    if len(names) > MAX_FILES:
        yield UnusableFile(folder, f"has more than {MAX_FILES} files; the others are left out")


def _why_not_from(folder: Path, status: os.stat_result, writable: Iterable[Path]) -> str:
    """Why nothing is loaded from `folder`; empty if files may be."""
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link. Put a folder in its place"
    if status.st_mode & stat.S_IWOTH:
        return "can be written by every user. Run `chmod o-w` on it"
    real = real_path(folder)
    for place in map(real_path, writable):
        if real.is_relative_to(place):
            return f"is in {place}, where the model's commands can write. Start agent-tui elsewhere"
    return ""


def _read(path: Path) -> FileText | UnusableFile:
    try:
        if path.is_symlink():
            return UnusableFile(path, "is a symbolic link. Put the file itself here")
        with open_regular_file(path, follow_links=False) as file:
            if os.fstat(file.fileno()).st_mode & stat.S_IWOTH:
                return UnusableFile(path, "can be written by every user. Run `chmod o-w` on it")
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return UnusableFile(path, f"cannot be read: {error.strerror}")
    if len(data) > MAX_FILE_BYTES:
        return UnusableFile(path, f"is larger than {MAX_FILE_BYTES:,} bytes")
    if not path.stem.isidentifier():
        return UnusableFile(path, "needs a name made of letters, digits and _")
    try:
        return FileText(path, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        return UnusableFile(path, f"is not UTF-8 text (byte {error.start:,})")


class Approvals:
    """The user's answers about files, and the text of each file as it was approved last.

    Args:
        folder: Where they are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._answers = ConsentFile(folder / "answers.json", "tools")

    def is_allowed(self, file: FileText) -> bool | None:
        """The user's answer about this text at this path; None if there is none."""
        return self._answers.is_allowed(file.fingerprint)

    def keep(self, file: FileText, *, is_allowed: bool) -> None:
        """Store an answer.

        Raises:
            ConfigError: It cannot be stored; it holds for this run.
        """
        self._answers.keep(file.fingerprint, is_allowed=is_allowed)
        if is_allowed:
            try:
                replace_private_file(self._copy_of(file.path), file.text)
            except OSError as error:
                raise ConfigError(f"The approved text was not kept: {error.strerror}.") from error

    def approved_before(self, path: Path) -> FileText | None:
        """The text at `path` that the user approved last; None if there is none."""
        try:
            text = read_regular_file(self._copy_of(path)).decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        before = FileText(path, text)
        return before if self.is_allowed(before) else None

    def tell_once(self, file: FileText, problems: Iterable[str]) -> bool:
        """Whether the user was not told `problems` of this text yet; from now on they were."""
        place = self._copy_of(file.path).with_suffix(".told")
        named = "\0".join((file.fingerprint, *problems))
        told = hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()
        with suppress(OSError):  # then the next start repeats the message
            if place.exists() and read_regular_file(place) == told.encode():
                return False
            replace_private_file(place, told)
        return True

    def _copy_of(self, path: Path) -> Path:
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
        return self._folder / f"{name}.txt"


def own_approvals() -> Approvals:
    """The answers of this user."""
    return Approvals(paths.user_data_dir() / "tool-files")
