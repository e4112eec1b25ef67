"""Distinguishes a call that is only shown from one that is made, by its position and context.

Nothing here depends on the words of a language. Copies are found by their origin (`provenance`);
the rest is decided by marks: quotation marks and line numbers, elements that hold quoted text, and
sentences that introduce the call without being about it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pydantic import JsonValue

from agent_tui.providers.text_tools.offered import WrittenCall


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


QUOTING_ELEMENTS: Final = _words(
    "code command-output content context diff directory document documents example examples file "
    "file-content file-contents file_content file_contents files folder function_result "
    "function_results instructions observation output pre quote result results skill snippet "
    "source summary system-reminder system_reminder text tool_output tool_response tool_responses "
    "tool_result tool_results user"
)
"""Elements that hold quoted text, even if the model forgets to close them."""

THINKING_ELEMENTS: Final = frozenset({"think", "thinking", "reasoning", "thought", "thoughts"})

CALL_FENCES: Final = _words(
    "json jsonc tool_call tool_calls tool_code tool_use tool function_call xml text plaintext"
) | {""}
"""Labels after the marks of a fence whose content is a call."""

MAX_WORDS_CHARS = 240
"""How many characters before a call are examined as its introduction."""
_MAX_PROSE_AFTER_CHARS = 280

_MIN_VALUE_CHARS = 3

_QUOTED_LINE = re.compile(
    r"""
    \s* (?: \d+ \s* (?:\t|\||:|→|-\s)         # numbered, as tools print files
          | [+>|#;%"'“‘«] | \*(?!\*) | -[ ]?            # diffs, block quotes, comments, quotes
          | // | /\* | <!--
        )
  | \t | [ ]{4}                               # indented code
  | \S+:\d+:                                  # grep
    """,
    re.X,
)
_OPEN_QUOTE = re.compile(r"""["'“‘«=(]\s*\Z""")
_SENTENCE_END = re.compile(r"""[.!?。！？]["')]?(?:\s+|\Z)""")
_LABEL = re.compile(r"\s*(\*\*|__)[^\n]+\1\s*")
_POINTING = re.compile(
    r"""
    [:：,\w`] \Z                               # a colon, or a sentence that goes on
  | (?<![^\W\d_]) [^\W\d_]\.[^\W\d_]\. \Z      # an abbreviation of two letters
    """,
    re.X,
)


def is_quoted_line(before: str) -> bool:
    """Whether a line that begins with `before`, the text before a call, only shows the call."""
    return _QUOTED_LINE.match(before) is not None or _OPEN_QUOTE.search(before) is not None


def points_at_something_else(words: str, calls: Iterable[WrittenCall]) -> bool:
    """Whether `words`, the text before `calls`, introduces them as something merely shown.

    Only for calls without tags: between tags that models are trained to write, everything that is
    not a copy is a call, and copies are found by their origin.

    A finished sentence is independent of the call. A sentence that ends in a colon or is
    unfinished, or a heading, introduces what follows; a model that announces a call names the tool
    or what it works on. A bold label on the call's own line is not a sentence.
    """
    line = words.rstrip()[-MAX_WORDS_CHARS:].rpartition("\n")[2]
    if "\n" not in words[len(words.rstrip()) :] and _LABEL.fullmatch(line):
        return False
    is_heading = line.lstrip().startswith("#")
    said = line.strip().strip("*_")
    if not is_heading and _POINTING.search(said) is None:
        return False
    return not _speaks_of(line, calls)


def is_only_joining(words: str) -> bool:
    """Whether `words` between two calls only join them: ``and``."""
    return words.strip().isalpha()


def explains_call(prose: str, calls: Iterable[WrittenCall]) -> bool:
    """Whether `prose` after calls without tags is about something else than what they do.

    One remark may be about anything; longer prose must name the tool, or what it works on.
    """
    if len(prose) > _MAX_PROSE_AFTER_CHARS:
        return True
    return len(_SENTENCE_END.findall(prose)) > 1 and not _speaks_of(prose, calls)


def _speaks_of(prose: str, calls: Iterable[WrittenCall]) -> bool:
    """Whether `prose` names a tool of `calls`, or a text among their arguments."""
    folded = prose.casefold()
    words = frozenset(re.findall(r"\w+", folded))
    return any(
        call.name.casefold() in words
        or any(text.casefold() in folded for text in _texts(call.arguments))
        for call in calls
    )


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str) and len(value.strip()) >= _MIN_VALUE_CHARS:
        yield value.strip()
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
