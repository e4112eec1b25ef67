"""The files that a plain shell command reads and writes, found in its text."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from agent_tui.messages import FileTouches

_HEREDOC = re.compile(
    r"<<-?\s*(['\"]?)(\w+)\1(?P<rest>[^\n]*)\n.*?^[^\S\n]*\2[^\S\n]*$", re.DOTALL | re.M
)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.M)
_DELETED = re.compile(r"^\*\*\* Delete File: (.+?)\s*$", re.MULTILINE)
_COMMENT = re.compile(r"^[^\S\n]*#.*$", re.MULTILINE)
_PUNCTUATION = ";&|()<>\n"
_ENDS = re.compile(r"[;&|()\n]+")
_INTO = frozenset({">", ">>", ">|", "&>", "&>>", ">&"})
_NO_FILE = re.compile(r"^(?:/dev/|&?\d*$|-)|[*?{}$`\[\]|;\n=,'\"()!<>]|^(?:s|y)([/#]).*\1")
_READERS = frozenset({"cat", "head", "tail", "less", "more", "nl", "bat", "sed", "awk"})
_SCRIPTED = frozenset({"sed", "awk"})
_EDITING = frozenset({"sed", "perl"})
_OF_GIT = frozenset({"mv", "rm"})
_OF_WORK_TREE = frozenset(
    {
        *("checkout", "switch", "restore", "reset", "stash", "clean", "pull", "merge", "rebase"),
        *("cherry-pick", "revert", "am", "apply", "bisect"),
    }
)
"""What git does to files that the command need not name."""

_LEAVES_FILES = {
    "checkout": re.compile(r"^-[bB] \S+$"),
    "switch": re.compile(r"^(?:-[cC]|--create) \S+$"),
    "reset": re.compile(r"^(?!.*(?:^| )--(?:hard|merge|keep)\b)"),
    "stash": re.compile(r"^(?:list|show|drop|clear|create|store)\b"),
    "clean": re.compile(r"(?:^| )(?:-\w*n|--dry-run)"),
    "restore": re.compile(r"(?:^| )(?:-S|--staged)\b(?!.*(?:-W|--worktree))"),
}
"""Arguments with which it does not."""

_GIT_TAKES_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree"})
_WRITERS = frozenset({"tee", "touch", "truncate"})
_MOVERS = frozenset({"mv", "cp"})
_MANIFESTS = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), "package.json"),
    **dict.fromkeys(("uv", "poetry"), "pyproject.toml"),
    "cargo": "Cargo.toml",
}
_OF_DEPENDENCIES = frozenset({"add", "install", "i", "remove", "uninstall"})
"""With a package, they write it into the project's manifest."""

_TAKES_COUNT = frozenset({"-n", "-c", "--lines", "--bytes"})
_TAKES_SCRIPT = frozenset({"-e", "--expression", "-f"})
_PREFIXES = frozenset({"sudo", "time", "env", "command", "nohup", "then", "do", "else"})
_MAX_COMMAND_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class ShellChanges:
    """What a command does to files, with paths as it names them.

    Args:
        touches: The files it reads, writes whole or edits, and leaves there.
        moved: Old and new path of files that it moves.
        removed: Files and folders that no longer exist, including moved ones.
        restored: Files and folders (``.``) that git sets to another state, and its command.
    """

    touches: FileTouches
    moved: tuple[tuple[str, str], ...]
    removed: tuple[str, ...]
    restored: tuple[tuple[str, str], ...]


