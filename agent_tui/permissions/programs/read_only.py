"""Commands that only read: which ones, with which options and scripts (sed, find, test).

The list is short. It serves machines without a sandbox and mode ask; anything else asks.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from agent_tui.permissions.shell.words import CommandPart, Word

_HARMLESS_GLOBALS = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
_GIT_READER_NAMES = """
    status log diff show whatchanged cherry diff-tree diff-index diff-files range-diff shortlog
    blame annotate ls-files ls-tree cat-file rev-parse rev-list describe merge-base grep
    for-each-ref show-ref name-rev count-objects check-ignore check-attr show-branch var version
"""
_GIT_READERS = frozenset(_GIT_READER_NAMES.split())
_GIT_PAIRS = frozenset(
    {
        *("stash list", "stash show", "remote get-url", "worktree list"),
        *("submodule status", "reflog show", "reflog exists", "notes list", "notes show"),
        *("bisect log", "config -l", "config --list", "config --get", "config --get-all"),
        *("config --get-regexp", "config list", "config get"),
    }
)
_GIT_ALONE = frozenset({"remote", "remote -v", "reflog"})
"""Commands that only read if nothing follows."""

_GIT_DOES_MORE = re.compile(
    r"--(?:o|ou\w*|ext[\w-]*|textc\w*|no-i[\w-]*|show-s[\w-]*|open[\w-]*|filt\w*|batch[\w-]*|stdin|cont(?!ains|ext)\w*"
    r"|pathspec-from[\w-]*|exec[\w-]*|file|unset[\w-]*|add|replace[\w-]*|edit|help|parseopt|remerge[\w-]*|diff-m[\w-]*|unt(?!il)\w*"
    r"|no-ex(?!t)[\w-]*|exclude-[fp][\w-]*)(?:=.*)?"
    r"|-[a-zA-Z]*O.*|-[foX].*|.*%[-+ ]?(?:G|\(\*?(?:signature|if|describe)).*",
    re.DOTALL,
)
"""Options with which a looking verb writes a file, starts a program or reads a list of files;
placeholders for which it starts other programs."""

_GIT_LISTS = re.compile(
    r"-[avrniql0-9]+|--(?:list|contains|no-contains|merged|no-merged|points-at|all|remotes|sort"
    r"|format|color|no-color|column|no-column|verbose|ignore-case|abbrev|omit-empty|show-current)"
    r"(?:=.*)?"
)
_TAKES_GIT_PATTERNS = re.compile(
    r"-\w*l\w*|--(?:list|contains|no-contains|merged|no-merged|points-at)(?:=.*)?"
)
_SED_OPTIONS = re.compile(r"-[nErsuz]+|--(?:quiet|silent|regexp-extended|separate|null-data)")
_ADDRESS = r"(?:\d+|\$|/[^/\\\[\n]*/)"
_SED_COMMAND = rf"(?:{_ADDRESS}(?:,(?:\+?\d+|{_ADDRESS}))?)?!?[pdq=]"
_SED_SUBSTITUTION = (
    r"s([/|#,])(?:(?!\1)[^\\\[\n]|\\[^c\n]|\[\^?[^]\[\\\n/|#,]+\])*\1"
    r"(?:(?!\1)[^\\\n]|\\[^c\n])*\1[gpI0-9]*"
)
_SED_SCRIPT = re.compile(rf"(?:{_SED_COMMAND})(?:; ?(?:{_SED_COMMAND}))*|{_SED_SUBSTITUTION}")
_UNARY = re.compile(r"-[bcdefghknoprstuwxzGLNOS]")
_BINARY = re.compile(r"=|==|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)")
_LANGUAGE = re.compile(
    r"(?:LC_[A-Z]+|LANG|LANGUAGE)=[\w.@-]*|TZ=\w+(?:/[\w+-]+)*|(?:NO_COLOR|CLICOLOR|FORCE_COLOR)=\d?"
    r"|(?:COLUMNS|LINES)=\d+|(?:GIT_)?PAGER=cat"
)


def git_only_reads(arguments: Sequence[str]) -> bool:
    """Whether ``git`` with `arguments` changes nothing and runs no program it is given."""
    rest = _without_globals(arguments)
    if rest in (["--version"], ["--exec-path"], ["--help"]):
        return True
    if not rest or any(map(_GIT_DOES_MORE.fullmatch, rest[1:])):
        return False
    verb, others = rest[0], rest[1:]
    if verb in ("branch", "tag"):
        options = [other for other in others if other.startswith("-")]
        names_patterns = (
            any(map(_TAKES_GIT_PATTERNS.fullmatch, options)) and verb + options[0] != "branch-l"
        )
        return all(map(_GIT_LISTS.fullmatch, options)) and (
            names_patterns or options == list(others)
        )
    if verb == "symbolic-ref":
        return len([other for other in others if not other.startswith("-")]) == 1 and not (
            {"-d", "--delete", "-m"} & set(others)
        )
    return bool(
        verb in _GIT_READERS
        or " ".join(rest) in _GIT_ALONE
        or (verb == "reflog" and others[0].startswith("-"))
        or " ".join(rest[:2]) in _GIT_PAIRS
        or (verb == "config" and len(others) == 1 and re.fullmatch(r"\w[\w-]*\..+", others[0]))
    )


def git_folders(arguments: Sequence[str | None]) -> list[str]:
    """The folders ``git -C`` names before the verb."""
    found: list[str] = []
    index = 0
    while index + 1 < len(arguments):
        option, value = arguments[index], arguments[index + 1]
        if option is None or not option.startswith("-"):
            break
        if option == "-C":
            found += [value] if value else []
            index += 1
        index += 1
    return found


def _without_globals(arguments: Sequence[str]) -> list[str]:
    rest = list(arguments)
    while rest:
        if rest[0] in _HARMLESS_GLOBALS:
            del rest[0]
        elif rest[0] == "-C" and len(rest) > 1:
            del rest[:2]
        else:
            break
    return rest


def sed_only_prints(arguments: Sequence[str]) -> bool:
    """Whether it only prints (``sed -n '10,20p' FILE``): no ``-i``, ``-f``, ``e``, ``w``, ``r``."""
    scripts: list[str] = []
    files: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-e", "-ne", "-Ee", "--expression"):
            if not rest:
                return False
            scripts.append(rest.pop(0))
        elif word.startswith("-") and len(word) > 1:
            if not _SED_OPTIONS.fullmatch(word):
                return False
        else:
            files.append(word)
    if not scripts and files:
        scripts.append(files.pop(0))
    return bool(scripts) and all(map(_SED_SCRIPT.fullmatch, scripts))


def find_only_lists(arguments: Sequence[str]) -> bool:
    """Whether find only tests and prints: runs, deletes and writes nothing."""
    index = find_roots_start(arguments)
    if any(option not in ("-L", "-P", "-H") for option in arguments[:index]):
        return False
    while index < len(arguments) and not arguments[index].startswith(("-", "(", "!")):
        index += 1
    while index < len(arguments):
        test = arguments[index]
        if test in _FIND_WITH_VALUE:
            index += 2
        elif test in _FIND_ALONE:
            index += 1
        elif test in _FIND_RUNS:
            # The command it runs is a separate part.
            index = next(
                (i for i in range(index, len(arguments)) if arguments[i] in (";", "+")),
                len(arguments),
            )
            index += 1
        else:
            return False
    return True


def find_roots_start(arguments: Sequence[str]) -> int:
    """How many leading words are options of find itself (``-L``, ``-D tree``)."""
    index = 0
    while index < len(arguments) and re.fullmatch(r"-[LPHEXdsx]+|-O\d*|--|-D", arguments[index]):
        index += 2 if arguments[index] == "-D" else 1
    return min(index, len(arguments))


_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FIND_VALUE_NAMES = """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -maxdepth
    -mindepth -size -mtime -mmin -ctime -cmin -atime -amin -newer -anewer -cnewer -newermt
    -newerct -user -group -uid -gid -perm -printf -links -regextype -inum -samefile -lname -fstype
