"""Commands that destroy more than a project: these ask in every mode."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from agent_tui.permissions.programs.destruction import destruction_of, run_by
from agent_tui.permissions.programs.machine import OURSELVES, machine_danger_of
from agent_tui.permissions.protected_paths import ProtectedPaths
from agent_tui.permissions.shell.parts import split_command
from agent_tui.permissions.shell.scripts import find_roots_start
from agent_tui.permissions.shell.words import CommandPart, Word
from agent_tui.safe_paths import follow_links

_RECURSIVE = frozenset({"rm", "chmod", "chown", "chgrp", "setfacl"})
"""Programs that take whole folders, where an option says so."""

_TAKES_FOLDERS = frozenset({"rimraf", "trash"})
"""Programs that always do."""

_RECURSIVE_OPTION = re.compile(r"--recursive|--no-preserve-root|-[A-Za-z]*[rR][A-Za-z]*")
_PLAIN_VARIABLE = re.compile(
    r"\$(?:[A-Za-z_]\w*|[$!?#]|\{[A-Za-z_]\w*(?:[-:+=?%#^,][^{}`(]*|/[^{}`(-]*)?\})"
)
"""A variable that adds no text of its own: ``${x/a/-rf}`` does."""

_TARGET_CHANGER_NAMES = """
    rm rmdir unlink chmod chown chgrp setfacl tee truncate touch mkdir mkfifo mknod
"""
_CHANGES_TARGETS = frozenset(_TARGET_CHANGER_NAMES.split())
"""Programs that change every file they are given."""

_WRITES_LAST = frozenset({"cp", "mv", "ln", "install", "rsync", "scp"})
_CALLS_ITSELF = re.compile(r"([\w:]+)\s*\(\)\s*\{.*(?<!\w)\1\s*[|&]", re.DOTALL)
_OUTPUT_OPTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "curl": ("o", r"--output(?:-dir)?"),
        "wget": ("OP", r"--(?:output-document|directory-prefix)"),
        "tar": ("C", r"--(?:directory|cd)"),
        "unzip": ("d", r"--directory"),
        **dict.fromkeys(("cp", "mv", "ln", "install"), ("t", r"--target-directory")),
        **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "go", "rustc"), ("o", r"--output")),
    }
)
"""Options whose value is a file or folder to write to: letters, and a pattern of long ones."""

_MOVERS = frozenset({"mv", "rsync", "ln"})
_OWN_VERB_NAMES = """
    git npm npx pnpm yarn pip pip3 cargo go docker podman kubectl gh aws make apt apt-get brew
    uv poetry rails rake bundle gem terraform helm dotnet mvn gradle
