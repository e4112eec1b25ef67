"""Walks a folder the way a user sees a project: without ignored files and ``.git``."""

import difflib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import path_from, real_path, scan_folder

_MAX_IGNORE_BYTES = 1_000_000
_ALWAYS_SKIPPED = frozenset({".git", ".hg", ".svn", ".jj"})


@dataclass(frozen=True, slots=True)
class _IgnoreFile:
    """The rules of one ``.gitignore``; `base` is its folder, relative, with a slash or empty."""

    base: str
    spec: GitIgnoreSpec

    def verdict(self, relative: str) -> bool | None:
        """True: ignored; False: included again with ``!``; None: no rule matches it."""
        return self.spec.check_file(relative[len(self.base) :]).include


@dataclass(frozen=True, slots=True)
class WalkedFile:
    """A file found: path relative to the walk's root (posix) and its directory entry."""

    relative: str
    entry: os.DirEntry[str]


@dataclass(frozen=True, slots=True)
class _Level:
    """A folder being walked: its path with a slash, its rules, and its remaining entries."""

    folder: str
    rules: tuple[_IgnoreFile, ...]
    entries: Iterator[os.DirEntry[str]]


def walk_files(root: Path, *, deadline: float | None = None) -> Iterator[WalkedFile]:
    """Every file under `root` in path order, links not followed.

    Args:
        root: Where ignore rules start; paths are relative to it.
        deadline: `time.monotonic()` value at which the walk ends early.
    """
    pending = [_open_level(root, "", ())]
    while pending:
        level = pending[-1]
        entry = next(level.entries, None)
        if entry is None:
            pending.pop()
            continue
        relative = level.folder + entry.name
        if not _is_folder(entry):
            if not _is_ignored(relative, level.rules):
                yield WalkedFile(relative, entry)
        elif entry.name not in _ALWAYS_SKIPPED and not _is_ignored(f"{relative}/", level.rules):
            if deadline is not None and time.monotonic() > deadline:
                return
            pending.append(_open_level(root, f"{relative}/", level.rules))


def relative_files(root: Path, limit: int) -> Iterator[str]:
    """Up to `limit` files of a project as relative posix paths, for completion."""
    return (file.relative for file in islice(walk_files(root), limit))


def near_names(path: Path, cwd: Path, limit: int = 3) -> list[str]:
    """Existing files that a wrong `path` may mean: similar in its folder, or by name elsewhere.

    Returned relative to `cwd` if inside it.
    """
    siblings: list[str] = []
    with suppress(OSError), scan_folder(path.parent) as (_, entries):
        siblings = [entry.name for entry in entries]
    near = [path.parent / name for name in difflib.get_close_matches(path.name, siblings, limit)]
    root = real_path(cwd)
    if len(near) < limit and path.is_relative_to(root):
        for file in walk_files(root, deadline=time.monotonic() + 0.3):
            if file.entry.name == path.name and (root / file.relative) not in near:
                near.append(root / file.relative)
            if len(near) >= limit:
                break
    return [path_from(path, root) for path in near]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """The entries of `folder`, by name; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _open_level(root: Path, folder: str, rules: tuple[_IgnoreFile, ...]) -> _Level:
    entries = _entries(root / folder)
    if any(entry.name == ".gitignore" for entry in entries):
        rules = _with_rules_of(root, folder, rules)
    return _Level(folder, rules, iter(entries))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _with_rules_of(
    root: Path, folder: str, rules: tuple[_IgnoreFile, ...]
) -> tuple[_IgnoreFile, ...]:
    """`rules` and those of the ``.gitignore`` in `folder`, if it is readable."""
    path = root / folder / ".gitignore"
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return rules
        with open_regular_file(path) as file:
            text = file.read(_MAX_IGNORE_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return rules
    return (*rules, _IgnoreFile(folder, GitIgnoreSpec(list(_patterns(text.splitlines())))))


def _patterns(lines: Iterable[str]) -> Iterator[GitIgnoreSpecPattern]:
    """The patterns of an ignore file; an invalid line matches nothing, as in git."""
    for line in filter(None, lines):
        try:
            yield GitIgnoreSpecPattern(line)
        except (re.error, ValueError):
            continue


def _is_ignored(relative: str, rules: tuple[_IgnoreFile, ...]) -> bool:
    """Whether `relative` is ignored: the deepest ignore file that matches decides, as in git."""
    for ignore_file in reversed(rules):
        verdict = ignore_file.verdict(relative)
        if verdict is not None:
            return verdict
    return False
