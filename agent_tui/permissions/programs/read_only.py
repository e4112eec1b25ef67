"""Commands that only look: which, and with which options."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from types import MappingProxyType

from agent_tui.permissions.programs.git import git_only_reads
from agent_tui.permissions.programs.harmless_options import ANYTHING, HarmlessOptions
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
    check, form = _SPECIAL.get(name), _FORMS.get(name)
    return not _takes_list(part) and (
        (check is not None and check(arguments)) or (form is not None and form.admits(arguments))
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
    return name in ("echo", "diff") or _FORMS.get(name) is ANYTHING


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
    return len(options) < len(arguments) and HarmlessOptions("0rt", "nLPdI").admits(options)


def _cd(arguments: Sequence[str]) -> bool:
    return len(arguments) == 1 and not arguments[0].startswith("-")


def _set(arguments: Sequence[str]) -> bool:
    """``set -euo pipefail``: stops at errors, nothing else."""
    return bool(arguments) and all(re.fullmatch(r"-[euo]+|pipefail", a) for a in arguments)


def _number(arguments: Sequence[str]) -> bool:
    return all(argument.isdigit() for argument in arguments)


def _date(arguments: Sequence[str]) -> bool:
    return all(re.fullmatch(r"\+.*|-[uRI]", argument, re.DOTALL) for argument in arguments)


def _ps(arguments: Sequence[str]) -> bool:
    return list(arguments) in ([], ["aux"], ["-ef"], ["-e"], ["-A"])


def _version(arguments: Sequence[str]) -> bool:
    return list(arguments) in (["--version"], ["-V"])


def _file_of_archive(arguments: Sequence[str]) -> bool:
    """``tar tzf FILE``, ``unzip -l FILE``: what an archive of this machine holds."""
    if not arguments or not re.fullmatch(r"-?[vzjJ]*t[vzjJ]*f|-[lv]", arguments[0]):
        return False
    return len(arguments) > 1 and not any(a[:1] == "-" or ":" in a for a in arguments[1:])


_SPECIAL: Mapping[str, Callable[[Sequence[str]], bool]] = MappingProxyType(
    {
        "git": git_only_reads,
        "find": find_only_lists,
        "sed": sed_only_prints,
        "printf": _printf,
        "date": _date,
        "ps": _ps,
        "command": _command,
        "xargs": _xargs,
        "cd": _cd,
        "set": _set,
        **dict.fromkeys(("exit", "return", "break", "continue", "wait"), _number),
        **dict.fromkeys(("tar", "unzip"), _file_of_archive),
        **dict.fromkeys(
            (
                "python",
                "python3",
                "node",
                "npm",
                "pip",
                "uv",
                "cargo",
                "rustc",
                "go",
                "gcc",
                "java",
            ),
            _version,
        ),
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
    numfmt pgrep sleep cal pathchk
"""
"""Programs without any option to write, run or fetch something."""

_FORMS: Mapping[str, HarmlessOptions] = MappingProxyType(
    {
        **dict.fromkeys(_HARMLESS_NAMES.split(), ANYTHING),
        "rg": HarmlessOptions(
            "iSsvwxclLoHINnFPUuqphaV0",
            "ABCmegtTrEdjM",
            "ignore-case smart-case case-sensitive invert-match word-regexp line-regexp count "
            "count-matches files files-with-matches files-without-match only-matching "
            "with-filename no-filename line-number no-line-number fixed-strings after-context "
            "before-context context max-count regexp glob iglob type type-not type-list hidden "
            "no-ignore no-ignore-vcs no-messages color colors heading no-heading sort sortr stats "
            "multiline multiline-dotall pcre2 max-depth quiet max-columns json vimgrep "
            "no-config column replace trim null text passthru unrestricted crlf threads version "
            "max-filesize engine byte-offset include-zero one-file-system pretty",
        ),
        **dict.fromkeys(
            ("fd", "fdfind"),
            HarmlessOptions(
                "HIspgFaLu0i1qV",
                "tedEcSjodM",
                "hidden no-ignore type extension max-depth min-depth exact-depth glob regex "
                "full-path absolute-path exclude follow print0 case-sensitive ignore-case size "
                "changed-within changed-before max-results quiet color no-ignore-vcs version",
            ),
        ),
        "tree": HarmlessOptions(
            "adfilpshDugCnNqQxFJX",
            "LIP",
            "dirsfirst gitignore prune noreport filelimit charset ignore-case du matchdirs",
        ),
        "file": HarmlessOptions(
            "biIkLhNnpr0", "F", "brief mime mime-type mime-encoding dereference"
        ),
        "diff": HarmlessOptions(
            "urqNwBbEZiyasTtdcp0123456789",
            "UCIxW",
            "unified context recursive brief new-file ignore-all-space ignore-space-change "
            "ignore-blank-lines ignore-trailing-space ignore-case color side-by-side exclude "
            "width suppress-common-lines minimal text report-identical-files strip-trailing-cr "
            "ignore-matching-lines label expand-tabs no-dereference show-c-function",
        ),
        "sort": HarmlessOptions(
            "nrufhVbdMgcCsizmR",
            "kt",
            "numeric-sort reverse unique key version-sort field-separator human-numeric-sort "
            "ignore-case ignore-leading-blanks general-numeric-sort month-sort stable check "
            "zero-terminated dictionary-order merge random-sort debug",
        ),
        "uniq": HarmlessOptions(
            "cdiuDz", "fsw", "count repeated unique ignore-case all-repeated", 1
        ),
        "shuf": HarmlessOptions("erz", "in", "echo head-count input-range repeat zero-terminated"),
        "iconv": HarmlessOptions("lcs", "ft", "list from-code to-code"),
        "base64": HarmlessOptions("diD", "w", "decode wrap ignore-garbage"),
        "base32": HarmlessOptions("di", "w", "decode wrap ignore-garbage"),
        "which": HarmlessOptions("as", "", "all"),
        "type": HarmlessOptions("aptPf"),
        "lsof": HarmlessOptions("nPlRtUa", "ipucdgsF"),
        "ss": HarmlessOptions("HOnraltumpw46"),
        "printenv": HarmlessOptions(),
    }
)

TOOLCHAIN_FILES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    dict.fromkeys(("cargo", "rustc", "rustup"), ("rust-toolchain.toml", "rust-toolchain"))
)
"""Files of a folder that decide which program runs under a name."""
