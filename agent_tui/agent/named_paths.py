"""Which files the words of a command may name, before it runs."""

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

from agent_tui.agent.protected_paths import PathGuard
from agent_tui.agent.shell_words import CommandPart, Word
from agent_tui.tools.protected import SECRET_GLOBS, is_secret_name

_STREAM = re.compile(r"/dev/(stdin|stdout|stderr|tty|fd/\d+)")
_MAX_EXPANDED = 1_000
_MAX_SEARCHED = 3_000
_UNSEARCHED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", "target"})


class PathWords:
    """Resolves words against folders; each word once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, str, bool], list[Path]] = {}

    def named(self, base: Path, word: Word) -> list[Path]:
        """The files a word may name, resolved; also in ``of=FILE``, ``-oFILE``, ``HEAD:FILE``."""
        if word.value is None:
            return []
        key = (base, word.value, word.is_pattern)
        if key not in self._known:
            self._known[key] = [
                path for text in _texts(word.value) for path in _paths(base, text, word.is_pattern)
            ]
        return self._known[key]


def secret_a_pattern_takes_in(word: Word, guard: PathGuard) -> str:
    """A protected name that a file pattern would match if it were there; empty if none."""
    if not word.is_pattern or word.value is None:
        return ""
    for piece in word.value.split("/"):
        if re.fullmatch(r"[*?]*|[^*?\[]*", piece):
            continue
        for sample in (*_SAMPLES, *guard.secret_folder_names):
            if fnmatch.fnmatchcase(sample, piece.casefold()):
                return sample
    return ""


def secret_below(folder: Path, *, hidden: bool) -> Path | None:
    """A file below `folder` that is likely to hold keys; looks at a few thousand names at most."""
    looked_at = 0
    pending = [folder]
    while pending and looked_at < _MAX_SEARCHED:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            looked_at += 1
            if entry.name.startswith(".") and not hidden:
                continue
            if is_secret_name(entry.name):
                return Path(entry.path)
            if entry.name not in _UNSEARCHED and entry.is_dir(follow_symlinks=False):
                pending.append(Path(entry.path))
    return None


def searches_hidden_files(part: CommandPart) -> bool | None:
    """Whether `part` prints lines of whole folders, hidden files too; None if it prints none."""
    options = [w.value for w in part.arguments if w.value is not None and w.value[:1] == "-"]
    longs = {option.partition("=")[0] for option in options if option.startswith("--")}
    match part.name:
        case "grep" | "egrep" | "fgrep":
            letters = _letters(options, "efmABC")
            is_recursive = letters & set("rRd") or any(o.startswith(("--r", "--d")) for o in longs)
            names_only = letters & set("lLcq") or _are_narrow(part, ("--include",))
            return True if is_recursive and not names_only else None
        case "rg":
            letters = _letters(options, "efmABCgtTrEdjM")
            names_only = letters & set("lcq") or "--files" in longs
            narrow = letters & set("t") or "--type" in longs or _are_narrow(part, ("-g", "--glob"))
            return None if names_only or narrow else "--hidden" in longs or "u" in letters
        case "diff":
            is_recursive = "r" in _letters(options, "UCIxW") or "--recursive" in longs
            return True if is_recursive and not _letters(options, "UCIxW") & set("q") else None
        case _:
            return None


def _letters(options: Sequence[str], with_value: str) -> set[str]:
    """The letters of joined short options, up to one that takes the rest as its value."""
    found: set[str] = set()
    for option in options:
        if not option.startswith("--"):
            for letter in option[1:]:
                found.add(letter)
                if letter in with_value:
                    break
    return found


def _are_narrow(part: CommandPart, names: tuple[str, ...]) -> bool:
    """Whether every file pattern given as option is like ``*.py``, and there is one."""
    values = [word.value or "" for word in part.arguments]
    patterns = [after for option, after in pairwise(values) if option in names]
    patterns += [v.partition("=")[2] for v in values if v.partition("=")[0] in names and "=" in v]
    patterns += [v[2:] for v in values if v[:2] in names and len(v) > 2]
    return bool(patterns) and all(
        re.fullmatch(r"[\w./*-]*\*\.\w+", text) and not is_secret_name(text.replace("*", "x"))
        for text in patterns
    )


_SAMPLES = tuple(
    sorted({glob.replace("*", "\N{BULLET}") for glob in SECRET_GLOBS} - {"credentials.json"})
)
"""Names no pattern takes in by chance; ``*.json`` may well mean other files."""


def _texts(value: str) -> Sequence[str]:
    texts = [value]
    if "=" in value:
        texts.append(value.partition("=")[2])
    if ":" in value:  # git show HEAD:FILE
        texts.append(value.rpartition(":")[2])
    if value.startswith("-") and len(value) > 2:
        texts.append(value[2:])
    return texts


def _paths(base: Path, text: str, is_pattern: bool) -> Iterator[Path]:
    if _STREAM.fullmatch(text):
        yield Path(text)
        return
    try:
        written = str(Path(text).expanduser()) if text.startswith("~") else text
        lexical = written if written.startswith("/") else f"{base}/{written}"
        resolved = os.path.realpath(lexical)
        yield Path(resolved)
        if resolved != lexical:
            yield Path(lexical)
        if is_pattern:
            for match in islice(_matches(Path(lexical)), _MAX_EXPANDED):
                yield Path(os.path.realpath(match))
    except (OSError, RuntimeError, ValueError):
        return


def _matches(pattern: Path) -> Iterator[Path]:
    """The files a shell would put in place of an absolute pattern (``**`` is ``*`` to it)."""
    text = str(pattern.relative_to(pattern.anchor)).replace("**", "*")
    for match in Path(pattern.anchor).glob(text):
        if not match.name.startswith(".") or pattern.name.startswith((".", "[")):
            yield match
