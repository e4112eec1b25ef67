"""A change of one file, worked out whole before anything is written."""

from dataclasses import dataclass
from pathlib import Path

from agent_tui.tools.base import Intent, ToolContext
from agent_tui.tools.files.diffs import Diff
from agent_tui.tools.files.text_files import content_fingerprint, replace_file


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a call would do to one file. `before` is None where the file is new."""

    path: Path
    before: bytes | None
    after: bytes
    diff: Diff

    def intent(self, title: str) -> Intent:
        """What is asked about: the file, and the change as a diff."""
        return Intent(
            title=title,
            access="write",
            paths=(self.path,),
            body=self.diff.text,
            body_kind="diff",
            fingerprint=content_fingerprint(self.path, self.before, self.after),
        )

    def write(self, context: ToolContext) -> None:
        """Put the new content in place in one step, and remember it as seen.

        Raises:
            ToolError: The file cannot be written; it is as it was.
        """
        replace_file(self.path, self.after, context.shown(self.path))
        context.files.remember(self.path, self.after)
