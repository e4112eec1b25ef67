"""Scripts within commands (sed, find, test): which of them only read."""

import re
from collections.abc import Iterator, Sequence

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
