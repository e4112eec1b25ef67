"""Commands whose arguments are other commands, and what those would run."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from agent_tui.permissions.shell.git_programs import programs_git_runs
from agent_tui.permissions.shell.words import ASSIGNMENT, OUTPUT_OF_A_COMMAND, CommandPart, Word

_PUTS = re.compile(r"-[0rtpxo]*[IJi].*|--replace.*", re.DOTALL)
"""Options of xargs that set the mark it replaces with what it reads."""
SHELLS = frozenset({"bash", "sh", "dash", "ash", "busybox"})
_OTHER_SHELLS = frozenset({"zsh", "ksh", "mksh", "fish", "csh", "tcsh", "rbash", "pwsh", "nu"})
_STATE_CHANGER_NAMES = """
    trap alias unalias shopt enable hash bind coproc fc complete mapfile readarray
"""
_STATE_CHANGERS = frozenset(_STATE_CHANGER_NAMES.split())
"""Builtins that run text, or change what later commands mean."""


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """`outer` as judged itself, the commands in its arguments, and the scripts in them."""

    outer: CommandPart
    commands: tuple[CommandPart, ...] = ()
    scripts: tuple[str, ...] = ()


def runs_its_words(name: str) -> bool:
    """Whether a program runs its words as a command or as shell text."""
    base = name.rpartition("/")[2].casefold()
    return base in _WRAPPERS or base in RUN_TEXT or base == "eval"


def unwrap(part: CommandPart) -> Unwrapped:
    """What `part` wraps. If that is unknown, `outer` is marked opaque."""
    if part.kind != "command" or not part.words:
        return Unwrapped(part)
    if not part.words[0].is_plain:
        return Unwrapped(_opaque(part, "the program's name is known only at run time"))
    name = part.program.casefold()
    if name in SHELLS:
        return _shell(part)
    if name == "eval":
        return _eval(part)
    if name == "git":
        return _git(part)
    if name in ("find", "fd", "fdfind"):
        return _find(part)
    if name in RUN_TEXT and (text := RUN_TEXT[name](part.arguments)):
        return Unwrapped(part, scripts=(text,))
    if why := _why_untold(name, part):
        return Unwrapped(_opaque(part, why))
    options_with_value = _WRAPPERS.get(name)
    if options_with_value is None or (name == "command" and _only_looks_up(part)):
        return Unwrapped(part)
    return _wrapper(part, name, options_with_value)


def _why_untold(name: str, part: CommandPart) -> str:
    """Why the words of `part` do not show what it runs; empty if they do."""
    if name in _OTHER_SHELLS and [word.value for word in part.arguments] != ["--version"]:
        return f"{name} does not read text the way bash does"
    if name in ("source", ".") and not all(_is_file(word) for word in part.arguments):
        return f"the command does not show what {name} runs"
    return f"{name} changes what later commands do" if name in _STATE_CHANGERS else ""


def _only_looks_up(part: CommandPart) -> bool:
    """Whether ``command`` only reports where a program is."""
    return bool(part.arguments) and part.arguments[0].value in ("-v", "-V")


def _wrapper(part: CommandPart, name: str, options_with_value: str) -> Unwrapped:
    """Unwrap a command that runs the rest of its words: ``timeout 5 make``, ``env A=1 make``."""
    words = list(part.arguments)
    assignments: list[str] = []
    values: list[Word] = []
    is_plain = name in _PLAIN_WRAPPERS and not part.assignments
    while words and words[0].value is not None:
        value = words[0].value
        if value == "--":
            words.pop(0)
            break
        if value.startswith("-") and len(value) > 1:
            is_plain = is_plain and value in _PLAIN_OPTIONS
            if name == "env" and not re.fullmatch("-[i0]|-[uC].*|--(?:unset|chdir).*", value):
                return Unwrapped(_opaque(part, f"the command does not show what env {value} does"))
            words.pop(0)
            if _takes_next(value, options_with_value) and words:
                words.pop(0)
        elif name in ("env", "sudo", "doas") and ASSIGNMENT.match(value):
            assignments.append(words[0].source)
            values.append(replace(words.pop(0), value=value.partition("=")[2]))
        else:
            break
    if name in _TAKES_ONE_FIRST and words:
        words.pop(0)
    if not words:
        return Unwrapped(replace(part, is_wrapped_plainly=False))
    if name == "xargs":
        words = _with_what_is_read(part, words)
    outer = replace(part, is_wrapped_plainly=is_plain, note="wrapper")
    inner = CommandPart(
        source=" ".join(word.source for word in words),
        words=tuple(words),
        assignments=(*part.assignments, *assignments),
        values=(*part.values, *values),
        wrapper=name,
        is_wrapped_plainly=is_plain,
        reads_pipe=part.reads_pipe,
        input=part.input,
    )
    return Unwrapped(outer, (inner,))


def _with_what_is_read(part: CommandPart, words: list[Word]) -> list[Word]:
    """The command xargs runs. Its input may be part of any word that contains its mark."""
    options = [word.value or "" for word in part.arguments[: -len(words)]]
    puts = next((at for at, option in enumerate(options) if _PUTS.fullmatch(option)), None)
    if puts is None:
        return [*words, Word("...", None)]
    if "{}" in "".join(options[puts : puts + 2]) or options[puts] in ("-i", "--replace"):
        return _with_unknown(words)
    return [words[0], *(Word(word.source, None) for word in words[1:])]


def _with_unknown(words: Sequence[Word]) -> list[Word]:
    """The words of a command, in which the value of ``{}`` is known only at run time."""
    return [Word(word.source, None) if "{}" in word.source else word for word in words]


def _takes_next(option: str, options_with_value: str) -> bool:
    """Whether the value of an option is the next word: ``-n``, ``-rn``, not ``-n1``."""
    options = options_with_value.split()
    if option.startswith("--") or option in options:
        return option in options
    first = next((i for i, c in enumerate(option[1:], 1) if f"-{c}" in options), 0)
    return first == len(option) - 1 > 0


def _shell(part: CommandPart) -> Unwrapped:
    """Unwrap a shell: ``bash -c TEXT`` is split; a script from a file or from stdin is opaque."""
    arguments = part.arguments
    at = script_index(arguments)
    script = arguments[at] if at is not None else None
    if script is not None and script.value is not None and not script.is_pattern:
        is_alone = arguments[0].value == "-c" and len(arguments) == 2
        outer = replace(part, note="wrapper", is_wrapped_plainly=is_alone and not part.assignments)
        return Unwrapped(outer, scripts=(script.value,))
    if len(arguments) == 1 and arguments[0].value in ("--version", "--help"):
        return Unwrapped(part)
    if len(arguments) == 2 and arguments[0].value == "-n" and _is_file(arguments[1]):
        return Unwrapped(part)  # -n only checks the syntax
    is_file = bool(arguments) and not (arguments[0].value or "-").startswith("-")
    if is_file and _is_file(arguments[0]) and part.program != "busybox":
        return Unwrapped(part)
    return Unwrapped(_opaque(part, f"the command does not show what {part.name} runs"))


def _eval(part: CommandPart) -> Unwrapped:
    values = [word.value for word in part.arguments]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Unwrapped(_opaque(part, "eval runs text known only at run time"))
    outer = replace(part, note="wrapper", is_wrapped_plainly=False)
    return Unwrapped(outer, scripts=(" ".join(known),))


def _git(part: CommandPart) -> Unwrapped:
    """Unwrap what options of git name: ``git rebase --exec make``."""
    programs = list(programs_git_runs(part.arguments))
    known = [program for program in programs if program is not None]
    unknown = CommandPart(part.source, (), kind="opaque", note=_MAY_NAME_PROGRAM, wrapper="git")
    commands = (unknown,) if len(known) < len(programs) else ()
    return Unwrapped(part, commands, scripts=tuple(filter(str.strip, known)))


def _find(part: CommandPart) -> Unwrapped:
    """Unwrap ``find -exec CMD ... ;`` and ``fd -x CMD``: each command, with arguments unknown."""
    commands: list[CommandPart] = []
    words = part.arguments
    index = 0
    while index < len(words):
        option = words[index].value or ""
        if part.name.startswith("fd") and re.fullmatch(r"-\w*[xX].+|--exec(?:-batch)?=.*", option):
            return Unwrapped(
                _opaque(part, f"the command that {option} runs is not a separate word")
            )
        if option in _EXEC_OPTIONS:
            end = index + 1
            while end < len(words) and words[end].value not in (";", "+"):
                end += 1
            if inner := words[index + 1 : end]:
                source = " ".join(word.source for word in inner)
                given = _with_unknown(inner)
                if part.name != "find" and all("{}" not in word.source for word in inner):
                    given.append(Word("{}", None))  # fd appends the path it finds
                commands.append(
                    CommandPart(source, tuple(given), wrapper=part.name, is_wrapped_plainly=False)
                )
            index = end
        index += 1
    return Unwrapped(part, tuple(commands))


def _is_file(word: Word) -> bool:
    return word.is_plain and word.value != OUTPUT_OF_A_COMMAND


def _opaque(part: CommandPart, note: str) -> CommandPart:
    return replace(part, kind="opaque", note=note)


_MAY_NAME_PROGRAM = "a word known only at run time may have git run a program"
_EXEC_OPTIONS = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}
)
_TAKES_ONE_FIRST = frozenset(
    {"timeout", "gtimeout", "flock", "chroot", "taskset", "chrt", "setarch", "perf"}
)
_PLAIN_WRAPPERS = frozenset({"time", "timeout", "nice", "nohup", "command", "stdbuf", "env"})
"""Wrappers that give the wrapped command no more power than it has alone."""
_PLAIN_OPTIONS = frozenset({"-p", "-k", "-s", "-n", "-i", "-oL", "-eL", "--preserve-status"})

_PLAIN_NAMES = """
    nohup setsid command builtin chroot unshare taskset chrt numactl setarch fakeroot firejail
    rlwrap valgrind perf catchsegv unbuffer
