"""Scripts within commands (sed, awk, jq, find, test): which of them only look."""

import re
from collections.abc import Iterator, Sequence

_SED_COMMANDS = re.compile(r"[pPdDgGhHxnN=]|[qQl]\d*")
_SED_TEXT = re.compile(r"[aic][ \t]*[^\s\\][^\n\\]*")
_SED_FLAGS = re.compile(r"[gpiI0-9]*")
_SED_OPTIONS = re.compile(r"-[nErsuz]+|--(?:quiet|silent|regexp-extended|separate|null-data)")
_BRACKET = re.compile(r"\[\^?\]?[^\]]*\]")
_AWK_FUNCTIONS = """
    if while for print printf length substr split index tolower toupper int sprintf match gsub sub
    sqrt exp log sin cos atan2 rand srand strtonum gensub asort asorti patsplit in return exit and
    or xor lshift rshift compl strftime systime mktime isarray typeof
"""
_AWK_SAFE_CALLS = frozenset(_AWK_FUNCTIONS.split())
_AWK_FORBIDDEN = re.compile(
    r"@|\b(?:getline|system|close|fflush|ARGV|ARGC|ARGIND|ENVIRON|PROCINFO|SYMTAB|FUNCTAB|function|func)\b"
)
_AWK_BEFORE_OPERAND = frozenset(
    {"print", "printf", "return", "in", "exit", "else", "do", "case", "delete", "length"}
)
"""Words after which a slash begins a regular expression, or may."""

_AWK_OPERAND_END = re.compile(r"(?:[\w\]]|\"\")\s*\Z")
_AWK_LAST_WORD = re.compile(r"([A-Za-z_]\w*)\s*\Z")
_AWK_CALL = re.compile(r"(?<!\w)\d*([A-Za-z_]\w*)\s*\(")
_AWK_PIPE = re.compile(r"(?<!\|)\|(?!\|)|\|&")
_JQ_REACHES_OUT = re.compile(
    r"\$(?:\s|#[^\n]*\n)*(?:ENV|__prog)|\b(?:env|input_filename|include|import|modulemeta)\b"
)
_UNARY = re.compile(r"-[bcdefghknoprstuwxzGLNOS]")
_BINARY = re.compile(r"=|==|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)")


def sed_only_prints(arguments: Sequence[str]) -> bool:
    """``sed -n '10,20p' FILE``, ``sed 's/a/b/g' FILE``: no ``-i``, ``-f``, ``e``, ``w``, ``r``."""
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
    return bool(scripts) and all(_is_harmless_sed(script) for script in scripts)


def _is_harmless_sed(script: str) -> bool:
    """Reads the script as sed does; anything out of the ordinary is not harmless."""
    at = 0
    while at < len(script):
        if script[at] in " \t;\n{}":
            at += 1
            continue
        at = _after_sed_command(script, at)
        if at < 0:
            return False
        if at < len(script) and script[at] not in " \t;\n}":
            return False
    return True


def _after_sed_command(script: str, at: int) -> int:
    """The position behind the command at `at`, its addresses included; -1: not harmless."""
    for part in range(2):
        found = _after_sed_address(script, at)
        if found < 0:
            return -1
        is_range = found > at and part == 0 and script[found : found + 1] == ","
        at = found + 1 if is_range else found
        if not is_range:
            break
    while script[at : at + 1] in (" ", "!") and at < len(script):
        at += 1
    if script[at : at + 1] == "{":
        is_apart = script[at + 1 : at + 2] in (" ", ";", "\n")
        return at + 1 if is_apart else _after_sed_command(script, at + 1)
    if script[at : at + 1] in ("s", "y"):
        return _after_substitution(script, at)
    found_command = _SED_COMMANDS.match(script, at) or _SED_TEXT.match(script, at)
    return found_command.end() if found_command else -1


def _after_sed_address(script: str, at: int) -> int:
    if script[at : at + 1] == "/":
        end = _after_delimited(script, at + 1, "/")
        return end + 1 if script[end : end + 1] == "I" and end > 0 else end
    number = re.compile(r"\$|[+~]?\d+(?:~\d+)?").match(script, at)
    return number.end() if number else at


