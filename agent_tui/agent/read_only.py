"""Commands that only look: which, and with which options."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from types import MappingProxyType

from agent_tui.agent.shell_words import CommandPart

_MANY = 10_000
_SED_ADDRESS = r"(?:\d+|\$|/[^/]*/)"
_SED_PRINT = re.compile(rf" *(?:{_SED_ADDRESS}(?:,\+?{_SED_ADDRESS})?)?(?:p|=|q) *")


@dataclass(frozen=True, slots=True)
class _Form:
    """What may follow a command's name. Options not listed make it one that asks.

    `letters` may be joined (``-la``); `longs` come without dashes and may have ``=value``;
    `most` bounds the words that are no options (some commands write to the second one).
    """

    letters: str = ""
    longs: str = ""
    most: int = _MANY

    def admits(self, arguments: Sequence[str]) -> bool:
        """Whether `arguments` stay within this form."""
        longs = self.longs.split()
        others = 0
        options_end = False
        for argument in arguments:
            if options_end or argument == "-" or not argument.startswith("-"):
                others += 1
            elif argument == "--":
                options_end = True
            elif argument.startswith("--"):
                if argument[2:].partition("=")[0] not in longs:
                    return False
            elif not all(letter in self.letters for letter in argument[1:]):
                return False
        return others <= self.most


def is_read_only(part: CommandPart) -> bool:
    """Whether a part, all of whose words are known, can neither change nor run anything else.

    Patterns (``*.py``) are fine where they cannot turn into options; the caller looks at which
    files are read.
    """
    if part.kind != "command" or part.assignments or not part.words:
        return False
    if part.wrapper == "xargs":
        part = _without_unknown_files(part)
    if any(word.value is None for word in part.words) or part.words[0].is_pattern:
        return False
    # A file may be called -o: elsewhere only patterns that cannot begin with a dash are harmless.
    may_be_option = any(w.is_pattern and (w.value or "")[:1] in "*?[" for w in part.arguments)
    if may_be_option and part.name not in _SAFE_WITH_ANY_OPTION:
        return False
    arguments = [word.value or "" for word in part.arguments]
    check = _SPECIAL.get(part.name)
    if check is not None:
        return check(arguments)
    form = _FORMS.get(part.name)
    if form is not None and form.admits(arguments):
        return True
    return part.name in _VERSIONED and arguments in (["--version"], ["-V"], ["-v"], ["version"])


def _without_unknown_files(part: CommandPart) -> CommandPart:
    """What xargs runs, without the arguments it adds, where any arguments do no harm."""
    if part.name in _SAFE_WITH_ANY_FILE and part.words[-1].value is None:
        return replace(part, words=part.words[:-1])
    return part


def _git(arguments: Sequence[str]) -> bool:
    rest = list(arguments)
    while rest and rest[0] == "--no-pager":
        rest.pop(0)
    if not rest:
        return False
    form = _GIT_FORMS.get(rest[0])
    if form is None:
        return False
    if rest[0] in ("stash", "remote", "config", "worktree", "submodule", "reflog"):
        return rest in _GIT_EXACT or (rest[:2] == ["config", "--get"] and len(rest) == 3)
    return form.admits(rest[1:])


def _find(arguments: Sequence[str]) -> bool:
    index = 0
    while index < len(arguments) and not arguments[index].startswith(("-", "(", "!")):
        index += 1
    while index < len(arguments):
        test = arguments[index]
        if test in _FIND_WITH_VALUE:
            index += 2
        elif test in _FIND_ALONE:
            index += 1
        else:
            return False
    return True


def _sed(arguments: Sequence[str]) -> bool:
    """``sed -n '10,20p;/end/p' FILE``: printing lines, nothing else."""
    if len(arguments) < 2 or arguments[0] not in ("-n", "--quiet"):
        return False
    is_print = all(_SED_PRINT.fullmatch(step) for step in arguments[1].split(";"))
    return is_print and not any(argument.startswith("-") for argument in arguments[2:])


def _awk(arguments: Sequence[str]) -> bool:
    """Scripts without calls, pipes and redirections, which is how awk runs and writes."""
    rest = list(arguments)
    while rest and rest[0].startswith("-F"):
        del rest[: 2 if rest[0] == "-F" else 1]
    if not rest or rest[0].startswith("-"):
        return False
    is_harmless = re.fullmatch(r"[^|<>()@]*", rest[0]) is not None and "getline" not in rest[0]
    return is_harmless and not any(argument.startswith("-") for argument in rest[1:])


def _date(arguments: Sequence[str]) -> bool:
    """Only formats: another word, or ``-s``, sets the clock."""
    return all(argument.startswith("+") or argument in ("-u", "-I", "-R") for argument in arguments)


def _printf(arguments: Sequence[str]) -> bool:
    return bool(arguments) and not arguments[0].startswith("-")


def _test(arguments: Sequence[str]) -> bool:
    return len(arguments) == 2 and re.fullmatch("-[efdrwxsLhnz]", arguments[0]) is not None


def _lookup(arguments: Sequence[str]) -> bool:
    """``command -v NAME``."""
    return len(arguments) >= 2 and arguments[0] in ("-v", "-V")


def _xargs(arguments: Sequence[str]) -> bool:
    """Itself harmless; the command it runs is a part of its own."""
    options = list(takewhile(lambda argument: argument.startswith("-"), arguments))
    return len(options) < len(arguments) and _Form("0rn123456789").admits(options)


def _head_or_tail(arguments: Sequence[str]) -> bool:
    plain = [a for a in arguments if not re.fullmatch(r"-\d+|-[nc][+-]?\d+", a)]
    return _Form("ncqv", "lines bytes quiet verbose").admits(plain)


def _ps(arguments: Sequence[str]) -> bool:
    return " ".join(arguments) in ("", "aux", "-ef", "-e", "-A", "ax")


def _cd(arguments: Sequence[str]) -> bool:
    return len(arguments) == 1 and not arguments[0].startswith("-")


def _anything(arguments: Sequence[str]) -> bool:
    return True


def _nothing(arguments: Sequence[str]) -> bool:
    return not arguments


_SPECIAL: Mapping[str, Callable[[Sequence[str]], bool]] = MappingProxyType(
    {
        "git": _git,
        "find": _find,
        "sed": _sed,
        "awk": _awk,
        "date": _date,
        "printf": _printf,
        "test": _test,
        "command": _lookup,
        "xargs": _xargs,
        "head": _head_or_tail,
        "tail": _head_or_tail,
        "ps": _ps,
        "cd": _cd,
        "echo": _anything,
        "true": _anything,
        "false": _anything,
        ":": _anything,
        "whoami": _nothing,
        "hostname": _nothing,
        "nproc": _nothing,
        "arch": _nothing,
    }
)

_SAFE_WITH_ANY_OPTION = frozenset(
    {"echo", "ls", "wc", "cat", "tac", "nl", "grep", "head", "tail", "stat", "du", "diff", "cut"}
)

_SAFE_WITH_ANY_FILE = frozenset({"grep", "wc", "ls", "stat", "du", "basename", "dirname"})

_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        "ls": _Form(
            "aAbBcCdfFgGhHiIklLmnNopqQrRsStTuUvwxXZ1",
            "all almost-all color human-readable recursive reverse size sort time full-time "
            "group-directories-first classify directory inode",
        ),
        "pwd": _Form("LP", most=0),
        "cat": _Form("AbeEnstTuv", "number show-all number-nonblank squeeze-blank"),
        "tac": _Form(),
        "nl": _Form("bav"),
        "rev": _Form(),
        "wc": _Form("clmwL", "lines words chars bytes max-line-length"),
        "grep": _Form(
            "EFGPivwxcLlqsohHnZabrRABCmUe0123456789",
            "ignore-case invert-match word-regexp line-regexp count files-with-matches "
            "files-without-match max-count only-matching quiet no-messages with-filename "
            "no-filename line-number recursive include exclude exclude-dir after-context "
            "before-context context color colour extended-regexp fixed-strings perl-regexp regexp "
            "text binary-files null",
        ),
        "rg": _Form(
            "iSsvwxclLoHINnFPABCmeguUtTq0123456789",
            "ignore-case smart-case case-sensitive invert-match word-regexp line-regexp count "
            "files files-with-matches files-without-match only-matching with-filename "
            "no-filename line-number no-line-number fixed-strings after-context before-context "
            "context max-count regexp glob iglob type type-not hidden no-ignore color heading "
            "no-heading sort sortr stats multiline pcre2 max-depth quiet max-columns json vimgrep "
            "no-config",
        ),
        "fd": _Form("HIspgFaLtedEi0123456789", "hidden no-ignore type extension max-depth glob"),
        "tree": _Form("adfiLIPshDpugC0123456789", "dirsfirst gitignore prune noreport"),
        "du": _Form(
            "achksxm0bdS123456789", "human-readable summarize max-depth total apparent-size"
        ),
        "df": _Form("hHTkmai", "human-readable"),
        "stat": _Form("cfLt", "format printf terse dereference"),
        "file": _Form("bikL", "brief mime mime-type mime-encoding dereference"),
        "diff": _Form(
            "uUrqNwBbiyaC0123456789",
            "unified recursive brief new-file ignore-all-space ignore-space-change color "
            "side-by-side exclude stat",
        ),
        "cmp": _Form("lsb"),
        "comm": _Form("123"),
        "sort": _Form("nrukthfVbdMgcs0123456789,.", "numeric-sort reverse unique key version-sort"),
        "uniq": _Form("cdiu", "count repeated unique", most=1),
        "cut": _Form("dfcbs0123456789,-:;|/.= ", "delimiter fields characters bytes complement"),
        "tr": _Form("dscCt", "delete squeeze-repeats complement"),
        "column": _Form("tsxcn"),
        "fold": _Form("ws0123456789"),
        "paste": _Form("ds"),
        "seq": _Form("ws"),
        "basename": _Form("asz", "suffix"),
        "dirname": _Form("z"),
        "realpath": _Form("emsqz", "relative-to relative-base canonicalize-missing"),
        "readlink": _Form("fenmqsvz"),
        "md5sum": _Form("bct"),
        "sha1sum": _Form("bct"),
        "sha256sum": _Form("bct"),
        "xxd": _Form("lsgcpu0123456789", most=1),
        "od": _Form("AcjNtvxw0123456789"),
        "hexdump": _Form("Cnsv0123456789"),
        "jq": _Form("rceSMnsaj", "raw-output compact-output exit-status sort-keys slurp arg"),
        "which": _Form("a"),
        "type": _Form("aptP"),
        "uname": _Form("asnrvmpio"),
        "id": _Form("ugnGr"),
        "uptime": _Form("ps"),
        "free": _Form("hmgb"),
        "sleep": _Form(),
    }
)

_VERSIONED_NAMES = """
    python python3 node npm npx pnpm yarn pip pip3 uv cargo rustc go gcc clang make cmake ruby java
    javac docker git bash rg fd jq tsc deno bun perl php ruff mypy pyright pytest
