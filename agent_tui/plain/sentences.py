"""Streamed text cut where a reading voice can pause: after sentences and lines."""

import re

_SENTENCE_END = re.compile(r"[.!?\u2026]+[\"')\]*_`\u201d\u2019]*[ \t]+|[\u3002\uff01\uff1f]+")
_FENCES = ("```", "~~~")

MOST_HELD_CHARS = 2_000
"""Of a line; a longer one comes in pieces, wherever it has a blank."""


class SentenceCutter:
    """Holds text back until a sentence or a line is whole. What comes out is what went in.

    Lines of code blocks are not cut at sentences.
    """

    def __init__(self) -> None:
        self._held = ""
        self._line_start = ""
        self._is_code = False

    def add(self, text: str) -> str:
        """Take more text; returns what is whole now, empty if nothing is."""
        self._held += text
        *lines, last = self._held.split("\n")
        for line in lines:
            self._end_line(line)
        end = 0
        if len(last) > MOST_HELD_CHARS:
            end = last.rfind(" ") + 1 or len(last)
        elif not self._is_code and not self._begins_fence(last):
            ends = [match.end() for match in _SENTENCE_END.finditer(last)]
            end = ends[-1] if ends else 0
        self._line_start += last[:end]
        self._held = last[end:]
        return "".join(f"{line}\n" for line in lines) + last[:end]

    def rest(self) -> str:
        """What is left at the end of the text."""
        rest, self._held = self._held, ""
        self._line_start, self._is_code = "", False
        return rest

    def _end_line(self, line: str) -> None:
        if self._begins_fence(line):
            self._is_code = not self._is_code
        self._line_start = ""

    def _begins_fence(self, line: str) -> bool:
        return (self._line_start + line).lstrip().startswith(_FENCES)