@lru_cache(maxsize=4_096)
def shell_changes(command: str) -> ShellChanges:
    """What `command` does to files, as far as its text shows.

    Redirections, here-documents, ``tee``, ``touch``, ``cat`` and its like, ``sed -i``, ``perl -i``,
    ``mv``, ``cp``, ``rm``, ``git mv``, ``git rm``, what git does to the work tree (``git reset
    --hard``, ``git stash``, ``git checkout``) and patch envelopes are understood, and ``cd`` to a
    plain folder. Files named by variables, globs or other programs are ignored.
    """
    command = command[:_MAX_COMMAND_CHARS]
    read: dict[str, None] = {}
    written: dict[str, None] = {}
    removed = dict.fromkeys(files_deleted_in_patch(command))
    edited = dict.fromkeys(path for path in files_in_patch(command) if path not in removed)
    moved: dict[str, str] = {}
    restored: dict[str, str] = {}
    folder = ""
    for words, _ in _simple_commands(command):
        words, targets = _without_redirections(words)
        _add(written, targets, folder)
        name, arguments = _program(words)
        if name == "cd" and len(arguments) == 1:
            folder = _join(folder, arguments[0]) if _is_file(arguments[0]) else folder
        elif paths := _edited(name, arguments):
            _add(edited, paths, folder)
        elif name in _READERS:
            _add(read, _operands(arguments, skip_script=name in _SCRIPTED), folder)
        elif name in _WRITERS:
            _add(written, _operands(arguments), folder)
        elif name in _MOVERS:
            _add(written, _move_targets(arguments), folder)
            if name == "mv":
                sources = [_join(folder, path) for path in _operands(arguments)[:-1]]
                _add(removed, sources, "")
                moved.update(
                    zip(sources, (_join(folder, p) for p in _move_targets(arguments)), strict=False)
                )
        elif name == "rm":
            gone: dict[str, None] = {}
            _add(gone, _operands(arguments), folder)
            removed.update(gone)
            written = {path: None for path in written if path not in gone}
            edited = {path: None for path in edited if path not in gone}
        elif name == "git":
            paths = (_join(folder, path) for path in _restored(arguments) if _is_file(path))
            restored.update(dict.fromkeys(paths, " ".join(words)))
    return ShellChanges(
        FileTouches(read=tuple(read), written=tuple(written), edited=tuple(edited)),
        tuple(moved.items()),
        tuple(path for path in removed if path not in written),
        tuple(restored.items()),
    )


def changes_only_named(name: str, arguments: Sequence[str]) -> bool:
    """Whether a program changes no files but those that `shell_changes` finds for its arguments."""
    is_in_place = _edits_in_place(name, arguments)
    is_plain = all(map(_is_file, _operands(arguments, skip_script=is_in_place)))
    return is_plain and (
        is_in_place
        or name in _WRITERS
        or name in ("rm", "mkdir")
        or (name in _MOVERS and any(_move_targets(arguments)))
    )


def _edits_in_place(name: str, arguments: Sequence[str]) -> bool:
    options = (re.match(r"-[a-zA-Z]*i|--in-place", argument) for argument in arguments)
    return name in _EDITING and any(options)


def _edited(name: str, arguments: Sequence[str]) -> list[str]:
    """The files that a program changes in place."""
    if _edits_in_place(name, arguments):
        return _operands(arguments, skip_script=True)
    verb, *packages = _operands(arguments) or [""]
    is_elsewhere = {"-g", "--global"}.intersection(arguments)
    is_manifest = verb in _OF_DEPENDENCIES and packages and not is_elsewhere
    return [_MANIFESTS[name]] if is_manifest and name in _MANIFESTS else []


def _restored(arguments: Sequence[str]) -> list[str]:
    """The files and folders that ``git`` with `arguments` sets to another state."""
    at, folder = 0, "."
    while arguments[at : at + 1] and arguments[at].startswith("-"):
        if arguments[at] == "-C":
            folder = arguments[at + 1] if at + 1 < len(arguments) else folder
        at += 1 + (arguments[at] in _GIT_TAKES_VALUE)
    name, rest = "".join(arguments[at : at + 1]), arguments[at + 1 :]
    leaves = _LEAVES_FILES.get(name)
    if name not in _OF_WORK_TREE or (leaves is not None and leaves.search(" ".join(rest))):
        return []
    start = rest.index("--") + 1 if "--" in rest else 0
    paths = [path for path in rest[start:] if start or re.search(r"\.[A-Za-z]\w*$|^\.$|/$", path)]
    if name == "restore" and not start:
        paths = [path for path in rest if not path.startswith("-")]
    is_of_paths = name in ("checkout", "restore") and paths
    return [_join(folder, path) for path in paths] if is_of_paths else [folder]


