"""Which files the words of a command may name, and which files a search prints lines of."""

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from agent_tui.permissions.protected_paths import ProtectedPaths
from agent_tui.permissions.shell.words import CommandPart, Word
from agent_tui.safe_paths import follow_links, is_folder
from agent_tui.tools.files.protected import SECRET_GLOBS, is_secret_name

_GREPS = ("grep", "egrep", "fgrep")
_RECURSIVE = re.compile(r"-[^-]*[rRd].*|--(?:r|deref|dir).*", re.DOTALL)
_FOLLOWS = re.compile(r"-[^-e]*[RL].*|--(?:deref|fol).*", re.DOTALL)
_PLAIN_FOR_RG = re.compile(r"-[nilwcFSsoHNABCem]*\d*|(?:-t|--type=)(?:py|rust|js|ts|go)|--glob=!.*")
"""Options that make rg skip hidden files."""
_GIVES_PATTERN = re.compile(r"-[^-]*[ef]")
"""Options whose value, the next word, is the pattern to search for."""
_NARROW = re.compile(r"--include[= ]?([\w./*-]*\*\.\w+)")

_STREAM = re.compile(r"/dev/(stdin|stdout|stderr|tty|fd/\d+)")
_PATTERN = re.compile(r"[*?\[]")
_LAST_NAME = re.compile(r"/([\w.-]+)[\"']?$")
_MAX_EXPANDED = 1_000
_MAX_PATTERNS = 300
_MAX_ENTRIES = 20_000
_MAX_SEARCHED = 3_000
_UNSEARCHED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", "target"})


class PathResolver:
    """Resolves words against folders; each word once.

    `is_exhausted`: the limit on patterns or on files compared with them was reached, so the files
    they name are unknown.
    """

    def __init__(self) -> None:
        self.is_exhausted = False
        self._known: dict[tuple[Path, str, bool, str | None], list[Path]] = {}
        self._patterns_left = _MAX_PATTERNS
        self._entries_left = _MAX_ENTRIES

    def resolve(self, base: Path, word: Word) -> list[Path]:
        """The files a word may name, resolved; also in ``of=FILE``, ``-oFILE``, ``HEAD:FILE``."""
        key = (base, word.source, word.is_pattern, word.value)
        if key not in self._known:
            value = _as_glob(word) if word.is_pattern else word.value
            if value is None and (name := _LAST_NAME.search(word.source)):
                value = name[1]  # $d/.env
            self._known[key] = [
                path
                for text in (_texts(value) if value is not None else ())
                for path in self._paths(base, text, word.is_pattern)
            ]
        return self._known[key]

    def _paths(self, base: Path, text: str, is_pattern: bool) -> Iterator[Path]:
        if _STREAM.fullmatch(text):
            yield Path(text)
            return
        try:
            written = str(Path(text).expanduser()) if text.startswith("~") else text
            lexical = written if written.startswith("/") else f"{base}/{written}"
            resolved = follow_links(lexical)
            yield Path(resolved)
            if resolved != lexical:
                yield Path(lexical)
            if is_pattern:
                for match in islice(self._matches(lexical), _MAX_EXPANDED):
                    yield Path(follow_links(match))
        except (OSError, RuntimeError):
            return

    def _matches(self, pattern: str) -> Iterator[str]:
        """The files a shell would substitute for an absolute pattern (``**`` means ``*``)."""
        self._patterns_left -= 1
        self.is_exhausted = self.is_exhausted or self._patterns_left < 0
        if self.is_exhausted:
            return
        found = [""]
        for piece in pattern.strip("/").split("/"):
            if not _PATTERN.search(piece):
                found = [f"{folder}/{piece}" for folder in found]
                continue
            matches = re.compile(fnmatch.translate(piece)).match
            found = [
                f"{folder}/{name}"
                for folder in found
                for name in self._names(folder)
                if matches(name) and (name[0] != "." or piece[0] in ".[")
            ]
        yield from (path for path in found if os.path.lexists(path))

    def _names(self, folder: str) -> list[str]:
        if self._entries_left < 0:
            self.is_exhausted = True
            return []
        try:
            with os.scandir(folder or "/") as entries:
                names = [entry.name for entry in entries]
        except OSError:
            return []
        self._entries_left -= len(names) + 1
        return names


def _as_glob(word: Word) -> str:
    """A file pattern in Python's form; broader than the shell's if the two may differ."""
    value = word.value or ""
    is_odd = re.search(r"[\\'\"]", word.source) is not None
    return "/".join(_piece_as_glob(piece, is_odd) for piece in value.split("/"))


