"""New text for a file must be the text itself, not a mark that stood for it in the context."""

from agent_tui.omissions import marks_in
from agent_tui.tools.base import ToolError


def check_whole(new: str, old: str, name: str) -> None:
    """Refuse `new` where it holds a mark of text left out that `old` does not hold.

    Args:
        new: What is to be written.
        old: What the file holds now; empty where it is new.
        name: The argument that `new` came in, for the error.

    Raises:
        ToolError: naming the mark, and how to get at the text.
    """
    marks = marks_in(new)
    known = set(marks_in(old)) if marks else set[str]()
    if mark := next((mark for mark in marks if mark not in known), ""):
        raise ToolError(
            f"{name} contains {mark[-200:]!r}, a placeholder for text left out of this "
            "conversation. Read the file, or recall the original, and give the whole text. "
            "Nothing was written."
        )
