"""Commands whose arguments are other commands: what they would run in turn."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from agent_tui.agent.shell_words import CommandPart, Word

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "fish", "ash", "busybox"})
_STATE_CHANGER_NAMES = """
    trap alias unalias shopt enable hash bind coproc fc complete mapfile readarray
"""
_STATE_CHANGERS = frozenset(_STATE_CHANGER_NAMES.split())
"""Builtins that run text, or change what later commands mean."""


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """`outer` as judged itself, the commands in its arguments, and scripts in them."""

    outer: CommandPart
    commands: tuple[CommandPart, ...] = ()
    scripts: tuple[str, ...] = ()


def unwrap(part: CommandPart) -> Unwrapped:
    """What `part` wraps. Where that cannot be told, `outer` is marked opaque."""
    if part.kind != "command" or not part.words:
        return Unwrapped(part)
    if not part.words[0].is_plain:
        return Unwrapped(_opaque(part, "the program's name is only known when it runs"))
    name = part.name.rpartition("/")[2]
    if name in _SHELLS:
        return _shell(part)
    if name == "eval":
        return _eval(part)
    if name in ("source", ".") and not all(word.is_plain for word in part.arguments):
        return Unwrapped(_opaque(part, f"what {name} would run is not in the command"))
    if name in ("find", "fd", "fdfind"):
        return _find(part)
    if name in _STATE_CHANGERS:
        return Unwrapped(_opaque(part, f"{name} changes what later commands do"))
    skip = _WRAPPERS.get(name)
    if skip is None:
        return Unwrapped(part)
    if name == "command" and part.arguments and part.arguments[0].value in ("-v", "-V"):
        return Unwrapped(part)
    return _wrapper(part, name, skip)


def _wrapper(part: CommandPart, name: str, options_with_value: str) -> Unwrapped:
    """A command that runs the rest of its words: ``timeout 5 make``, ``env A=1 make``."""
    words = list(part.arguments)
    assignments: list[str] = []
    is_plain = name in _PLAIN_WRAPPERS
    while words and words[0].value is not None:
        value = words[0].value
        if value == "--":
            words.pop(0)
            break
        if value.startswith("-") and len(value) > 1:
            is_plain = is_plain and value in _PLAIN_OPTIONS
            if name == "env" and value in ("-S", "--split-string"):
                return Unwrapped(_opaque(part, "env -S splits text into a command"))
            words.pop(0)
            if value in options_with_value.split() and words:
                words.pop(0)
        elif name in ("env", "sudo", "doas") and _ASSIGNMENT.match(value):
            assignments.append(words.pop(0).source)
        else:
            break
    if name in _TAKES_ONE_FIRST and words:
        words.pop(0)
    if not words:
        return Unwrapped(replace(part, is_wrapped_plainly=False))
    if name == "xargs":
        words.append(Word("...", None))
    outer = replace(part, is_wrapped_plainly=is_plain, note="wrapper")
    inner = CommandPart(
        source=" ".join(word.source for word in words),
        words=tuple(words),
        assignments=(*part.assignments, *assignments),
        wrapper=name,
        is_wrapped_plainly=is_plain,
    )
    return Unwrapped(outer, (inner,))


def _shell(part: CommandPart) -> Unwrapped:
    """``bash -c TEXT`` is split in turn; a script from a file or from stdin is opaque."""
    arguments = part.arguments
    for index, word in enumerate(arguments):
        if word.value is None:
            break
        if re.fullmatch(r"-[a-z]*c", word.value) and index + 1 < len(arguments):
            script = arguments[index + 1]
            if script.value is None or script.is_pattern:
                break
            is_plain = index == 0 and word.value == "-c" and len(arguments) == 2
            outer = replace(part, note="wrapper", is_wrapped_plainly=is_plain)
            return Unwrapped(outer, scripts=(script.value,))
        if not word.value.startswith("-"):
            break
    if len(arguments) == 1 and arguments[0].value in ("--version", "--help"):
        return Unwrapped(part)
    is_file = bool(arguments) and not (arguments[0].value or "-").startswith("-")
    if is_file and arguments[0].is_plain:
        return Unwrapped(part)
    return Unwrapped(_opaque(part, f"what {part.name} would run is not in the command"))


def _eval(part: CommandPart) -> Unwrapped:
    values = [word.value for word in part.arguments]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Unwrapped(_opaque(part, "eval runs text that is only known when it runs"))
    outer = replace(part, note="wrapper", is_wrapped_plainly=False)
    return Unwrapped(outer, scripts=(" ".join(known),))


def _find(part: CommandPart) -> Unwrapped:
    """``find -exec CMD ... ;`` and ``fd -x CMD``: each command, with arguments unknown."""
    commands: list[CommandPart] = []
    words = part.arguments
    index = 0
    while index < len(words):
        if words[index].value in _EXEC_OPTIONS:
            end = index + 1
            while end < len(words) and words[end].value not in (";", "+"):
                end += 1
            inner = [
                Word(w.source, None) if "{}" in w.source else w for w in words[index + 1 : end]
            ]
            if inner:
                source = " ".join(word.source for word in words[index + 1 : end])
                commands.append(
                    CommandPart(source, tuple(inner), wrapper=part.name, is_wrapped_plainly=False)
                )
            index = end
        index += 1
    if not commands:
        return Unwrapped(part)
    return Unwrapped(replace(part, is_wrapped_plainly=False), tuple(commands))


def _opaque(part: CommandPart, note: str) -> CommandPart:
    return replace(part, kind="opaque", note=note)


_EXEC_OPTIONS = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}
)
_TAKES_ONE_FIRST = frozenset({"timeout", "flock", "chroot", "taskset"})
_PLAIN_WRAPPERS = frozenset({"time", "timeout", "nice", "nohup", "command", "stdbuf", "env"})
"""Wrappers that give the command inside no more power than it has alone."""
_PLAIN_OPTIONS = frozenset({"-p", "-k", "-s", "-n", "-i", "-oL", "-eL", "--preserve-status"})

_WRAPPERS: Mapping[str, str] = MappingProxyType(
    {
        "time": "-f -o",
        "timeout": "-k -s --kill-after --signal",
        "nice": "-n",
        "ionice": "-c -n -p",
        "nohup": "",
        "setsid": "",
        "command": "",
        "builtin": "",
        "exec": "-a",
        "env": "-u -C --unset --chdir",
        "stdbuf": "-i -o -e",
        "sudo": "-u -g -C -h -p -r -t -U -D",
        "doas": "-u -C",
        "xargs": "-n -P -I -i -L -d -E -s -a --max-args --max-procs --replace --delimiter",
        "parallel": "-j --jobs",
        "watch": "-n --interval",
        "strace": "-e -o -p",
        "ltrace": "-e -o",
        "flock": "-w -E",
        "chroot": "",
        "unshare": "",
        "nsenter": "-t",
        "taskset": "",
        "busybox": "",
        "caffeinate": "",
        "unbuffer": "",
    }
)
"""Wrappers and their options that take a word of their own."""