def _piece_as_glob(piece: str, is_odd: bool) -> str:
    if "[" in piece and (is_odd or re.search(r"\[[:=.]", piece)):
        return re.sub(r"\[.*\]", "*", piece)
    return piece.replace("[^", "[!")


def secret_a_pattern_takes_in(word: Word, guard: ProtectedPaths) -> str:
    """A protected name that a file pattern would match if the file existed; empty if none."""
    for piece in _as_glob(word).split("/") if word.is_pattern else ():
        if re.fullmatch(r"[*?]*|[^*?\[]*", piece):
            continue
        matches = re.compile(fnmatch.translate(piece.casefold())).match
        for sample in (*_SAMPLES, *guard.secret_folder_names):
            if matches(sample):
                return sample
    return ""


def secret_below(
    folder: Path, guard: ProtectedPaths, *, hidden: bool, follows_links: bool = False
) -> Path | None:
    """A file below `folder` that is likely to hold keys, as `find_held` finds it."""
    linked = guard.why_searching_asks if follows_links else None
    return find_held(folder, guard.why_reading_asks, linked, hidden=hidden)


def find_held(
    folder: Path,
    is_held: Callable[[Path], object],
    is_link_held: Callable[[Path], object] | None = None,
    *,
    hidden: bool,
) -> Path | None:
    """A file below `folder` for which `is_held` is true; checks a few thousand names at most.

    Links are followed if `is_link_held` is given; it is called with their targets.
    """
    looked_at = 0
    pending = [folder]
    seen = {folder}
    while pending and looked_at < _MAX_SEARCHED:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            looked_at += 1
            if entry.name.startswith(".") and not hidden:
                continue
            if is_held(path := Path(entry.path)):
                return path
            if is_link_held is not None and entry.is_symlink():
                target = Path(follow_links(str(path)))
                if is_link_held(target):
                    return path
                if is_folder(target) and target not in seen:
                    seen.add(target)
                    pending.append(target)
            if entry.name not in _UNSEARCHED and entry.is_dir(follow_symlinks=False):
                pending.append(path)
    return None


_SAMPLES = tuple(sorted({glob.replace("*", "\N{BULLET}") for glob in SECRET_GLOBS}))
"""Names that no pattern matches by chance."""


def _texts(value: str) -> Sequence[str]:
    texts = [value]
    if "=" in value:
        texts.append(value.partition("=")[2])
    if ":" in value:  # git show HEAD:FILE
        texts += [value.rpartition(":")[2], value.partition(":")[0]]
    if "," in value:  # type=bind,src=FILE
        texts += [piece.partition("=")[2] or piece for piece in value.split(",")]
    if value.startswith("-") and len(value) > 2:
        texts.append(value[2:])
    return texts


def searches_hidden_files(part: CommandPart) -> bool | None:
    """Whether a search of whole folders includes hidden files; None if it is no such search."""
    options = _options(part)
    if part.name == "rg":
        return not all(map(_PLAIN_FOR_RG.fullmatch, options))
    if part.name in _GREPS:
        return True if any(map(_RECURSIVE.match, options)) and not _is_narrow(options) else None
    return True if part.name == "diff" and any(map(_RECURSIVE.match, options)) else None


def follows_links(part: CommandPart) -> bool:
    """Whether a search of whole folders follows links."""
    return part.name == "diff" or any(map(_FOLLOWS.match, _options(part)))


def words_to_search(part: CommandPart) -> list[Word]:
    """The words that may name what is searched, without the options and the pattern."""
    words: list[Word] = []
    before, is_given = "", False
    for word in part.arguments:
        value = word.value or ""
        if _GIVES_PATTERN.fullmatch(before):
            is_given = True
        elif not value.startswith("-"):
            words.append(word)
        before = value
    return words if is_given or part.name == "diff" else words[1:]


def _options(part: CommandPart) -> list[str]:
    values = (word.value or "" for word in part.arguments)
    return [value for value in values if value.startswith("-")]


def _is_narrow(options: list[str]) -> bool:
    """Whether only files like ``*.py`` are searched, whose names never denote keys."""
    if any(map(_GIVES_PATTERN.fullmatch, options)):
        return False
    found = [_NARROW.fullmatch(option) for option in options if option.startswith("--inc")]
    return bool(found) and all(
        match and not any(is_secret_name(match[1].replace("*", part)) for part in ("x", ""))
        for match in found
    )
