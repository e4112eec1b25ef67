"""Which files a program writes, as far as its words tell: by operands, options and ``of=``.

Each row of the table describes one program. Programs without a row write what ``-o`` and
``--output`` name, which is the convention.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from agent_tui.permissions.programs.destruction import replaced_by_git
from agent_tui.permissions.shell.words import CommandPart, Word

Operands = Literal["none", "all", "first", "last"]
_FIND_WRITES = re.compile(r"-fls|-fprint(?:0|f)?")
_HERE = Word(".", ".")
"""The folder the program runs in."""


@dataclass(frozen=True, slots=True)
class _Form:
    """How a program names the files it writes. Options are letters and long names.

    Attributes:
        operands: The operands it writes. ``last`` needs an operand before it.
        only_with: Options of which one must be given, or it writes no operand. ``i=inplace``: with
            this value.
        not_with: Options with which it writes nothing.
        all_with: Options with which it writes every operand.
        outputs: Options whose value it writes.
        valued: Other options that take a value.
        attached: Letters whose value can only be the rest of the word.
        script_without: The first operand is a script unless one of these options is given; empty
            if no operand is.
        writes_here: Whether it also writes in the folder it runs in, if it has no such options.
    """

    operands: Operands = "none"
    only_with: str = ""
    not_with: str = ""
    all_with: str = ""
    outputs: str = ""
    valued: str = ""
    attached: str = ""
    script_without: str = ""
    writes_here: bool = False


def written_words(name: str, part: CommandPart) -> list[Word]:
    """The words, or the values in them, that name files `part` writes, changes or removes.

    Args:
        name: The program, without its folder and in small letters.
        part: One part of a command. A word known only at run time is listed, too.
    """
    if name == "dd":
        return [_value(word, (word.value or "")[3:]) for word in _starting(part, "of=")]
    if name in ("tar", "bsdtar", "gtar"):
        return _written_by_tar(part)
    if name == "find":
        pairs = pairwise(part.arguments)
        return [word for option, word in pairs if _FIND_WRITES.fullmatch(option.value or "")]
    form = _FORMS.get(name)
    return list(_by_convention(part.arguments)) if form is None else _written(part.arguments, form)


def replaced_words(name: str, part: CommandPart) -> list[Word]:
    """The words that name files whose present content is gone once `part` has run.

    Args:
        name: The program, without its folder and in small letters.
        part: One part of a command. What a program moves is kept under its new name.
    """
    if name == "git":
        named = replaced_by_git([word.value or "" for word in part.arguments])
        return [word for word in part.arguments if word.value in named]
    if name in _KEEPING or (name == "tee" and _APPEND & {word.value for word in part.arguments}):
        return []
    return written_words("cp" if name == "mv" else name, part)


def _starting(part: CommandPart, prefix: str) -> Iterator[Word]:
    return (word for word in part.arguments if (word.value or "").startswith(prefix))


def _written(words: Sequence[Word], form: _Form) -> list[Word]:
    options, operands = _read(words, form)
    outputs = [value for name, value in options if name in form.outputs.split() and value]
    if form.script_without and not _has(options, form.script_without):
        operands = operands[1:]
    which: Operands = "all" if _has(options, form.all_with) else form.operands
    if _has(options, form.not_with):
        return []
    if form.only_with and not _has(options, form.only_with):
        which = "none"
    match which:
        case "none":
            written = []
        case "all":
            written = operands
        case "first":
            written = operands[:1]
        case "last":
            written = operands[-1:] if len(operands) > 1 and not outputs else []
    found = [*outputs, *written]
    return [_HERE] if form.writes_here and not found else found


def _has(options: Sequence[tuple[str, Word | None]], wanted: str) -> bool:
    named = wanted.split()
    return any(
        name in named or (value is not None and f"{name}={value.value}" in named)
        for name, value in options
    )


def _read(words: Sequence[Word], form: _Form) -> tuple[list[tuple[str, Word | None]], list[Word]]:
    """The options with their values, and the operands, as getopt reads them."""
    valued = {*form.outputs.split(), *form.valued.split()}
    flags = (form.only_with, form.not_with, form.all_with, form.script_without)
    named = {flag.partition("=")[0] for flags_of in flags for flag in flags_of.split()}
    known = {name for name in valued | named if len(name) > 1}
    options: list[tuple[str, Word | None]] = []
    operands: list[Word] = []
    rest = iter(words)
    for word in rest:
        text = word.value or ""
        if text == "--":
            operands += rest
        elif not text.startswith("-") or text == "-":
            operands.append(word)
        elif text.startswith("--"):
            name, equals, value = text[2:].partition("=")
            name = min((one for one in known if one.startswith(name)), default=name)
            takes_next = not equals and name in valued
            options.append(
                (name, next(rest, None) if takes_next else _value(word, value) if equals else None)
            )
        else:
            options += _read_letters(word, text[1:], rest, valued, form.attached)
    return options, operands


def _read_letters(
    word: Word, letters: str, rest: Iterator[Word], valued: set[str], attached: str
) -> Iterator[tuple[str, Word | None]]:
    """The options of a word such as ``-uo``, whose value may be the rest of it or the next word."""
    for at, letter in enumerate(letters, 1):
        behind = letters[at:]
        if letter in valued:
            yield letter, _value(word, behind) if behind else next(rest, None)
            return
        yield letter, _value(word, behind) if letter in attached else None
        if letter in attached:
            return


def _value(word: Word, text: str) -> Word:
    """`text`, a part of `word`, as a word of its own."""
    return replace(word, value=text, has_tilde=text.startswith("~"))


_OUTPUT_NAME = r"--out(?:put)?(?:[-_]?(?:file|dir|directory|folder|path))?"
_OUTPUT = re.compile(rf"-o|-out|{_OUTPUT_NAME}")
_OUTPUT_HERE = re.compile(rf"-o(?=[/.~])|{_OUTPUT_NAME}=")


def _by_convention(words: Sequence[Word]) -> Iterator[Word]:
    """The values of ``-o FILE``, ``-o/FILE``, ``--output FILE`` and ``--output=FILE``."""
    rest = iter(words)
    for word in rest:
        text = word.value or ""
        if text == "--":
            return
        if _OUTPUT.fullmatch(text):
            yield from filter(None, (next(rest, None),))
        elif found := _OUTPUT_HERE.match(text):
            yield _value(word, text[found.end() :])


_TAR = _Form(valued="f file C directory b H L N T X K F g I V", not_with="x extract get")


def _written_by_tar(part: CommandPart) -> list[Word]:
    """Where it extracts to, else the archive."""
    words = list(part.arguments)
    if words and words[0].value and not words[0].value.startswith("-"):  # tar xf FILE
        letters, behind = words[0].value, iter(words[1:])
        words = list[Word]()
        for letter in letters:
            words.append(Word(f"-{letter}", f"-{letter}"))
            if letter in _TAR.valued.split():
                words += filter(None, (next(behind, None),))
        words += behind
    options, _ = _read(words, _TAR)
    extracts = _has(options, _TAR.not_with)
    names = ("C", "directory") if extracts else ("f", "file")
    found = [value for name, value in options if name in names and value is not None]
    return found or ([_HERE] if extracts else [])


_COPIES = _Form("last", outputs="t target-directory", valued="S suffix")
_EDITS_IN_PLACE = _Form("all", only_with="i in-place inplace w write")
_PACKS = _Form("all", not_with="c t l stdout to-stdout test list", valued="S suffix")
_EDITORS = _Form("all", valued="c S T u U s i")
_SCRIPTED = _Form(
    "all",
    only_with="i",
    valued="e E I r C",
    attached="iMmFlDx0VW",
    script_without="e E",
)
_SED = _Form(
    "all",
    only_with="i in-place",
    valued="e f l expression file line-length",
    attached="i",
    script_without="e f expression file",
)
_AWK = _Form(
    "all",
    only_with="i=inplace include=inplace",
    valued="f file v F e i include assign field-separator source",
    script_without="f file e source",
)

_PACKERS: Final = ("gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd")
_KEEPING: Final = frozenset(
    {"chmod", "chown", "chgrp", "setfacl", "touch", "mkdir", "rmdir", "rename", *_PACKERS}
)
"""Programs that change no content, or put it under another name."""
_APPEND: Final = {"-a", "--append", "-ai", "-ia"}
COPIERS: Final = frozenset({"cp", "mv", "install", "ln", "rsync", "scp"})
"""Programs that put what they are given into a folder under its name."""

_FORMS: Mapping[str, _Form] = {
    **dict.fromkeys(("rm", "rmdir", "unlink", "chmod", "chown", "chgrp", "tee"), _Form("all")),
    **dict.fromkeys(("sponge", "dos2unix", "unix2dos", "rename", "strip"), _Form("all")),
    **dict.fromkeys(("mkdir", "mkfifo", "mknod"), _Form("all", valued="m mode")),
    "setfacl": _Form("all", valued="m M x X"),
    "mktemp": _Form("all", outputs="p tmpdir", valued="suffix"),
    "script": _Form("all", outputs="I log-in O log-out B log-io T log-timing", valued="c command"),
    "truncate": _Form("all", valued="s r size reference"),
    "touch": _Form("all", valued="d t r date reference time"),
    "cp": _COPIES,
    "ln": _COPIES,
    "mv": _Form("all", outputs="t target-directory", valued="S suffix"),
    "install": _Form(
        "last",
        all_with="d directory",
        outputs="t target-directory",
        valued="S suffix m mode o owner g group",
    ),
    "rsync": _Form("last", valued="e f B T"),
    "scp": _Form("last", valued="P i F o c S J l"),
    "split": _Form("last", valued="a b C l n t"),
    "csplit": _Form(outputs="f prefix", valued="b n"),
    "uniq": _Form("last", valued="f s w"),
    "sort": _Form(outputs="o output", valued="k t S T"),
    "patch": _Form(
        "first",
        outputs="o output r reject-file d directory",
        valued="p i D F B V Y z g input strip",
        not_with="C dry-run check",
        writes_here=True,
    ),
    "unzip": _Form(outputs="d", valued="x P", not_with="l p t v z Z", writes_here=True),
    "curl": _Form(
        outputs="o output output-dir D dump-header c cookie-jar",
        valued="A b C d e E F H K m r t T u U w x X y Y z Q",
    ),
    "wget": _Form(
        outputs="O output-document o output-file a append-output P directory-prefix",
        valued="U e T t Q i B l A D X I R",
        writes_here=True,
    ),
    **dict.fromkeys(("sed", "gsed"), _SED),
    **dict.fromkeys(("perl", "ruby"), _SCRIPTED),
    **dict.fromkeys(("awk", "gawk"), _AWK),
    **dict.fromkeys(("ed", "ex", "vi", "vim", "nvim"), _EDITORS),
    **dict.fromkeys(("yq", "clang-format", "autopep8", "gofmt", "shfmt"), _EDITS_IN_PLACE),
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "ps", "set", "ssh", "pytest"), _Form()),
    "prettier": _EDITS_IN_PLACE,
    **dict.fromkeys(_PACKERS, _PACKS),
}
"""By program, with the options of GNU and BSD. An empty form: its ``-o`` names no output."""
