"""Saying lines, and the words of a speaker: whole sentences, where a reading voice can pause."""

import re

from agent_tui.plain.lines import LineWriter
from agent_tui.plain.progress import Progress

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


class Voice:
    """Says one thing after the other: a line ends what a speaker has begun.

    Args:
        lines: Where to.
        progress: Learns that something was said.
    """

    def __init__(self, lines: LineWriter, progress: Progress) -> None:
        self._lines = lines
        self._progress = progress
        self._cutter = SentenceCutter()
        self._speaker = ""

    @property
    def is_speaking(self) -> bool:
        """Whether a speaker has begun and may go on."""
        return bool(self._speaker)

    def say(self, *texts: str) -> None:
        """Say each of `texts` as a line."""
        self.end()
        self._lines.lines(texts)
        self._progress.spoken()

    def speak(self, speaker: str, text: str) -> None:
        """Say the next words of `speaker`, whole sentences at a time."""
        if speaker != self._speaker:
            self.end()
            text = text.lstrip("\n")
            if not text:
                return
            self._speaker = speaker
            self._lines.piece(f"{speaker} ")
        if whole := self._cutter.add(text):
            self._lines.piece(whole)
            self._progress.spoken()

    def end(self) -> None:
        """Say the rest of a speaker's words."""
        if self._speaker:
            self._speaker = ""
            self._lines.piece(self._cutter.rest())
            self._lines.end_line()
            self._progress.spoken()