def _after_substitution(script: str, at: int) -> int:
    delimiter = script[at + 1 : at + 2]
    if not delimiter or delimiter.isalnum() or delimiter in "\\\n ;{}[]":
        return -1
    middle = _after_delimited(script, at + 2, delimiter)
    end = _after_delimited(script, middle, delimiter, is_regex=False) if middle > 0 else -1
    if end < 0:
        return -1
    flags = _SED_FLAGS.match(script, end)
    return flags.end() if flags else end


def _after_delimited(script: str, at: int, delimiter: str, *, is_regex: bool = True) -> int:
    """The position behind the closing delimiter; -1 where readers of sed could disagree on it."""
    start = at
    while at < len(script) and script[at] != delimiter:
        if script[at] == "\n":
            return -1
        at += 2 if script[at] == "\\" else 1
    if at >= len(script):
        return -1
    text = re.sub(r"\\.", "", script[start:at])
    if is_regex and "[" in _BRACKET.sub("", text):
        return -1
    return at + 1


def awk_only_prints(arguments: Sequence[str]) -> bool:
    """A script without pipes, redirections, calls of other programs and changed arguments."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-F", "-v"):
            if not rest:
                return False
            rest.pop(0)
        elif not option.startswith(("-F", "-v")):
            return False
    # gawk takes /inet/tcp/0/HOST/PORT among its files for a connection.
    if not rest or any(word.startswith("-") or "/inet" in word for word in rest[1:]):
        return False
    code = _awk_code(rest[0])
    return code is not None and _is_harmless_awk(code)


def _awk_code(script: str) -> str | None:
    """The script with strings and regular expressions taken out; None where unsure."""
    kept: list[str] = []
    before = ""
    at = 0
    while at < len(script):
        character = script[at]
        is_regex = character == "/" and before in ("", *"~(,!&|;{}\n")
        if character == '"' or is_regex:
            end = _closing(script, at)
            if end < 0:
                return None
            kept.append(" 0 " if is_regex else ' "" ')
            before = "0"
            at = end + 1
        elif character in "#\\/" and _is_unsure("".join(kept[-40:]), script, at):
            return None
        else:
            kept.append(character)
            before = before if character in " \t" else character
            at += 1
    return "".join(kept)


def _is_unsure(code: str, script: str, at: int) -> bool:
    """Whether the character at `at`, after `code`, may be more than a division.

    A regular expression would end with another slash on the same line.
    """
    if script[at] != "/":
        return True
    word = _AWK_LAST_WORD.search(code)
    is_operand = word is None or word[1] not in _AWK_BEFORE_OPERAND
    if is_operand and _AWK_OPERAND_END.search(code):
        return False
    end, line_end = script.find("/", at + 1), script.find("\n", at + 1)
    return end > 0 and (line_end < 0 or end < line_end)


def _closing(script: str, start: int) -> int:
    """Where the string or regular expression that begins at `start` ends."""
    at = start + 1
    while at < len(script) and script[at] != script[start]:
        if script[at] == "\n":
            return -1
        at += 2 if script[at] == "\\" else 1
    text = re.sub(r"\\.", "", script[start + 1 : at])
    is_unsure = script[start] == "/" and "[" in _BRACKET.sub("", text)
    return -1 if at >= len(script) or is_unsure else at


def _is_harmless_awk(code: str) -> bool:
    if _AWK_FORBIDDEN.search(code) or _AWK_PIPE.search(code):
        return False
    if any(call not in _AWK_SAFE_CALLS for call in _AWK_CALL.findall(code)):
        return False
    # After print, > names a file; in conditions it compares.
    for statement in re.split(r"[;{}]", code):
        _, printing, printed = statement.partition("print")
        if printing and ">" in printed:
            return False
    return True


def jq_only_prints(arguments: Sequence[str]) -> bool:
    """Without a look at the environment or at further files of code."""
    return not any(_JQ_REACHES_OUT.search(argument) for argument in arguments)


def find_only_lists(arguments: Sequence[str]) -> bool:
    """Tests and ways to print; nothing that runs, deletes or writes."""
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
            # What it runs is a part of its own.
            index = next(
                (i for i in range(index, len(arguments)) if arguments[i] in (";", "+")),
                len(arguments),
            )
            index += 1
        else:
            return False
    return True


def find_roots_start(arguments: Sequence[str]) -> int:
    """How many words before the folders are options of find itself (``-L``, ``-D tree``)."""
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
    """``test`` and ``[``: known operators in known places; None is a value not known yet.

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
