"""Where the text stands that a program hands to a shell: ``bash -c TEXT``, ``watch WORDS``."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from agent_tui.permissions.shell.words import Word


def script_index(arguments: Sequence[Word]) -> int | None:
    """Where the text behind ``-c`` stands: behind all options (``bash -c -o pipefail TEXT``)."""
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
    """The text that a shell gets: ``script -qc TEXT``, ``su -c TEXT``; empty for none."""
    for word, after in pairwise(arguments):
        if re.fullmatch(r"-[abeflmpqt]*c|--(?:session-)?command", word.value or ""):
            return after.value or ""
        if found := re.fullmatch(r"--(?:session-)?command=(.*)", word.value or "", re.DOTALL):
            return found[1]
    return ""


def _text_of_flock(arguments: Sequence[Word]) -> str:
    """``flock FILE -c TEXT``; else a command is behind the file, with a ``-c`` of its own."""
    at = next((i for i, word in enumerate(arguments) if not (word.value or "").startswith("-")), 0)
    return _text_behind_c(arguments[at + 1 : at + 3])


def _joined_words(arguments: Sequence[Word]) -> str:
    """The words that a shell gets as one text: ``watch -n1 git status``, ``parallel rm ::: x``."""
    texts = [word.value or word.source for word in arguments]
    at = 0
    while at < len(texts) and texts[at].startswith("-"):
        at += 2 if re.fullmatch(r"-[njNIdaLSqC]|--(?:interval|jobs|delay|colsep)", texts[at]) else 1
    end = next((i for i, text in enumerate(texts) if re.fullmatch(r":{3,4}\+?", text)), len(texts))
    return " ".join(texts[at:end])


RUN_TEXT: Mapping[str, Callable[[Sequence[Word]], str]] = MappingProxyType(
    {
        **dict.fromkeys(("script", "su", "runuser", "sg", "newgrp"), _text_behind_c),
        "flock": _text_of_flock,
        **dict.fromkeys(("watch", "viddy", "parallel", "hyperfine", "entr"), _joined_words),
    }
)
"""Programs that hand a text to a shell, and where it stands."""
