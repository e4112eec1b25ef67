"""How a file would change if the user goes back."""

from dataclasses import dataclass

from agent_tui.commands.core.front import PageSection, Row
from agent_tui.commands.core.short_words import count_text
from agent_tui.safe_text import safe_text
from agent_tui.tools.files.diffs import line_counts


@dataclass(frozen=True, slots=True)
class FileDifference:
    """How one file would change.

    Attributes:
        title: The file.
        diff: A unified diff; may be empty.
        note: What would happen to it; empty if the diff says it.
    """

    title: str
    diff: str
    note: str = ""

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of added and removed lines."""
        return line_counts(self.diff)

    @property
    def section(self) -> PageSection:
        """What fronts without a screen show of it."""
        added, removed = self.counts
        heading = f"{self.title} (+{count_text(added, 'line')}, -{count_text(removed, 'line')})"
        lines: list[Row] = [("", safe_text(self.note))] if self.note else []
        lines += [("", line) for line in self.diff.rstrip("\n").split("\n")[2:]]
        return PageSection(heading, tuple(lines))