"""
_WRAPPERS: Mapping[str, str] = {
    **dict.fromkeys(_PLAIN_NAMES.split(), ""),
    **dict.fromkeys(("timeout", "gtimeout"), "-k -s --kill-after --signal"),
    "time": "-f -o",
    "nice": "-n",
    "ionice": "-c -n -p",
    "exec": "-a",
    "env": "-u -C --unset --chdir",
    "stdbuf": "-i -o -e",
    "sudo": "-u -g -C -h -p -r -t -U -D",
    "doas": "-u -C",
    "xargs": "-n -P -I -J -R -S -L -d -E -s -a --max-args --max-procs --max-chars --delimiter"
    " --arg-file --process-slot-var",
    "strace": "-e -o -p",
    "ltrace": "-e -o",
    "flock": "-w -E",
    "nsenter": "-t",
    "caffeinate": "-t -w",
    "xvfb-run": "-n -s -e -f -p -w",
    "ssh-agent": "-a -t -E -P",
    "runuser": "-u -g -G -s",
}
"""Wrappers and their options that take a word as value."""


def script_index(arguments: Sequence[Word]) -> int | None:
    """The index of the text after ``-c``, after all options (``bash -c -o pipefail TEXT``)."""
    is_text = False
    option_names = 0
    for index, word in enumerate(arguments):
        value = word.value or ""
        if option_names:
            option_names -= 1
        elif re.fullmatch(r"[-+][a-zA-NP-Z]+", value):
            is_text = is_text or (value[0] == "-" and "c" in value)
            option_names = value.count("o")
        elif value not in ("--norc", "--noprofile", "--posix", "--login"):
            return index if is_text and not value.startswith(("-", "+")) else None
    return None


def _text_behind_c(arguments: Sequence[Word]) -> str:
    """The text passed to a shell: ``script -qc TEXT``, ``su -c TEXT``; empty if none."""
    for word, after in pairwise(arguments):
        if re.fullmatch(r"-[abeflmpqt]*c|--(?:session-)?command", word.value or ""):
            return after.value or ""
        if found := re.fullmatch(r"--(?:session-)?command=(.*)", word.value or "", re.DOTALL):
            return found[1]
    return ""


def _text_of_flock(arguments: Sequence[Word]) -> str:
    """The text of ``flock FILE -c TEXT``; otherwise a command follows the file."""
    at = next((i for i, word in enumerate(arguments) if not (word.value or "").startswith("-")), 0)
    return _text_behind_c(arguments[at + 1 : at + 3])


def _join_words(arguments: Sequence[Word]) -> str:
    """The words a shell gets as one text: ``watch -n1 git status``, ``parallel rm ::: x``."""
    texts = [word.value or word.source for word in arguments]
    at = 0
    while at < len(texts) and texts[at].startswith("-"):
        at += 2 if re.fullmatch(r"-[njNIdaLSqC]|--(?:interval|jobs|delay|colsep)", texts[at]) else 1
    end = next((i for i, text in enumerate(texts) if re.fullmatch(r":{3,4}\+?", text)), len(texts))
    return " ".join(texts[at:end])


RUN_TEXT: Mapping[str, Callable[[Sequence[Word]], str]] = {
    **dict.fromkeys(("script", "su", "runuser", "sg", "newgrp"), _text_behind_c),
    "flock": _text_of_flock,
    **dict.fromkeys(("watch", "viddy", "parallel", "hyperfine", "entr"), _join_words),
}
"""Programs that pass text to a shell, and how to find it."""
