"""The shell commands that recorded agents ran, and which of them only read the workspace.

A command counts as one that only reads when every command in it is named in ``_READERS`` and used
without the words that make it write or run something, and when it redirects nothing but to
``/dev/null``. This is told here by simple text, apart from the engine that is measured with it.
Commands that name keys, or folders outside of the workspace, do not count: these may well ask.
"""

import json
import re
import shlex
from collections.abc import Iterator
from typing import cast

from tests.support.trajectories import trajectories, trajectory

_READER_NAMES = """
    ls cat head tail wc grep egrep rg find sed awk cut sort uniq tr nl diff tree file stat du df pwd
    cd echo printf true test [ which basename dirname realpath date git jq xxd od strings column
    seq xargs
"""
_READERS = frozenset(_READER_NAMES.split())
_GIT_READER_NAMES = "status diff log show blame ls-files rev-parse branch grep"
_GIT_READERS = frozenset(_GIT_READER_NAMES.split())
_WRITING_WORDS = re.compile(
    r"-i\b|--in-place|-delete|-exec|-fprint|-o$|--output|-D|-[dmM]$|-b$|--pre\b|system\(|w "
)
_WRITING_SCRIPT = re.compile(r"(?:^|;|\})\s*[we]\s|/[gp]*[we]|system|>")
_SEPARATORS = re.compile(r"[;&|\n()]+")
_FENCE = re.compile(r"```(?:bash|mswea_bash_command)\n(.*?)\n```", re.DOTALL)
_ELSEWHERE = re.compile(r"(?:^|[\s\"'=])(?:~|/(?!dev/null)|\.\./)|\$HOME|\.env\b|secret|\.npmrc")


def recorded_commands() -> Iterator[str]:
    """Each command of every recorded run once, with the folder it ran in taken out."""
    seen: set[str] = set()
    for name in trajectories():
        text = trajectory(name).read_text("utf-8")
        root = _root(text)
        for command in _commands(_parsed(text)):
            local = command.replace(f"{root}/", "./").replace(root, ".").strip()
            if local and local not in seen:
                seen.add(local)
                yield local


def only_reads_the_workspace(command: str) -> bool:
    """Whether `command` reads files of the workspace and does nothing else."""
    text = re.sub(r"2>&1|[12&]?>\s*/dev/null|(?m:^\s*#.*$)", " ", command)
    if _ELSEWHERE.search(text) or "`" in text or "$(" in text or "<<" in text:
        return False
    try:
        lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
        lexer.commenters = ""
        words = list(lexer)
    except ValueError:
        return False
    parts: list[list[str]] = [[]]
    for word in words:
        if _SEPARATORS.fullmatch(word):
            parts.append([])
        elif set(word) & set("<>") and set(word) <= set("<>&|"):
            return False
        else:
            parts[-1].append(word)
    named = [part for part in parts if part]
    return bool(named) and all(map(_is_reader, named))


def _is_reader(words: list[str]) -> bool:
    name, others = words[0], words[1:]
    if name == "xargs":
        inner = [word for word in others if not word.startswith("-")]
        return bool(inner) and inner[0] != "xargs" and _is_reader(inner)
    if name == "git":
        verbs = [word for word in others if not word.startswith("-")]
        if not verbs or verbs[0] not in _GIT_READERS or (verbs[0] == "branch" and len(verbs) > 1):
            return False
    is_plain = not any(_WRITING_WORDS.match(word) for word in others if word.startswith("-"))
    if name in ("sed", "awk") and _WRITING_SCRIPT.search(" ".join(others)):
        return False
    return name in _READERS and (is_plain or name in ("grep", "rg", "head", "tail", "echo", "ls"))


def _parsed(text: str) -> list[object]:
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _root(text: str) -> str:
    found = re.search(r'"cwd":\s*"([^"]+)"', text)
    return found[1] if found else "/testbed"


def _commands(value: object) -> Iterator[str]:
    """Commands of bash calls, wherever they stand, and of fenced blocks of replies."""
    if isinstance(value, list):
        for inner in cast(list[object], value):
            yield from _commands(inner)
    elif isinstance(value, dict):
        entry = cast(dict[str, object], value)
        if entry.get("role") == "assistant" and isinstance(entry.get("content"), str):
            yield from _FENCE.findall(str(entry["content"]))
        for key, inner in entry.items():
            if key == "command" and isinstance(inner, str) and "\u2190" not in inner:
                yield inner
            elif key != "extra":
                yield from _commands(inner)
