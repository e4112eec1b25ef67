"""A change to one file, fully determined before anything is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.omissions import marks_in
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.tools.base import Intent, ToolContext
from agent_tui.tools.files.diffs import Diff
from agent_tui.tools.files.text_files import content_fingerprint, remove_file, replace_file


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a call would do to one file.

    `before` is None if the file is new, `after` if it is deleted.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    diff: Diff

    @property
    def verb(self) -> str:
        """What happens to the file, as a past participle."""
        if self.after is None:
            return "deleted"
        return "added" if self.before is None else "updated"

    def intent(self, title: str) -> Intent:
        """The intent for approval: the file, and the change as a diff."""
        return intent_for(title, (self,))

    def write(self, context: ToolContext) -> None:
        """Write the new content in one step, and remember it as seen.

        Raises:
            ToolError: The file cannot be written; it is unchanged.
        """
        if self.after is None:
            remove_file(self.path, context.display_name(self.path))
            return
        replace_file(self.path, self.after, context)
        context.files.remember(self.path, digest_of(self.after))


def intent_for(title: str, changes: Sequence[FileChange]) -> Intent:
    """The intent for several changes at once: the files, and one diff of them all."""
    return Intent(
        title=title,
        access="write",
        paths=tuple(change.path for change in changes),
        body="".join(change.diff.text for change in changes),
        body_kind="diff",
        fingerprint=content_fingerprint(
            (change.path, change.before, change.after) for change in changes
        ),
    )


def check_whole(new: str, old: str, name: str) -> None:
    """Refuse `new` if it has a mark for omitted text that `old` does not have.

    Args:
        new: The text to write.
        old: The file's current text; empty if it is new.
        name: The argument that held `new`, for the error.

    Raises:
        ToolError: Names the mark, and how to get the omitted text.
    """
    marks = marks_in(new)
    known = set(marks_in(old)) if marks else set[str]()
    if mark := next((mark for mark in marks if mark not in known), ""):
        raise ToolError(
            f"{name} contains {mark[-200:]!r}, a placeholder for text left out of this "
            "conversation. Read the file, or recall the original, and give the whole text. "
            "Nothing was written."
        )
