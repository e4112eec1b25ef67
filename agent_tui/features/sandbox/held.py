"""Files from commands that outside programs would read: held until the user decides."""

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
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
    replace_at,
    writable_folder_of,
)
from agent_tui.features.sandbox.file_contents import OTHER, FileContents, is_link_digest, is_stored
from agent_tui.paths import make_private_dir
from agent_tui.safe_paths import real_path
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.tools.held_files import HeldFile

_MOST_FILES: Final = 200
_ABOUT: Final = "about.json"
_CONTENT: Final = "content"


class HeldStore:
    """Stores held files.

    Args:
        folder: Our folder for them, hidden from all commands.
        roots: The working folders with their git folders.
        contents: Reads and writes files in `roots` and in `folder`.
    """

    def __init__(self, folder: Path, roots: Sequence[Path], contents: FileContents) -> None:
        self._folder = folder
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
        aside, kept = self._place(path, who, is_new=not before), self._contents.of(before)
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

    def _place(self, path: Path, who: str, *, is_new: bool) -> Path:
        now = datetime.now(UTC)
        here = self._folder / f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        about = {"path": os.fspath(path), "who": who, "is_new": is_new, "at": now.isoformat()}
        replace_private_file(here / _ABOUT, json.dumps(about))
        return make_private_dir(here) / _CONTENT


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
