"""Saying lines, and the words of a speaker as they come."""

from agent_tui.plain.lines import LineWriter
from agent_tui.plain.progress import Progress
from agent_tui.plain.sentences import SentenceCutter


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