"""
_OWN_VERBS = frozenset(_OWN_VERB_NAMES.split())
"""Programs whose words are verbs of their own, or commands for elsewhere."""

_HIDDEN = frozenset({"rm", "dd", "shred", "chmod", "chown", "find", "mkfs", *OURSELVES})
_MAX_HIDDEN_WORDS = 12


def danger_of(
    part: CommandPart, bases: Sequence[Path], guard: ProtectedPaths, *, reads_only: bool = False
) -> str:
    """Why `part` could do great harm; empty if it is not known to.

    Args:
        part: One part of a command.
        bases: Folders it may run in.
        guard: Knows the workspace.
        reads_only: Whether `part` is known to change nothing.
    """
    if reads_only:
        return ""
    if not part.words:
        is_bomb = _CALLS_ITSELF.search(part.source) is not None
        return "defines a function that starts itself over and over" if is_bomb else ""
    if danger := _plain_danger(part, bases, guard):
        return danger
    for inner in hidden_commands(part):
        name = inner.name.rpartition("/")[2]
        if name in _HIDDEN and (danger := _plain_danger(inner, bases, guard)):
            return danger
        if lost := destruction_of(inner):
            return lost
    return ""


def hidden_commands(part: CommandPart) -> tuple[CommandPart, ...]:
    """Commands that the words of an unknown program may hold: ``ssh HOST rm x``, ``-c 'rm x'``."""
    name = part.name.rpartition("/")[2]
    if part.kind == "construct" or name in _OWN_VERBS:
        return ()
    words = part.words[: _MAX_HIDDEN_WORDS + 1]
    found = [
        CommandPart(part.source, words[index:], wrapper=name)
        for index in range(1, len(words))
        if words[index].value and not (words[index].value or "").startswith("-")
    ]
    for word in words[1:]:
        if word.value and re.search(r"\s", word.value):
            found += [p for p in split_command(word.value).commands if p.words]
    return tuple(found)


def _plain_danger(part: CommandPart, bases: Sequence[Path], guard: ProtectedPaths) -> str:
    name = part.name.rpartition("/")[2].casefold()
    if changed := machine_danger_of(name, part) or _danger_of_inner(name, part):
        return changed
    if lost := destruction_of(part):
        return lost
    danger = _folder_danger(name, part, bases, guard)
    return _system_change(name, part, bases, guard) if danger is None else danger


def _danger_of_inner(name: str, part: CommandPart) -> str:
    """What a runner would run may change the machine: ``npx PROGRAM``."""
    values = [word.value or "" for word in part.arguments]
    if not (inner := run_by(name, values)):
        return ""
    behind = values[values.index(inner[0]) + 1 :]
    words = tuple(Word(value, value) for value in (inner[0], *behind))
    return machine_danger_of(inner[0].rpartition("/")[2], CommandPart(part.source, words))


def _folder_danger(
    name: str, part: CommandPart, bases: Sequence[Path], guard: ProtectedPaths
) -> str | None:
    """Why whole folders would be removed, changed or moved away: empty where they may be.

    None where a command does none of that, and for a harmless move: then what it writes decides.
    """
    values = [word.value or "" for word in part.arguments]
    if name == "find" and "-delete" in values:
        return _broad_delete(_find_roots(part), bases, guard, "find -delete")
    if name in _TAKES_FOLDERS or (name in _RECURSIVE and _is_recursive(part)):
        return _broad_delete(_targets(part), bases, guard, f"recursive {name}")
    if name in _RECURSIVE and _is_fed_by_search(part):
        return _broad_delete(_targets(part), bases, guard, f"{name} of everything found")
    if name == "rsync" and any(value.startswith("--del") for value in values):
        return _broad_delete(_targets(part)[-1:], bases, guard, "rsync --delete")
    if name in _MOVERS - {"rsync"}:
        return _broad_delete(_targets(part)[:-1], bases, guard, name, may_leave=True) or None
    return None


def _is_fed_by_search(part: CommandPart) -> bool:
    """Whether its targets come from find or xargs: as many as there are."""
    wrapper = part.wrapper.rpartition("/")[2].casefold()
    return wrapper in ("find", "fd", "fdfind", "xargs", "parallel")


def _system_change(
    name: str, part: CommandPart, bases: Sequence[Path], guard: ProtectedPaths
) -> str:
    """Why a file of the system, or a device, would be changed."""
    for word in (*_changed_operands(name, part), *_named_outputs(name, part)):
        for base in bases:
            path = _resolved(base, word) if word.value is not None else None
            if path is None:
                continue
            if danger := device_danger(path) or guard.why_system_asks(path):
                return danger
            if name in ("rm", "unlink", "truncate") and not guard.may_write_freely(path):
                return f"{name} outside the folder: {path}"
    return ""


def _changed_operands(name: str, part: CommandPart) -> list[Word]:
    """The operands that a program changes, writes or removes."""
    if name == "mv":
        return _targets(part)
    if name in _WRITES_LAST:
        return _targets(part)[-1:]
    if name in _CHANGES_TARGETS:
        return _targets(part)
    if name in ("sed", "perl", "ruby") and any(
        re.match(r"-\w*i|--in-place", word.value or "") for word in part.arguments
    ):
        return [word for word in _targets(part) if (word.value or "")[:1] in ("/", "~")]
    if name == "dd":
        outputs = (w for w in part.arguments if (w.value or "").startswith("of="))
        return [Word(word.source, (word.value or "")[3:]) for word in outputs]
    return []


def _named_outputs(name: str, part: CommandPart) -> list[Word]:
    """Where an option tells a program to write: ``curl -o FILE``, ``tar -C FOLDER``."""
    letter, long = _OUTPUT_OPTIONS.get(name, ("", ""))
    found: list[Word] = []
    for word, after in pairwise((*part.arguments, Word("", ""))):
        value = word.value or ""
        if letter and re.fullmatch(rf"-\w*[{letter}]|{long}", value):
            found.append(after)
        elif letter and (
            joined := re.fullmatch(rf"(?:-\w*?[{letter}]|{long}=)([/~.].*)", value, re.S)
        ):
            found.append(Word(word.source, joined[1]))
    return found


def device_danger(target: Path) -> str:
    """Why redirecting to `target` could do great harm."""
    text = str(target)
    harmless = re.fullmatch(r"/dev/(null|zero|stdin|stdout|stderr|tty|fd/\d+)", text)
    return f"{text} is a device" if text.startswith("/dev/") and not harmless else ""


def _broad_delete(
    targets: Sequence[Word],
    bases: Sequence[Path],
    guard: ProtectedPaths,
    action: str,
    *,
    may_leave: bool = False,
) -> str:
    """Why acting on `targets` is too much: unknown, the whole workspace, or far outside it."""
    for word in targets:
        if word.value is None:
            if not may_leave:
                return f"{action}: {word.source} is known only at run time"
            continue
        for base in bases:
            path = _resolved(base, word)
            if path is None:
                return f"{action}: cannot resolve {word.source}"
            holds_workspace = any(root.is_relative_to(path) for root in guard.roots)
            is_top = len(path.parts) <= 2 or path == guard.home
            is_outside = not may_leave and not guard.may_write_freely(path)
            if holds_workspace or is_top or is_outside:
                where = f"outside the folder: {path}" if is_outside else f"on all of {path}"
                return f"{action} {where}"
    return ""


def _resolved(base: Path, word: Word) -> Path | None:
    """The folder a word stands for; for a pattern, the folder its matches are in.

    None where that is not known: a pattern followed by ``..`` leads to wherever a match is from.
    """
    text = word.value or ""
    if word.is_pattern:
        fixed = re.split(r"[*?\[]", text)[0]
        if ".." in text[len(fixed) :].split("/"):
            return None
        is_whole_folder = re.fullmatch(r"(?:.*/)?\.?\*", text) is not None
        text = fixed.rpartition("/")[0] + "/" if "/" in fixed else "."
        if not is_whole_folder:
            text = f"{text}/some-match"
    try:
        path = Path(text).expanduser() if word.has_tilde else Path(text)
        return Path(follow_links(str(base / path)))
    except (OSError, RuntimeError):
        return None


def _targets(part: CommandPart) -> list[Word]:
    targets: list[Word] = []
    options_end = False
    for word in part.arguments:
        if word.value == "--" and not options_end:
            options_end = True
        elif options_end or word.value is None or not word.value.startswith("-"):
            targets.append(word)
    return targets


def _find_roots(part: CommandPart) -> list[Word]:
    """Where find starts; if its tests narrow it down, matches inside the roots are meant."""
    roots: list[Word] = []
    values = [word.value or "" for word in part.arguments]
    for word in part.arguments[find_roots_start(values) :]:
        if word.value is not None and word.value.startswith(("-", "(", "!")):
            break
        roots.append(word)
    if "-files0-from" in values:
        roots.append(Word("-files0-from", None))
    is_narrow = "-empty" in values or any(
        test in ("-name", "-iname", "-path", "-ipath") and re.search(r"\w", pattern)
        for test, pattern in pairwise(values)
    )
    if not is_narrow or {"!", "-not", "-o", "-or"} & set(values):
        return roots or [Word(".", ".")]
    return [
        Word(
            root.source,
            None if root.value is None else f"{root.value}/match",
            False,
            root.has_tilde,
        )
        for root in roots or [Word(".", ".")]
    ]


def _is_recursive(part: CommandPart) -> bool:
    """Whether an option says so, or a word may come to one when the command runs.

    An unknown variable counts as the name of one file: without the option, rm removes no folder.
    """
    return any(map(_may_be_recursive_option, part.arguments))


def _may_be_recursive_option(word: Word) -> bool:
    if word.value is not None:
        return _RECURSIVE_OPTION.fullmatch(word.value) is not None
    written = re.sub(r"[\"'\\]", "", word.source)
    if written.startswith("-"):
        return True
    joined, apart = _PLAIN_VARIABLE.sub("", written), _PLAIN_VARIABLE.sub(" ", written)
    if any(map(_RECURSIVE_OPTION.fullmatch, (joined, *apart.split()))):
        return True
    is_positional = re.search(r"\$\{?[@\d]|\[@\]", word.source)
    if word.source.startswith('"') and not is_positional:
        return False
    return re.search(r"[$`]", joined) is not None
