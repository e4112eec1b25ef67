"""Files from commands that outside programs would read: held until the user decides."""

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from agent_tui.atomic_files import replace_private_file
from agent_tui.errors import ToolError
from agent_tui.features.sandbox.beneath import (
    MOST_BYTES,
    copy_entry,
    move_out,
    read_own,
    replace_at,
    writable_folder_of,
)
from agent_tui.features.sandbox.file_contents import OTHER, FileContents, is_link_digest, is_stored
from agent_tui.features.sandbox.linked import name_first
from agent_tui.file_locks import FileLock, LockHeldError
from agent_tui.paths import make_private_dir
from agent_tui.safe_paths import real_path
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.tools.held_files import HeldFile

_MOST_FILES: Final = 200
_ABOUT: Final = "about.json"
_CONTENT: Final = "content"
_WAITING: Final = "waiting"
"""Beside what the user has not decided on: has the name of the watch that asks."""


class HeldStore:
    """Stores held files.

    Args:
        folder: Our folder for them, hidden from all commands.
        roots: The working folders with their git folders.
        contents: Reads and writes files in `roots` and in `folder`.
        name: What no other store for `folder` has, in any program.
    """

    def __init__(
        self, folder: Path, roots: Sequence[Path], contents: FileContents, name: str
    ) -> None:
        self._folder = folder
        self._name = name
        self._lock: FileLock | None = None
        self._roots = roots
        self._contents = contents

    def set_aside(self, path: Path, who: str, before: str, source: Path) -> HeldFile:
        """Set aside what is at `path`, or would have got there.

        Args:
            path: The file or folder.
            who: Which program reads it.
            before: The digest of the previous content, which is restored.
            source: Where it is: if elsewhere, `path` is not touched.

        Raises:
            OSError: It is gone, or cannot be moved or copied.
        """
        before = before if is_stored(before) else ""
        aside, kept = self._place(path, who, before), self._contents.of(before)
        if source != path:
            copy_entry(source, aside)
        else:
            with writable_folder_of(path, self._roots) as folder:
                if kept is None:
                    move_out(folder, path.name, aside)
                else:
                    replace_at(folder, path.name, *kept, aside)
            if is_link_digest(before):
                self._contents.write(path, before)
        return self.describe(aside, path, who, before, self._digests_at(aside, path))

    def describe(
        self, aside: Path, path: Path, who: str, before: str, files: Mapping[Path, str]
    ) -> HeldFile:
        """What the user is asked about `aside`, which belongs at `path` or is there.

        `files` has the digest of each of its files, by the paths where they belong, and `before`
        is that of what was there before.
        """
        before = before if is_stored(before) else ""
        was = self._contents.bytes_of(before)
        shown, others, diff = dict[Path, str](), list[str](), ""
        for file, digest in sorted(files.items()):
            kept = self._contents.bytes_of(digest)
            if kept is None or len(kept) > MOST_BYTES or len(shown) >= _MOST_FILES:
                others.append(file.relative_to(path).as_posix())
                continue
            shown[file] = digest
            if is_link_digest(digest):
                diff += f"{file} -> {os.fsdecode(kept)}\n"
                for target, there in self._digests_behind(file.parent / os.fsdecode(kept)):
                    shown[target] = there
                    diff += _diff(b"", self._contents.bytes_of(there) or b"", str(target))
            else:
                diff += _diff(was, kept, str(file)) + _mode_change(before, digest, str(file))
        if aside == path:  # all of it is there, whatever can be shown
            shown |= files
            diff += f"Not shown: {', '.join(others)}\n" if others else ""
        return HeldFile(path, who, aside, diff, tuple(shown.items()), before)

    def take_over(self) -> Iterator[HeldFile]:
        """What the user was to be asked about when a program ended; from now on, this one asks.

        Raises:
            OSError: Our folder cannot be used.
        """
        for waiting in _find_abandoned(self._folder):
            here = waiting.parent
            with suppress(ValueError, KeyError):
                about = json.loads(read_own(here / _ABOUT))
                path, aside = Path(about["path"]), here / _CONTENT
                if os.path.lexists(aside):
                    self._claim(here)
                    files = self._digests_at(aside, path)
                    yield self.describe(aside, path, about["who"], about["before"], files)
                    continue
            waiting.unlink(missing_ok=True)  # it was put in place, or was never there

    def note_decided(self, held: HeldFile) -> None:
        """Note that the user need not be asked about `held` again.

        Raises:
            OSError: Our folder cannot be used.
        """
        if held.aside.parent.parent == self._folder:
            held.aside.with_name(_WAITING).unlink(missing_ok=True)

    def release(self) -> None:
        """Leave what the user did not decide on to the next program."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _claim(self, here: Path) -> None:
        if self._lock is None:
            self._lock = FileLock(make_private_dir(_owners_of(self._folder)) / self._name)
        replace_private_file(here / _WAITING, self._name)

    def put_in_place(self, held: HeldFile) -> None:
        """Do what the user was shown.

        New files are created, as a command may still have the old ones open.

        Raises:
            ToolError: It cannot be done; the text says why.
        """
        there, wanted = self._digests_at(held.aside, held.path), dict(held.files)
        if not wanted:
            raise ToolError(f"{held.path} holds no file to put in place; see {held.aside}")
        files = {path: wanted[path] for path in wanted if path.is_relative_to(held.path)}
        if files.items() - there.items():
            raise ToolError(f"{held.path} was not put in place: what was held back has changed")
        if not held.before and os.path.lexists(held.path):
            raise ToolError(f"{held.path} was not put in place: something else is there now")
        behind = wanted.items() - files.items()
        if held.before:  # whatever its mode is by now
            behind |= {(held.path, held.before)}
        now = {path: self._contents.digest_of(path).partition("-")[0] for path, _ in behind}
        if any(now[path] != digest.partition("-")[0] for path, digest in behind):
            raise ToolError(f"{held.path} was not put in place: it has changed since")
        try:
            for path, digest in files.items():
                self._contents.write(path, digest)
        except OSError as error:
            raise ToolError(f"{held.path} was not put in place: {error}") from error

    def _digests_at(self, aside: Path, path: Path) -> dict[Path, str]:
        """The digest of each file that is or was set aside, by the path where it belongs."""
        found = self._contents.digests_in(aside)
        found = {aside: OTHER} if found is None else found
        return {path / file.relative_to(aside): digest for file, digest in found.items()}

    def _digests_behind(self, target: Path) -> Iterator[tuple[Path, str]]:
        """The files that can be shown of what a link leads to, in the working folders."""
        place = real_path(target)
        if any(root in place.parents for root in self._roots):
            found = self._contents.digests_in(place) or {}
            for path, digest in islice(found.items(), _MOST_FILES):
                if self._contents.of(digest) is not None:
                    yield path, digest

    def _place(self, path: Path, who: str, before: str) -> Path:
        now = datetime.now(UTC)
        here = self._folder / f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        about = {"path": os.fspath(path), "who": who, "before": before, "at": now.isoformat()}
        replace_private_file(here / _ABOUT, json.dumps(about))
        self._claim(here)
        return make_private_dir(here) / _CONTENT


def describe_waiting(folder: Path) -> str:
    """A notice about what the user was to be asked about when a program ended; empty for nothing.

    Args:
        folder: That of a `HeldStore`.
    """
    places = [waiting.with_name(_CONTENT) for waiting in _find_abandoned(folder)]
    named = [place for place in places if os.path.lexists(place)]
    if not named:
        return ""
    shown = name_first(named)
    return f"Held back in an earlier session: {shown}. The next command asks what to do with it."


def _find_abandoned(folder: Path) -> Iterator[Path]:
    """The `_WAITING` file of what nobody asks about any more. Blocking."""
    for waiting in sorted(folder.glob(f"*/{_WAITING}")):
        with suppress(OSError, ValueError, LockHeldError):
            owner = Path(read_own(waiting).decode()).name
            if owner and (owners := _owners_of(folder)).is_dir():
                FileLock(owners / owner).release()
            yield waiting


def _owners_of(folder: Path) -> Path:
    """Where each store of `folder` in a running program has a lock."""
    return folder.with_name("asking")


def _mode_change(before: str, digest: str, name: str) -> str:
    """What changes in who may run a file; empty for a new one that nobody may."""
    old, new = (int(each.partition("-")[2] or "0", 8) for each in (before, digest))
    if old & 0o111 == new & 0o111:
        return ""
    return f"{name}: {'now' if new & 0o111 else 'no longer'} executable\n"


def _diff(was: bytes | None, content: bytes, name: str) -> str:
    if b"\0" in content or b"\0" in (was or b""):
        return f"{name}: binary, {len(was or b''):,} bytes before, {len(content):,} now\n"
    return unified_diff(_text(was), _text(content), name).text


def _text(content: bytes | None) -> str:
    return "" if content is None else content[:MOST_BYTES].decode("utf-8", "replace")
