"""Files from commands that outside programs would read: held until the user decides."""

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agent_tui.atomic_files import replace_private_file
from agent_tui.errors import ToolError
from agent_tui.paths import make_private_dir
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.tools.sandbox.beneath import (
    MOST_BYTES,
    copy_entry,
    entries_below,
    folder_of,
    make_folders,
    move_out,
    read_at,
    replace_at,
    write_at,
)

_MOST_FILES: Final = 200
_ABOUT: Final = "about.json"
_CONTENT: Final = "content"


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A new or changed file or folder that the user decides on.

    It was set aside, unless the user may have written it: then it is still where it was.

    Args:
        path: Where a command, or the user, put it.
        who: Which program reads it there.
        is_new: Whether nothing was there before; otherwise the previous content was restored.
        aside: Where it is now.
        diff: What it would change, for the user.
        digest: Digest of what `diff` shows: nothing else is put in place.
        files: What it would put in place; empty if that is nothing.
        replaces: A digest of what is there instead; empty if there is nothing.
    """

    path: Path
    who: str
    is_new: bool
    aside: Path
    diff: str
    digest: str
    files: tuple[Path, ...] = ()
    replaces: str = ""

    @property
    def is_in_place(self) -> bool:
        """Whether it was left where it is."""
        return self.aside == self.path

    def describe(self, shown: str) -> str:
        """One line for the model and the user, to whom the path is shown as `shown`."""
        kind = "new" if self.is_new else "changed"
        done = "not held back, as the user may have written it" if self.is_in_place else "held back"
        return f"{done}: {shown} ({kind}): {self.who}; the user decides"

    def outcome(self, shown: str) -> str:
        """A notice that it was set aside, or stays without an answer."""
        if self.is_in_place:
            return f"You or a command wrote {shown} ({self.who}): check it before you use it."
        return f"{shown} was held back ({self.who}): {self.aside}"


class HeldStore:
    """Stores held files: `folder` is ours and hidden from all commands."""

    def __init__(self, folder: Path, roots: Sequence[Path]) -> None:
        self._folder = folder
        self._roots = roots

    def set_aside(
        self,
        path: Path,
        who: str,
        before: tuple[bytes, int] | None = None,
        content: Path | None = None,
    ) -> HeldFile:
        """Set aside what is at `path`, or would have got there.

        Args:
            path: The file or folder.
            who: Which program reads it.
            before: The previous content and mode, which are restored.
            content: The copy inside that would have got there; then `path` is not touched.

        Raises:
            OSError: It is gone, or cannot be moved or copied.
        """
        aside = self._place(path, who, is_new=before is None)
        if content is not None:
            copy_entry(content, aside)
        else:
            with folder_of(path, self._roots) as folder:
                if before is None:
                    move_out(folder, path.name, aside)
                else:
                    replace_at(folder, path.name, *before, aside)
        return self.describe_at(aside, path, who, before)

    def describe_at(
        self, aside: Path, path: Path, who: str, before: tuple[bytes, int] | None
    ) -> HeldFile:
        """What the user is asked about `aside`, which belongs at `path` or is there.

        Raises:
            OSError: It cannot be read.
        """
        contents = dict(_contents(aside))
        was = None if before is None else before[0]
        diff = "".join(
            _diff(was, content, str(path / below if below else path))
            for below, (content, _) in contents.items()
        )
        if aside == path and (others := _others(path, contents)):
            diff += f"Not shown: {', '.join(others)}\n"
        files = tuple(path / below if below else path for below in contents)
        replaces = "" if was is None else hashlib.sha256(was).hexdigest()
        return HeldFile(path, who, was is None, aside, diff, _digest(contents), files, replaces)

    def check(self, held: HeldFile) -> None:
        """Check that what was left in place is still what the user was shown.

        Raises:
            ToolError: It has changed since, or is gone.
        """
        try:
            contents = dict(_contents(held.path))
        except OSError as error:
            raise ToolError(f"{held.path}: {error}") from error
        if _digest(contents) != held.digest:
            raise ToolError(f"{held.path} has changed since you were asked; nothing was done")

    def put_in_place(self, held: HeldFile) -> None:
        """Do what the user was shown.

        New files are created, as a command may still have the old ones open.

        Raises:
            ToolError: It cannot be done; the text says why.
        """
        contents = dict(_contents(held.aside))
        if not contents:
            raise ToolError(f"{held.path} holds no file to put in place; see {held.aside}")
        if _digest(contents) != held.digest:
            raise ToolError(f"{held.path} was not put in place: what was held back has changed")
        if held.is_new and os.path.lexists(held.path):
            raise ToolError(f"{held.path} was not put in place: something else is there now")
        try:
            if held.replaces and self._digest_in_place(held.path) != held.replaces:
                raise ToolError(f"{held.path} was not put in place: it has changed since")
            for below, (content, mode) in contents.items():
                target = held.path / below if below else held.path
                make_folders(target.parent, self._roots)
                with folder_of(target, self._roots) as folder:
                    write_at(folder, target.name, content, mode)
        except OSError as error:
            raise ToolError(f"{held.path} was not put in place: {error}") from error

    def _digest_in_place(self, path: Path) -> str:
        with folder_of(path, self._roots) as folder:
            content, _ = read_at(folder, path.name)
        return hashlib.sha256(content).hexdigest()

    def _place(self, path: Path, who: str, *, is_new: bool) -> Path:
        now = datetime.now(UTC)
        here = self._folder / f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        about = {"path": os.fspath(path), "who": who, "is_new": is_new, "at": now.isoformat()}
        replace_private_file(here / _ABOUT, json.dumps(about))
        return make_private_dir(here) / _CONTENT


def _contents(aside: Path) -> Iterator[tuple[str, tuple[bytes, int]]]:
    """The regular files of what was set aside, by their relative paths.

    Without links, files too large to review, and files beyond the 200th.
    """
    aside.lstat()  # raises if it is gone
    files = [path for path in sorted(_entries_of(aside)) if _has_type(path, stat.S_IFREG)]
    for path in files[:_MOST_FILES]:
        try:
            with folder_of(path, (aside.parent,)) as folder:
                content = read_at(folder, path.name)
        except OSError:
            continue
        yield ("" if path == aside else path.relative_to(aside).as_posix()), content


def _others(folder: Path, shown: Iterable[str]) -> list[str]:
    """What is in `folder` besides `shown`: links, files too large, and those beyond the 200th."""
    found = _entries_of(folder)
    names = {
        path.relative_to(folder).as_posix() for path in found if not _has_type(path, stat.S_IFDIR)
    }
    return sorted(names.difference(shown))


def _entries_of(place: Path) -> Iterator[Path]:
    """All that is in a folder, as far as its paths can be used; `place` itself if it is none."""
    if not _has_type(place, stat.S_IFDIR):
        yield place
    yield from map(Path, entries_below(place))


def _has_type(path: Path, kind: int) -> bool:
    with suppress(OSError):
        return stat.S_IFMT(path.lstat().st_mode) == kind
    return False


def _digest(contents: dict[str, tuple[bytes, int]]) -> str:
    digest = hashlib.sha256()
    for name, (content, mode) in sorted(contents.items()):
        digest.update(f"{name}\0{mode}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
        digest.update(content)
    return digest.hexdigest()


def _diff(was: bytes | None, content: bytes, name: str) -> str:
    if b"\0" in content or b"\0" in (was or b""):
        return f"{name}: binary, {len(was or b''):,} bytes before, {len(content):,} now\n"
    return unified_diff(_text(was), _text(content), name).text


def _text(content: bytes | None) -> str:
    return "" if content is None else content[:MOST_BYTES].decode("utf-8", "replace")
