"""Lines for a screen reader: harmless, in whole sentences, with long work and diffs in words."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

from agent_tui.commands.core.short_words import count_text
from agent_tui.safe_text import safe_text
from agent_tui.secret_text import mask_values


class LineWriter:
    """Writes harmless lines: nothing steers the terminal, and no key is shown.

    Args:
        out: Receives the lines.
        secrets: Returns the present keys, which must not be shown.
    """

    def __init__(self, out: TextIO, secrets: Callable[[], Iterable[str]]) -> None:
        self._out = out
        self._secrets = secrets
        self._is_line_open = False

    def line(self, text: str = "") -> None:
        """Write `text` as a line, or as several if it has newlines."""
        self.end_line()
        self._write(f"{text}\n")

    def lines(self, texts: Iterable[str]) -> None:
        """Write each of `texts` as a line."""
        for text in texts:
            self.line(text)

    def piece(self, text: str) -> None:
        """Write the next part of a line; a newline in it ends the line."""
        if text:
            self._write(text)
            self._is_line_open = not text.endswith("\n")

    def end_line(self) -> None:
        """End the line that `piece` began."""
        if self._is_line_open:
            self._is_line_open = False
            self._write("\n")

    def _write(self, text: str) -> None:
        self._out.write(safe_text(mask_values(text, self._secrets())))
        self._out.flush()


FIRST_AFTER_S = 5.0
"""Seconds of silence before the first line about long work; doubled before each further line."""

_LAST_AFTER_S = 40.0

WAITING = "Waiting for the model."


class Progress:
    """Tracks what is running, and when that deserves a line.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._now = ""
        self._said = ""
        self._pause_s = FIRST_AFTER_S
        self._quiet_since_s = clock()

    def doing(self, text: str) -> None:
        """Set what is running now; empty for nothing."""
        self._now = text

    def note_line(self) -> None:
        """Note that something else was written, which shows that the program is alive."""
        self._quiet_since_s = self._clock()
        self._pause_s = FIRST_AFTER_S

    def due(self) -> str:
        """The line to write now; empty for none."""
        if self._now in ("", self._said) or self._clock() - self._quiet_since_s < self._pause_s:
            return ""
        self._said = self._now
        self._quiet_since_s = self._clock()
        self._pause_s = min(self._pause_s * 2, _LAST_AFTER_S)
        return self._now


_SENTENCE_END = re.compile(r"[.!?\u2026]+[\"')\]*_`\u201d\u2019]*[ \t]+|[\u3002\uff01\uff1f]+")
_FENCES = ("```", "~~~")

MOST_HELD_CHARS = 2_000
"""Most characters held of a line; longer ones are written in parts, split at a blank."""


class SentenceCutter:
    """Holds text back until a sentence or a line is complete. The text itself does not change.

    Lines of code blocks are not split into sentences.
    """

    def __init__(self) -> None:
        self._held = ""
        self._line_start = ""
        self._is_code = False

    def add(self, text: str) -> str:
        """Add text; returns what is now complete, or empty."""
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
        """The rest at the end of the text."""
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
    """Writes texts in order: a line ends what a speaker began.

    Args:
        lines: Receives the text.
        progress: Is told that something was written.
    """

    def __init__(self, lines: LineWriter, progress: Progress) -> None:
        self._lines = lines
        self._progress = progress
        self._cutter = SentenceCutter()
        self._speaker = ""

    @property
    def is_speaking(self) -> bool:
        """Whether a speaker has begun and may continue."""
        return bool(self._speaker)

    def say(self, *texts: str) -> None:
        """Write each of `texts` as a line."""
        self.end()
        self._lines.lines(texts)
        self._progress.note_line()

    def speak(self, speaker: str, text: str) -> None:
        """Write the next text of `speaker`, one or more whole sentences at a time."""
        if speaker != self._speaker:
            self.end()
            text = text.lstrip("\n")
            if not text:
                return
            self._speaker = speaker
            self._lines.piece(f"{speaker} ")
        if whole := self._cutter.add(text):
            self._lines.piece(whole)
            self._progress.note_line()

    def end(self) -> None:
        """Write the rest of a speaker's text."""
        if self._speaker:
            self._speaker = ""
            self._lines.piece(self._cutter.rest())
            self._lines.end_line()
            self._progress.note_line()


_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def diff_words(diff: str) -> list[str]:
    """A unified diff as lines: the file, the number of changes, then each changed line.

    ``Line 6 added:`` counts in the new file, ``removed`` in the old one. Unchanged lines are left
    out; everything else in the diff is kept.
    """
    changes = list(_changes(diff))
    added = sum(label.endswith(" added:") for label, _ in changes)
    removed = sum(label.endswith(" removed:") for label, _ in changes)
    counts = f"{count_text(added, 'line')} added, {count_text(removed, 'line')} removed."
    files = [text for label, text in changes if label == "File:"]
    if len(files) == 1:
        changes = [change for change in changes if change[0] != "File:"]
        counts = f"{_safe_line(files[0])}: {counts}"
    return [counts, *(f"{label} {_safe_line(text)}" for label, text in changes)]


def _changes(diff: str) -> Iterator[tuple[str, str]]:
    """The changes, each as a label and a text."""
    old = new = old_end = new_end = 0
    old_name = ""
    for line in diff.removesuffix("\n").split("\n"):
        mark, text = line[:1], line[1:]
        if mark == "\\":
            yield "Note:", text.strip()
        elif old < old_end or new < new_end:
            if mark == "+":
                yield f"Line {new} added:", text
            elif mark == "-":
                yield f"Line {old} removed:", text
            old, new = old + (mark != "+"), new + (mark != "-")
        elif (match := _HUNK.match(line)) is not None:
            old, new = int(match[1]), int(match[3])
            old_end, new_end = old + int(match[2] or 1), new + int(match[4] or 1)
        elif line.startswith("--- "):
            old_name = line[4:]
        elif line.startswith("+++ "):
            name = line[4:]
            yield "File:", name if name == old_name else f"{old_name} renamed to {name}"
        elif line:
            yield "Also:", line


def _safe_line(text: str) -> str:
    return safe_text(text, keep_newlines=False)