"""
_VERSIONED = frozenset(_VERSIONED_NAMES.split())

_LOG_LETTERS = "npsuwbMCLSGiEzt0123456789"
_LOG_LONGS = """
    abbrev-commit after all author before branches cached cc check color date decorate diff-filter
    exit-code find-renames first-parent follow format full-index function-context graph grep
    ignore-all-space ignore-blank-lines ignore-space-change inter-hunk-context left-right max-count
    merge-base merges minimal name-only name-status no-color no-decorate no-ext-diff no-merges
    no-patch no-renames no-textconv no-prefix numstat oneline patch patch-with-stat patience
    pickaxe-regex pretty quiet raw relative remotes reverse shortstat simplify-by-decoration since
    skip staged stat submodule summary tags topo-order unified until word-diff
"""
_GIT_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        "status": _Form(
            "sbuvz", "short branch porcelain untracked-files ignored long verbose show-stash"
        ),
        "diff": _Form(_LOG_LETTERS, _LOG_LONGS),
        "log": _Form(_LOG_LETTERS, _LOG_LONGS),
        "show": _Form(_LOG_LETTERS, _LOG_LONGS),
        "shortlog": _Form("snec"),
        "blame": _Form("LwMCesltfnp0123456789,", "date porcelain"),
        "ls-files": _Form(
            "cdmoskzut", "others exclude-standard modified deleted cached stage error-unmatch"
        ),
        "ls-tree": _Form("drtlz", "name-only full-tree"),
        "cat-file": _Form("tspe"),
        "rev-parse": _Form(
            "q",
            "abbrev-ref show-toplevel verify short is-inside-work-tree git-dir HEAD show-prefix "
            "symbolic-full-name show-cdup git-common-dir",
        ),
        "rev-list": _Form("n0123456789", "count max-count all left-right since until"),
        "describe": _Form("", "tags always dirty abbrev long all match"),
        "branch": _Form("avr", "list all remotes show-current verbose no-color", most=0),
        "tag": _Form("ln0123456789", "list sort", most=0),
        "merge-base": _Form("a", "all is-ancestor"),
        "grep": _Form("niIwlLcEFPhHABC0123456789", "line-number ignore-case count cached"),
        "stash": _Form(),
        "remote": _Form(),
        "config": _Form(),
        "worktree": _Form(),
        "submodule": _Form(),
        "reflog": _Form(),
        "--version": _Form(most=0),
        "version": _Form(most=0),
    }
)
_GIT_EXACT = (
    ["stash", "list"],
    ["stash", "show"],
    ["stash", "show", "-p"],
    ["remote"],
    ["remote", "-v"],
    ["worktree", "list"],
    ["submodule", "status"],
    ["reflog"],
    ["config", "user.name"],
    ["config", "user.email"],
)

_FIND_VALUE_NAMES = """
    -name -iname -path -ipath -wholename -regex -iregex -type -xtype -maxdepth -mindepth -size
    -mtime -mmin -ctime -cmin -atime -newer -user -group -perm -printf -links -regextype
"""
_FIND_WITH_VALUE = frozenset(_FIND_VALUE_NAMES.split())
_FIND_ALONE_NAMES = "-print -print0 -prune -empty -ls -a -o -not -and -or ! ( ) -L -P -H -readable"
_FIND_ALONE = frozenset(_FIND_ALONE_NAMES.split())
