"""Commands that only read: which ones, and with which options.

The list is short. It serves machines without a sandbox and mode ask; anything else asks.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from agent_tui.permissions.programs.git import git_only_reads
from agent_tui.permissions.shell.scripts import (
    condition_only_looks,
    find_only_lists,
    sed_only_prints,
)
from agent_tui.permissions.shell.words import CommandPart, Word

_LANGUAGE = re.compile(
    r"(?:LC_[A-Z]+|LANG|LANGUAGE)=[\w.@-]*|TZ=\w+(?:/[\w+-]+)*|(?:NO_COLOR|CLICOLOR|FORCE_COLOR)=\d?"
    r"|(?:COLUMNS|LINES)=\d+|(?:GIT_)?PAGER=cat"
)


def is_read_only(part: CommandPart) -> bool:
    """Whether a part can neither change nor run anything, whatever it finds.

    Patterns (``*.py``) are allowed if they cannot turn into options; the caller checks which files
    are read.
    """
    if part.kind == "assignment":
        return True
    if part.kind != "command" or not part.words or not part.words[0].is_plain:
        return False
    if not all(map(_LANGUAGE.fullmatch, part.assignments)):
        return False
    name, words = part.name, part.arguments
    if name in ("test", "["):
        is_certain = all(map(_is_operand, words))
        return is_certain and condition_only_looks([word.value for word in words])
    # A file may be named -o: a pattern that can begin with a dash is safe only for programs without
    # harmful options.
    if any(map(_may_be_option, words)) and name not in _HARMLESS:
        return False
    if any(word.value is None for word in words):
        return name in _SAFE_WITH_UNKNOWN and not any("IFS" in word.source for word in words)
    arguments = [word.value or "" for word in words]
    if name in _SPECIAL:
        return _SPECIAL[name](arguments)
    does_more = _DOES_MORE.get(name)
    return (name in _HARMLESS or does_more is not None) and not (
        does_more and any(map(does_more.fullmatch, arguments))
    )


def prints_names_only(part: CommandPart) -> bool:
    """Whether a read-only part shows only that files exist, not their content."""
    if part.name == "git":
        verb = next((w.value for w in part.arguments if not (w.value or "").startswith("-")), "")
        return verb in ("status", "ls-files", "check-ignore", "ls-tree")
    return part.name in _NAMES_ONLY


def _is_operand(word: Word) -> bool:
    """Whether ``test`` gets exactly one word; a word that may split is as good as an operator."""
    is_quoted = word.source.startswith('"')
    return word.is_plain or is_quoted or word.source in ("$?", "$#", "$$")


def _may_be_option(word: Word) -> bool:
    return word.is_pattern and (word.value or "")[:1] in ("*", "?", "[", "")


def _only(pattern: str) -> Callable[[Sequence[str]], bool]:
    """A check that all words, each followed by a space, match `pattern`."""
    compiled = re.compile(pattern, re.DOTALL)
    return lambda words: compiled.fullmatch("".join(f"{word} " for word in words)) is not None


def _each(pattern: str) -> Callable[[Sequence[str]], bool]:
    """A check that every word matches `pattern`."""
    compiled = re.compile(pattern, re.DOTALL)
    return lambda words: all(map(compiled.fullmatch, words))


def _awk(words: Sequence[str]) -> bool:
    """Whether it has the form ``awk -F: '{print $1}' FILE``: prints fields of chosen lines."""
    rest = list(words)
    if rest and rest[0].startswith("-F"):
        del rest[: 2 if rest[0] == "-F" else 1]
    is_plain = rest[:1] != [""] and _AWK.fullmatch("".join(rest[:1])) is not None
    return is_plain and bool(rest) and all(map(_AWK_FILE.fullmatch, rest[1:]))


_AWK = re.compile(
    r"(?:/[^/\\\[\n]*/ ?|NR ?[<>=]=? ?\d+(?:(?: ?&& ?|, ?)NR ?[<>=]=? ?\d+)? ?)?"
    r"(?:\{ ?print(?:[^{}()\[<>|\"\\;\n@/#]|\"[^\"\\\n]*\")*\})?"
)
"""Excludes ``>``, ``|``, calls and arrays, which write, run or show the environment."""
_AWK_FILE = re.compile(r"(?!/inet)[^-=][^=]*")
_JQ = r"(?:-[rceSMjs]+ )*(?!-)(?:(?!ENV|env\b|input|include|import|module|get_| -).)+"
_WITH_VERSION_NAMES = """
    python python3 node npm pip uv cargo rustc go gcc java make docker