def _move_targets(arguments: Sequence[str]) -> list[str]:
    """The targets of files that ``mv`` or ``cp`` moves; none for whole folders."""
    *sources, target = _operands(arguments) or [""]
    if any(re.match(r"-\w*[rRa]|--recursive", argument) for argument in arguments):
        return []
    is_folder = len(sources) > 1
    return [path_after_move(f"{target}/" if is_folder else target, source) for source in sources]


def path_after_move(target: str, source: str) -> str:
    """The path of the file `source` after a move to `target`, which may be a folder."""
    name = PurePosixPath(source).name
    is_folder = target.endswith("/") or PurePosixPath(target).name in ("", "..")
    is_folder = is_folder or (not PurePosixPath(target).suffix and "." in name)
    return str(PurePosixPath(target) / name) if is_folder else target


def files_in_patch(text: str) -> tuple[str, ...]:
    """Files that a patch in the ``*** Update File: path`` form changes."""
    found = (added or moved for added, moved in _PATCHED.findall(text))
    return tuple(dict.fromkeys(path.strip() for path in found))


def files_deleted_in_patch(text: str) -> tuple[str, ...]:
    """Files that a patch in the same form deletes."""
    return tuple(_DELETED.findall(text))


@lru_cache(maxsize=4_096)
def programs_run(command: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Name and arguments of each program that `command` runs, without redirections."""
    return tuple(program for pipeline in pipelines_run(command) for program in pipeline)


@lru_cache(maxsize=4_096)
def pipelines_run(command: str) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], ...]:
    """The same programs, those together of which one reads what the other prints."""
    pipelines: list[list[tuple[str, tuple[str, ...]]]] = [[]]
    for words, end in _simple_commands(command[:_MAX_COMMAND_CHARS]):
        name, arguments = _program(_without_redirections(words)[0])
        if name:
            pipelines[-1].append((name, tuple(arguments)))
        if end not in ("|", "|&"):
            pipelines.append([])
    return tuple(tuple(pipeline) for pipeline in pipelines if pipeline)


def _simple_commands(command: str) -> Iterator[tuple[list[str], str]]:
    """The words of each simple command, with quotes removed, and what ends it."""
    flat = _HEREDOC.sub(lambda found: found["rest"] + "\n", command)
    lexer = shlex.shlex(
        _COMMENT.sub("", flat.replace("\\\n", " ")), posix=True, punctuation_chars=_PUNCTUATION
    )
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        for word in lexer:
            if _ENDS.fullmatch(word):
                yield words, word
                words = []
            else:
                words.append(word)
    except ValueError:  # an unclosed quote: the command is cut, or is not a plain one
        pass
    yield words, ""


def _without_redirections(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The remaining words, and the files that output is redirected to."""
    left: list[str] = []
    targets: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _INTO:
            targets.append(next(rest, ""))
            if left and left[-1].isdigit():
                left.pop()
        elif word == "<":
            next(rest, "")
        else:
            left.append(word)
    return left, targets


def _program(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The program's name and its arguments; ``git mv`` counts as ``mv``, for example."""
    at = 0
    while at < len(words) and (words[at] in _PREFIXES or re.match(r"\w+=", words[at])):
        at += 1
    if words[at : at + 1] == ["git"] and not _OF_GIT.isdisjoint(words[at + 1 : at + 2]):
        at += 1
    name = PurePosixPath(words[at]).name if at < len(words) else ""
    return name, words[at + 1 :]


def _operands(arguments: Sequence[str], *, skip_script: bool = False) -> list[str]:
    """Arguments that are no options, no option values and no scripts of ``sed`` or ``awk``."""
    takes_value = _TAKES_SCRIPT if skip_script else _TAKES_COUNT
    operands: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument in takes_value:
            next(rest, "")
        elif not argument.startswith("-"):
            operands.append(argument)
    has_script = not _TAKES_SCRIPT.isdisjoint(arguments)
    return operands[1:] if skip_script and not has_script else operands


def _add(known: dict[str, None], paths: Iterable[str], folder: str) -> None:
    known.update((_join(folder, path), None) for path in paths if _is_file(path))


def _join(folder: str, path: str) -> str:
    return str(PurePosixPath(folder) / path) if folder and not path.startswith("~") else path


def _is_file(path: str) -> bool:
    return bool(path) and not _NO_FILE.search(path)
