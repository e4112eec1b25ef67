"""What the user's own settings of git lead to: further settings, hooks, programs, a template."""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import filterfalse
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from agent_tui.safe_paths import real_path
from agent_tui.tools.files.python_modules import COMPILED, find_compiled
from agent_tui.tools.git.settings import find_named_paths

_MOST_FILES: Final = 200
_MOST_CHARACTERS: Final = 4_000
_MOST_NAMES: Final = 200
_MOST_FOLDERS: Final = 5
"""Of a command in settings, which somebody else may have written to keep us busy."""

_MAIN: Final = "__main__.py"
_OPERATORS: Final = "!();<>|&`"
_QUOTES: Final = re.compile(r"[\"'\\]")
_IN_WORD: Final = re.compile(r"[=:,]")
"""What is between an option or a variable and its value, and between the folders of a ``PATH``."""

_HOME: Final = re.compile(r"\$(?:HOME\b|\{HOME\})")
_TO_EXPANSION: Final = re.compile(r".*\$(?:\w+|\{[^}]*\})", re.DOTALL)
_SHORT_OPTION: Final = re.compile(r"^-[A-Za-z](?=[^-])")
_RUNS_MODULE: Final = re.compile(r"-[A-Za-z]*m")
_MODULE: Final = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
_RUNS_SHORT_NAMES: Final = re.compile(r"(?:.*/)?(?:node|nodejs|bun|deno|tsx|ts-node)", re.DOTALL)
_ENDINGS: Final = (
    *(".js", ".json", ".node", ".cjs", ".mjs", ".ts", ".tsx", ".jsx", "/package.json"),
    *("/index.js", "/index.json", "/index.node", "/index.ts", "/index.tsx"),
)
"""What these programs try after a name that is no file (``modules.html`` of Node.js)."""

Stamps: TypeAlias = Mapping[Path, tuple[int, int] | None]
"""The inode and the ``ctime`` of each file; None for a missing one."""


class UserSettings(NamedTuple):
    """What git reads for all repositories of the user.

    Args:
        files: The settings. Whether a condition (``includeIf``) holds depends on the repository,
            so those of each count. They need not exist.
        templates: The folders that are copied into each new repository, hooks included.
        programs: The names in each command that filters, aliases and the like run; see
            `names_in`.
        hooks: The folders of hooks, as the settings name them: relative to a work tree, or
            absolute. One may hold only for some repositories.
        stamps: The state of what was read.
    """

    files: frozenset[Path] = frozenset()
    templates: frozenset[Path] = frozenset()
    hooks: tuple[str, ...] = ()
    programs: frozenset[tuple[str, ...]] = frozenset()
    stamps: Stamps = MappingProxyType({})

    def programs_in(self, tops: Iterable[Path]) -> Iterator[Path]:
        """Where the files are that git runs, or has an interpreter run. They need not exist.

        Args:
            tops: The work trees. What has an absolute path runs in all others, too.
        """
        for top in (*tops, Path(os.sep)):
            for names in self.programs:
                yield from find_programs(top, names)

    def follows(self, path: Path) -> bool:
        """Whether git reads `path` as settings or copies it, links followed."""
        return path in map(real_path, self.files) or any(
            path.is_relative_to(real_path(each)) for each in self.templates
        )


def find_programs(top: Path, names: Iterable[str]) -> Iterator[Path]:
    """The files in the work tree `top` that the `names` in a command may lead to.

    Only what runs them knows in which folder that is. So each counts below `top`, and below each
    folder that another one leads to. Files need not exist, but compiled modules of Python are only
    found where they do; for others, see `compiled_name`.
    """
    here = os.fspath(top).rstrip("/")  # as text: pathlib takes ten times as long
    places = dict.fromkeys(place for name in names for place in _places_of(name, here))
    folders = list(filter(os.path.isdir, places))
    names = (*names, _MAIN)  # Python runs a folder that holds one
    places |= dict.fromkeys(f"{folder}/{name}" for folder in folders for name in names)
    found = dict.fromkeys(map(os.path.normpath, places))
    found |= dict.fromkeys(find_compiled(found))
    inside = (place for place in found if place.startswith(f"{here}/"))
    return map(Path, filterfalse(os.path.isdir, inside))


def _places_of(name: str, top: str) -> Iterator[str]:
    """Where `name` leads in `top`. What begins with a slash may come after a substitution.

    Then the folders in it may be those that lead to `top`.
    """
    yield f"{top}/{name.lstrip('/')}"
    if name.startswith("/"):
        yield name
        around, _, rest = name[1:].partition("/")
        while rest:
            if f"{top}/".endswith(f"/{around}/"):
                yield f"{top}/{rest}"
            folder, _, rest = rest.partition("/")
            around = f"{around}/{folder}"