"""
_SPECIAL: Mapping[str, Callable[[Sequence[str]], bool]] = MappingProxyType(
    {
        "git": git_only_reads,
        "find": find_only_lists,
        "sed": sed_only_prints,
        "cd": _only(r"[^-]\S* "),
        "set": _only(r"(?:(?:-[euo]+|pipefail) )+"),
        "awk": _awk,
        "jq": _only(_JQ),
        "command": _only(r"-[vV] .+"),
        "date": _each(r"\+.*|-[uRI]"),
        "printf": _only(r"(?!-)(?:(?!%[^a-zA-Z%]*[hlLjzt]*n).)+"),  # not %n, which sets a variable
        "ps": _each(r"aux|-[eAfFl]+|\d+|-p"),
        "uniq": _only(r"(?:-[cdiu]+ )*(?:[^-\s]\S* )?"),  # a second file would be written
        "xargs": _only(r"(?:-[0rt]+ |-[nLPdI] ?[^-\s]+ )*[^-].*"),  # its command is another part
        **dict.fromkeys(("exit", "return", "break", "continue", "wait"), _each(r"\d+")),
        **dict.fromkeys(_WITH_VERSION_NAMES.split(), _only(r"(?:--version|-V) ")),
    }
)
_NAMES_ONLY = frozenset(
    {*("ls", "stat", "test", "[", "basename", "dirname", "realpath", "readlink", "find", "tree")}
    | {*("du", "cd", "which", "type")}
)
_SAFE_WITH_UNKNOWN = frozenset(
    {*("echo", "ls", "stat", "basename", "dirname", "true", "false", ":", "which", "type")}
    | {*("realpath", "readlink")}
)
_HARMLESS_NAMES = """
    echo true false : ls pwd cat tac head tail wc nl rev stat df du cut paste fold fmt expand
    unexpand comm cmp tr seq basename dirname realpath readlink cksum md5sum sha1sum sha256sum
    sha512sum id uname grep egrep fgrep nproc whoami groups arch uptime free locale getconf lscpu
    column hexdump od strings expr pgrep sleep which whereis type
"""
_HARMLESS = frozenset(_HARMLESS_NAMES.split())
"""Programs with no option that writes, runs or fetches anything."""

_DOES_MORE: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        name: re.compile(words, re.DOTALL)
        for names, words in {
            "rg": r"-[a-zA-Z]*z.*|--(?:pre|hostname|search-zip).*",
            "fd fdfind": r"-[a-zA-Z]*[xXl].*|--(?:exec|list-details|gen).*",
            "tree": r"-[a-zA-Z]*[oR].*|--(?:output|from|gitf|info).*",
            "file": r"-[a-zA-Z]*[CmfzZS].*|--(?:c|ma|f|un|no-s).*",
            "diff": r"-[a-zA-Z]*l.*|--(?:pag|to|fr).*",
            "sort": r"-[a-zA-Z0-9,.]*[oTS].*|--(?:o|co|t|fi|random-sou).*",
            "du wc": r"--fi.*",
        }.items()
        for name in names.split()
    }
)
"""Programs that only read, except with these options, which write, run, fetch or read lists."""

TOOLCHAIN_FILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    dict.fromkeys(("cargo", "rustc", "rustup"), ("rust-toolchain.toml", "rust-toolchain"))
)
"""Files in a folder that decide which program runs under a name."""
