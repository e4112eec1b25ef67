"""What a call may begin with, seen while the reply is still coming."""

import re
from collections.abc import Iterable, Sequence

from agent_tui.messages import ToolSpec
from agent_tui.providers.text_tools.forms import CALL_OBJECT, CALL_PLACE, TAG_OPENER
from agent_tui.providers.text_tools.quoting import CALL_FENCES

LOOK_BACK_CHARS = 4
"""How many characters before a place say whether a call may begin there."""

_NAMESPACES = ("", "functions.", "default_api.", "tool.", "tools.", "api.")
_LINE = r"(?:^[ ]{0,3})"
_MARKS = r"(?:`{3,}|~{3,})"
_SPACE_IN_LINE = r"[^\S\n]*"
_MAX_PARTIAL_TAG_CHARS = 60


class Openers:
    """Finds every place where `scan` may find a call, and some where it will not."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        names = [space + tool.name for tool in tools for space in _NAMESPACES]
        infos = "|".join(sorted(CALL_FENCES, key=len, reverse=True))
        begun_fence = rf"{_MARKS}[ ]*(?:{infos}){_SPACE_IN_LINE}\n\s*+"
        callees = "|".join(map(re.escape, names))
        before_callee = r"(?:\[\s{0,80})?(?:print\s?\(\s{0,80})?"
        python = rf"{before_callee}(?:{callees})(?:\.call)?\("
        self._whole = re.compile(
            rf"""
              {TAG_OPENER}
            | {CALL_PLACE}{CALL_OBJECT}
            | {_LINE}{python}
            | {_LINE}{begun_fence}(?:{CALL_OBJECT}|{python}|{TAG_OPENER})
            """,
            re.X | re.I | re.M,
        )
        partial_object = r"""[\[{](?:\s{0,80}[\[{]){0,3}\s{0,80}(?:["']\w{0,20})?"""
        partial_callee = _any_beginning([*names, "print(", "functools"])
        partial_python = rf"{before_callee}{partial_callee}(?:\.call?|\.ca?)?"
        partial_tag = r"(?:<[|｜]?[\w▁:]{0,40}[|｜]?|\[[a-z_]{0,11})"
        self._partial = re.compile(
            rf"""
            (?: {CALL_PLACE}{partial_object}
              | {_LINE}(?:{partial_python})?
              | {_LINE}(?:`+|~+)[^`\n]*
              | {_LINE}{begun_fence}(?:{partial_object}|{partial_python}|{partial_tag})?
            )\Z
            """,
            re.X | re.I | re.M,
        )
        self._partial_tag = re.compile(rf"{partial_tag}\Z", re.I)

    def first(self, text: str, begin: int) -> int | None:
        """Where the first opener from `begin` on is."""
        match = self._whole.search(text, begin)
        return match.start() if match else None

    def may_begin(self, text: str, begin: int) -> int:
        """From where on the end of `text` may yet become an opener; its length where nothing."""
        tag = self._partial_tag.search(text, max(begin, len(text) - _MAX_PARTIAL_TAG_CHARS))
        line = self._partial.search(text, begin)
        return min([match.start() for match in (tag, line) if match], default=len(text))


def _any_beginning(words: Iterable[str]) -> str:
    """A pattern for every beginning of one of `words`, the empty one included."""
    return "(?:" + "|".join(_beginnings(word) for word in sorted(set(words))) + ")"


def _beginnings(word: str) -> str:
    pattern = ""
    for character in reversed(word):
        pattern = f"(?:{re.escape(character)}{pattern})?"
    return pattern