"""
_FIND_WITH_VALUE = frozenset(_FIND_VALUE_NAMES.split())
_FIND_ALONE_NAMES = """
    -print -print0 -prune -empty -ls -a -o -not -and -or ! ( ) , -readable -writable -executable
    -depth -mount -xdev -quit -true -false -daystart -nouser -nogroup -follow -noleaf
"""
_FIND_ALONE = frozenset(_FIND_ALONE_NAMES.split())


def condition_only_looks(arguments: Sequence[str | None]) -> bool:
    """Whether ``test`` or ``[`` uses only known operators; None is a value known only at run time.

    ``-v`` and ``-R`` would evaluate the name they are given.
    """
    words = list(arguments)
    if words and words[-1] == "]":
        words.pop()
    return all(_is_harmless_test(clause) for clause in _clauses(words))


def _clauses(words: Sequence[str | None]) -> Iterator[list[str | None]]:
    clause: list[str | None] = []
    for word in words:
        if word in ("-a", "-o") and clause:
            yield clause
            clause = []
        else:
            clause.append(word)
    yield clause


def _is_harmless_test(clause: Sequence[str | None]) -> bool:
    words = list(clause)
    while words[:1] == ["!"]:
        words.pop(0)
    match words:
        case [] | [_]:
            return True
        case [str() as operator, _]:
            return _UNARY.fullmatch(operator) is not None
        case [_, str() as operator, _]:
            return _BINARY.fullmatch(operator) is not None
        case _:
            return False


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
_SPECIAL: Mapping[str, Callable[[Sequence[str]], bool]] = {
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

_DOES_MORE: Mapping[str, re.Pattern[str]] = {
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
"""Programs that only read, except with these options, which write, run, fetch or read lists."""

TOOLCHAIN_FILES: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("cargo", "rustc", "rustup"), ("rust-toolchain.toml", "rust-toolchain")
)
"""Files in a folder that decide which program runs under a name."""
