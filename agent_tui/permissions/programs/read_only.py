"""Commands that only look: which, and with which options."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from types import MappingProxyType

from agent_tui.permissions.programs.git import git_only_reads
from agent_tui.permissions.programs.search_options import prints_names_of_matches
from agent_tui.permissions.shell.scripts import (
    condition_only_looks,
    find_only_lists,
    sed_only_prints,
)
from agent_tui.permissions.shell.words import CommandPart, Word
from agent_tui.permissions.shell.wrappers import passes_lines_on

_PRINTF_SETS = re.compile(r"%[^a-zA-Z%]*[hlLjzt]*n")
"""``%n`` puts a number into the variable its argument names."""

_XARGS_OPTION = re.compile(r"-[0rt]*(?:[nLPdI].*)?", re.DOTALL)
_UNIQ = re.compile(
    r"(?:(?:-(?:[cdiuDz]+|[cdiuDz]*[fsw] ?\d+)|--[a-z-]+(?:=\w+)?) )*(?:[^-\s]\S* )?"
)
_PS_WORD = re.compile(
    r"aux|-[eAfFlLupoH]+|\d+|--sort=-?[\w%]+"
    r"|-\w*o (?:(?:p?pid|user|cmd|comm|args|e?time|stat|rss|vsz|%cpu|%mem|tty)=?,?)+"
)
_AWK = re.compile(
    r"(?:/[^/\\\[\n]*/ ?|NR ?[<>=]=? ?\d+(?:(?: ?&& ?|, ?)NR ?[<>=]=? ?\d+)? ?)?"
    r"(?:\{ ?print(?:[^{}()\[<>|\"\\;\n@/#]|\"[^\"\\\n]*\")*\})?"
)
"""Not ``>``, ``|``, calls or arrays, which write, run, or show the environment."""
_JQ_LOOKS_ELSEWHERE = re.compile(r"(?<![.\w])env\b|ENV|input_|include|import|modulemeta|get_search")

_LANGUAGE = re.compile(
    r"(?:LC_[A-Z]+|LANG|LANGUAGE)=[\w.@-]*|TZ=\w+(?:/[\w+-]+)*|(?:NO_COLOR|CLICOLOR|FORCE_COLOR)=\d?"
    r"|(?:COLUMNS|LINES)=\d+|(?:GIT_)?PAGER=cat"
)


def is_read_only(part: CommandPart) -> bool:
    """Whether a part can neither change nor run anything, whatever it finds.

    Patterns (``*.py``) are fine where they cannot turn into options; the caller looks at which
    files are read.
    """
    if part.kind == "assignment":
        return True
    if part.kind != "command" or not part.words or not part.words[0].is_plain:
        return False
    if part.assignments and not _sets_language_only(part):
        return False
    if part.wrapper == "xargs":
        part = _without_unknown_files(part)
    name, words = part.name, part.arguments
    if name in ("test", "["):
        is_certain = all(_is_operand(word) for word in words)
        return is_certain and condition_only_looks([word.value for word in words])
    # A file may be called -o: elsewhere only patterns that cannot begin with a dash are harmless.
    may_be_option = any(_may_be_option(word) for word in words)
    if may_be_option and not _takes_any_option(name):
        return False
    if any(word.may_split for word in words) and name not in _SAFE_WITH_ANY_FILE:
        return False
    if any(word.value is None for word in words) and not _takes_unknown(part):
        return False
    arguments = [word.value or "" for word in words]
    if name in _SPECIAL:
        return not _takes_list(part) and _SPECIAL[name](arguments)
    does_more = _DOES_MORE.get(name)
    return (
        (does_more is not None or name in _HARMLESS)
        and not _takes_list(part)
        and not (does_more and any(map(does_more.fullmatch, arguments)))
    )


def prints_names_only(part: CommandPart) -> bool:
    """Whether a read-only part shows that files exist, not what is in them."""
    if part.name == "git":
        verb = next((w.value for w in part.arguments if not (w.value or "").startswith("-")), "")
        return verb in ("status", "ls-files", "check-ignore", "ls-tree")
    return part.name in _NAMES_ONLY


def _sets_language_only(part: CommandPart) -> bool:
    """``LC_ALL=C``: how the program shows things, or that it starts no pager."""
    return all(map(_LANGUAGE.fullmatch, part.assignments))


def _is_operand(word: Word) -> bool:
    """Whether ``test`` gets one word; what becomes several is as good as any operator."""
    if word.is_pattern and not word.source.startswith('"'):
        return False
    is_single = word.source.startswith('"') or word.source in ("$?", "$#", "$$")
    return not word.may_split and (word.value is not None or is_single)


def _may_be_option(word: Word) -> bool:
    return word.is_pattern and (word.value or "")[:1] in ("*", "?", "[", "")


def _takes_any_option(name: str) -> bool:
    return name in _HARMLESS or name == "diff"


def _takes_unknown(part: CommandPart) -> bool:
    """Whether `part` does no harm, whatever its words turn out to be when it runs."""
    if any("IFS" in word.source for word in part.words):
        return False
    if part.name == "printf":
        return part.words[1].is_plain if len(part.words) > 1 else False
    return part.name in _SAFE_WITH_UNKNOWN


def _without_unknown_files(part: CommandPart) -> CommandPart:
    """What xargs runs, without the arguments it adds, where any names do no harm."""
    does_no_harm = part.name in _SAFE_WITH_ANY_FILE or prints_names_of_matches(part)
    if does_no_harm and part.words[-1].value is None:
        return replace(part, words=part.words[:-1])
    return part


def _may_add_options(writer: CommandPart | None) -> bool:
    """Whether what `writer` prints may make options of the program that xargs starts."""
    if writer is not None and passes_lines_on(writer):
        return _may_add_options(writer.piped_from)
    if writer is None or writer.name not in ("echo", "printf"):
        return writer is not None and writer.name in ("cat", "head", "tail", "sed", "awk")
    return any(not word.is_plain or "-" in (word.value or "") for word in writer.arguments)


def _takes_list(part: CommandPart) -> bool:
    """Whether what is read is up to a list from elsewhere."""
    if part.name == "xargs":
        return _may_add_options(part.piped_from)
    values = (word.value or "" for word in part.arguments)
    return part.name in _TAKE_LISTS and any(value.startswith("--fi") for value in values)


def _printf(arguments: Sequence[str]) -> bool:
    is_format = bool(arguments) and not arguments[0].startswith("-")
    return is_format and _PRINTF_SETS.search(arguments[0]) is None


def _command(arguments: Sequence[str]) -> bool:
    """``command -v NAME``."""
    return len(arguments) >= 2 and arguments[0] in ("-v", "-V")


def _xargs(arguments: Sequence[str]) -> bool:
    """Itself harmless; the command it runs is a part of its own."""
    options = list(takewhile(lambda argument: argument.startswith("-"), arguments))
    return len(options) < len(arguments) and all(map(_XARGS_OPTION.fullmatch, options))


def _cd(arguments: Sequence[str]) -> bool:
    return len(arguments) == 1 and not arguments[0].startswith("-")


def _set(arguments: Sequence[str]) -> bool:
    """``set -euo pipefail``: stops at errors, nothing else."""
    return bool(arguments) and all(re.fullmatch(r"-[euo]+|pipefail", a) for a in arguments)


def _number(arguments: Sequence[str]) -> bool:
    return all(argument.isdigit() for argument in arguments)


def _date(arguments: Sequence[str]) -> bool:
    """Not ``-s``, nor a bare time, which set the clock."""
    return all(
        re.fullmatch(r"\+.*|-[uRId]|--date=.*", argument, re.DOTALL)
        or (before == "-d" and argument[:1] != "-")
        for before, argument in pairwise(("", *arguments))
    )


def _uniq(arguments: Sequence[str]) -> bool:
    """A second file would be written."""
    return _UNIQ.fullmatch("".join(f"{argument} " for argument in arguments)) is not None


def _awk(arguments: Sequence[str]) -> bool:
    """``awk -F: '{print $1}' FILE``: prints fields of chosen lines."""
    rest = list(arguments)
    if rest and rest[0].startswith("-F"):
        del rest[: 2 if rest[0] == "-F" else 1]
    files = rest[1:]
    return (
        any(rest[:1])
        and _AWK.fullmatch(rest[0]) is not None
        and not any(file.startswith(("-", "/inet")) or "=" in file for file in files)
    )


def _jq(arguments: Sequence[str]) -> bool:
    """``jq -r FILTER FILE``: a filter that knows nothing but the file."""
    rest = [word for word in arguments if not re.fullmatch(r"-[rceSMjs]+", word)]
    return (
        bool(rest)
        and not any(word.startswith("-") for word in rest)
        and _JQ_LOOKS_ELSEWHERE.search(rest[0]) is None
    )


def _version_or(*verbs: str) -> Callable[[Sequence[str]], bool]:
    """``pip --version``, ``pip show NAME``: one of these verbs, without options."""

    def looks(words: Sequence[str]) -> bool:
        is_verb = words[0] in verbs if words else False
        return list(words) in (["--version"], ["-V"]) or (
            is_verb and all(re.fullmatch(r"[^-].*|--depth=\d+", word) for word in words)
        )

    return looks


def _alone(arguments: Sequence[str]) -> bool:
    return not arguments


def _ps(arguments: Sequence[str]) -> bool:
    """No ``e`` without a dash, which shows environments; names of fields are behind ``-o``."""
    return all(
        _PS_WORD.fullmatch(word) or _PS_WORD.fullmatch(f"{before} {word}")
        for before, word in pairwise(("", *arguments))
    )


def _file_of_archive(arguments: Sequence[str]) -> bool:
    """``tar tzf FILE``, ``unzip -l FILE``: what an archive of this machine holds."""
    if not arguments or not re.fullmatch(r"-?[vzjJ]*t[vzjJ]*f|-[lv]", arguments[0]):
        return False
    return len(arguments) > 1 and not any(a[:1] == "-" or ":" in a for a in arguments[1:])


_WITH_VERSIONS = (
    *("python", "python3", "node", "uv", "cargo", "rustc", "go", "gcc", "java", "make"),
    *("pip list show freeze", "npm ls", "docker ps images"),
)
_SPECIAL: Mapping[str, Callable[[Sequence[str]], bool]] = MappingProxyType(
    {
        "git": git_only_reads,
        "find": find_only_lists,
        "sed": sed_only_prints,
        "awk": _awk,
        "jq": _jq,
        "uniq": _uniq,
        "printf": _printf,
        "date": _date,
        "ps": _ps,
        "hostname": _alone,
        "command": _command,
        "xargs": _xargs,
        "cd": _cd,
        "set": _set,
        **dict.fromkeys(("exit", "return", "break", "continue", "wait"), _number),
        **dict.fromkeys(("tar", "unzip"), _file_of_archive),
        **{name: _version_or(*verbs) for name, *verbs in map(str.split, _WITH_VERSIONS)},
    }
)

_LISTER_NAMES = """
    ls stat test [ basename dirname realpath readlink find tree du cd which type
"""
_NAMES_ONLY = frozenset(_LISTER_NAMES.split())
_ANY_FILE_NAMES = """
    wc ls stat du basename dirname echo realpath
"""
_SAFE_WITH_ANY_FILE = frozenset(_ANY_FILE_NAMES.split())
_TAKE_LISTS = frozenset({"du", "wc", "sort"})
"""Programs that complain of each line of a list of files, which shows the list: --files0-from."""
_UNKNOWN_NAMES = """
    echo ls stat basename dirname true false : which type expr wc realpath readlink
"""
_SAFE_WITH_UNKNOWN = frozenset(_UNKNOWN_NAMES.split())

_HARMLESS_NAMES = """
    echo true false : ls pwd cat tac head tail wc nl rev stat du df cut paste fold fmt expand
    unexpand comm cmp tr seq basename dirname realpath readlink cksum md5sum sha1sum sha224sum
    sha256sum sha384sum sha512sum b2sum id uname grep egrep fgrep nproc whoami groups arch uptime
    free who w tty logname locale getconf lscpu column hexdump od strings tsort join expr factor
    numfmt pgrep sleep cal pathchk which type whereis look
"""
_HARMLESS = frozenset(_HARMLESS_NAMES.split())
"""Programs without any option to write, run or fetch something."""

_DOES_MORE: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        name: re.compile(words, re.DOTALL)
        for names, words in {
            "rg": r"-[a-zA-Z]*z.*|--(?:pre|hostname|search-zip).*",
            "fd fdfind": r"-[a-zA-Z]*[xXl].*|--(?:exec|list-details|gen).*",
            "tree": r"-[a-zA-Z]*[oR].*|--(?:output|from|gitf|info).*",
            "file": r"-[a-zA-Z]*[CmfzZS].*|--(?:c|ma|f|un|no-s).*",
            "diff": r"-[a-zA-Z]*l.*|--(?:pag|to|fr).*",
            "sort": r"-[a-zA-Z0-9,.]*[oTS].*|--(?:o|co|t|fil|random-sou).*",
            "shuf": r"-[a-zA-Z0-9]*o.*|--(?:o|ra).*",
            "iconv base64 base32": r"-[a-zA-Z]*o.*|--o.*",
            "lsof": r"[-+][a-zA-Z]*[Dm].*",
            "ss": r"-[a-zA-Z0-9]*[KDFNE].*|--(?:k|di|fil|net|ev).*",
            "printenv": r"-.*",
        }.items()
        for name in names.split()
    }
)
"""Programs that only look, but for these options: they write, run or fetch, or read lists."""

TOOLCHAIN_FILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    dict.fromkeys(("cargo", "rustc", "rustup"), ("rust-toolchain.toml", "rust-toolchain"))
)
"""Files of a folder that decide which program runs under a name."""
