"""One line of metadata for a tool result: what the file is, what was changed, what came since."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.shorten import one_line
from agent_tui.compaction.strategies.hybrid.file_cache import FileCache
from agent_tui.compaction.strategies.hybrid.modifications import (
    Modification,
    Modifications,
    lines_changed,
)
from agent_tui.compaction.tiers.model import ActionKind, Output
from agent_tui.compaction.tiers.tier2 import describe, telling_line
from agent_tui.omissions import recall_mark
from agent_tui.tokens import TokenCounter

MOST_TOKENS: Mapping[ActionKind, int] = MappingProxyType({"read": 140, "write": 46, "edit": 36})
"""Of a line: with the message around it 150 for a read, 50 for a write, 40 for an edit."""

_PATH_CHARS = (80, 40, 24, 12)
"""A path is cut at its front, as far as must be: the end tells files apart."""

_TODO_CHARS = 60
_LEAST_TOKENS = 24
"""Beside the id, which other programs make as long as they like."""


@dataclass(frozen=True, slots=True)
class ResultLines:
    """Writes the lines of one conversation.

    Args:
        files: What is known of files that were read.
        modifications: What was done to files.
        outputs: How many outputs there are, to tell how long ago one was.
        folders: Names of the working folder.
        counter: Measures the lines.
    """

    files: FileCache
    modifications: Modifications
    outputs: int
    folders: Sequence[str]
    counter: TokenCounter

    def line(self, output: Output, entry_id: str) -> str:
        """What stands for `output`; it ends with `entry_id`, by which the original is recalled.

        At most `MOST_TOKENS` for files, unless the id takes nearly all of it. Errors keep their
        message.
        """
        kind = output.action.kind
        if output.has_failed or kind in ("run", "other") or not output.action.path:
            return describe(output, self.outputs, entry_id)
        parts = self._of_read(output) if kind == "read" else self._of_change(output)
        written = (
            self._fitted([f"{subject}: {parts[0]}", *parts[1:]], kind, entry_id)
            for subject in self._subjects(output)
        )
        shortest = ""
        for shortest in written:
            if self._fits(shortest, kind, entry_id):
                break
        return shortest

    def _subjects(self, output: Output) -> Iterator[str]:
        """What was done to what, ever shorter."""
        path = normalise_path(output.action.path, self.folders) or output.action.path
        for path_chars in _PATH_CHARS:
            yield f"{output.action.tool} {_end_of(path, path_chars)}"

    def _of_read(self, output: Output) -> list[str]:
        """What is there, the most needed first: what does not fit is left out from the end."""
        known = self.files.summary(output)
        lines = "1 line" if known.lines == 1 else f"{known.lines:,} lines"
        return [
            output.summary or lines,
            f"hash {known.digest}",
            self._since(output),
            f"has {known.outline}" if known.outline.names else telling_line(output.text),
            f'you said: "{known.description}"' if known.description else "",
        ]

    def _of_change(self, output: Output) -> list[str]:
        file = normalise_path(output.action.path, self.folders)
        change = self.modifications.of(file, output.number)
        return [
            _done(output, change),
            f"call {output.number} of {self.outputs}",
            self._since(output),
            f"for: {one_line(output.todo, _TODO_CHARS)}" if output.todo else "",
        ]

    def _since(self, output: Output) -> str:
        """What has become of the file after `output`; empty where it is as it was."""
        file = normalise_path(output.file_key or output.action.path, self.folders)
        newest = self.modifications.since(file, output.number)
        if newest is None:
            return ""
        count = self.modifications.count_since(file, output.number)
        if newest.kind == "deleted":
            return "deleted since"
        times = "" if count == 1 else f" {count} times"
        return f"{newest.kind} since{times}, last in call {newest.number}"

    def _fitted(self, parts: Sequence[str], kind: ActionKind, entry_id: str) -> str:
        """`parts` in one line, without those at the end that make it too long."""
        present = [part for part in parts if part]
        mark = recall_mark(entry_id)
        while True:
            line = f"({'; '.join(present)}) {mark}"
            if self._fits(line, kind, entry_id) or len(present) == 1:
                return line
            present.pop()

    def _fits(self, line: str, kind: ActionKind, entry_id: str) -> bool:
        mark_tokens = self.counter.count_text(recall_mark(entry_id))
        return self.counter.count_text(line) <= max(MOST_TOKENS[kind], mark_tokens + _LEAST_TOKENS)


def _done(output: Output, change: Modification | None) -> str:
    kind = change.kind if change else "written" if output.action.kind == "write" else "modified"
    lines = change.lines if change else lines_changed(output)
    return f"{kind}, {lines}" if lines else kind


def _end_of(path: str, max_chars: int) -> str:
    flat = " ".join(path.split())
    return flat if len(flat) <= max_chars else f"…{flat[1 - max_chars :]}"