def names_in(command: str, home: Path | None) -> tuple[str, ...]:
    """What in a `command` of a shell may be the name of a file, with ``~`` replaced.

    That is each word, also in quotes within quotes, each value of an option or a variable, and what
    comes after a variable. After an option ``-m``, a word may also name a module of Python, and
    after ``node``, a script without its ending.
    """
    words = _all_words(command[:_MOST_CHARACTERS])
    pieces = dict.fromkeys(piece for word in words for piece in (word, *_IN_WORD.split(word)))
    expanded = (_expand(_HOME.sub("~", piece), home) for piece in pieces)
    names = [_SHORT_OPTION.sub("", _TO_EXPANSION.sub("", name)) for name in expanded]
    if any(map(_RUNS_MODULE.match, words)):
        names += [file for name in names for file in _modules_of(name)]
    possible = [name for name in names if name[:1] not in ("", "-") and "\0" not in name]
    if any(map(_RUNS_SHORT_NAMES.fullmatch, words)):
        possible += [f"{name.rstrip('/')}{end}" for name in possible for end in _ENDINGS]
    return tuple(dict.fromkeys(possible))[:_MOST_NAMES]


@lru_cache(maxsize=256)
def _all_words(text: str) -> tuple[str, ...]:
    return tuple(_words_in(text))


def _words_in(text: str) -> Iterator[str]:
    """The words of a `text` for a shell, and those in each: it may be for another shell."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:  # a quote without its end
        words = _QUOTES.sub(" ", text).split()
    for word in words:
        yield word
        if word != text:
            yield from _words_in(word)


def _modules_of(name: str) -> Iterator[str]:
    """The files that ``python -m name`` runs; see `compiled_name`."""
    if _MODULE.fullmatch(name):
        path = Path(*name.split("."))
        files = [f"{path}", f"{path}/__main__", f"{path}/__init__"]
        files += (f"{folder}/__init__" for folder in list(path.parents)[:-1][:_MOST_FOLDERS])
        yield from (f"{file}{end}" for file in files for end in (".py", COMPILED))


def user_files(home: Path | None, environ: Mapping[str, str] = MappingProxyType({})) -> list[Path]:
    """Where git searches for the settings of the user and the machine (``git-config``, FILES).

    Args:
        home: The user's home folder; None if there is none.
        environ: The environment of their git.
    """
    found = [Path(environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")]
    if everywhere := environ.get("GIT_CONFIG_GLOBAL"):
        found.append(Path(everywhere))
    elif home is not None:
        settings = environ.get("XDG_CONFIG_HOME") or home / ".config"
        found += [Path(settings, "git/config"), home / ".gitconfig"]
    return found


def read_user_settings(files: Iterable[Path], home: Path | None) -> UserSettings:
    """What the settings in `files` lead to, also in several steps. Blocking.

    Args:
        files: See `user_files`.
        home: For ``~`` in their values.
    """
    pending = list(dict.fromkeys(files))
    templates, hooks, programs = set[Path](), list[str](), set[tuple[str, ...]]()
    for file in pending:
        for value, kind in find_named_paths(file, follow_links=True):
            named = _expand(value, home)
            if kind == "program":
                programs.add(names_in(value, home))
            elif kind == "hook":
                hooks.append(named)
            elif kind == "template":
                templates.add(Path(named).absolute())
            elif kind == "config" and (path := file.parent / named) not in pending:
                pending += [path] if len(pending) < _MOST_FILES else []
    files = frozenset(path.absolute() for path in pending)
    found = frozenset(templates), tuple(hooks), frozenset(programs)
    return UserSettings(files, *found, stamps_of(pending))


def stamps_of(files: Iterable[Path]) -> Stamps:
    """See `Stamps`. Blocking."""
    stamps = dict[Path, tuple[int, int] | None]()
    for file in files:
        stamps[file] = None
        with suppress(OSError):
            status = file.stat()
            stamps[file] = status.st_ino, status.st_ctime_ns
    return stamps


def _expand(value: str, home: Path | None) -> str:
    if not value.startswith("~"):
        return value
    if home is not None and (value == "~" or value.startswith("~/")):
        return os.fspath(home / value[2:])
    with suppress(RuntimeError):  # there is no such user
        return os.fspath(Path(value).expanduser())
    return value
