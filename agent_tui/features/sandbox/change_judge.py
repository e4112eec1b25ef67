"""Decides what becomes of a change: accept it, set it aside, ask about it, or take it back.

The user may pull while a command runs. So what git has in a commit of nobody knows whom stays where
it is until they answer. It was in place while the command ran, and a job could leave it there as
long. Nothing comes out of a copy, which nobody outside has followed, before they say yes.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from agent_tui.features.sandbox.change_authors import Author
from agent_tui.features.sandbox.change_finder import Change
from agent_tui.features.sandbox.file_contents import FileVersion
from agent_tui.features.sandbox.git_controls import why_obeyed
from agent_tui.features.sandbox.obeyed_state import Approved
from agent_tui.features.sandbox.provenance import Commit, Origin
from agent_tui.tools.files.obeyed import is_harmless_content

Decision: TypeAlias = Literal["accept", "leave", "bring", "restore", "separate", "ask", "set aside"]
"""It stays; it stays, but nobody approved of it; it is made outside as well; the previous content
comes back; the file gets a separate content; it stays until the user answers; it is moved to our
folder until the user answers."""


class Case(NamedTuple):
    """A change to decide on, who made it, and why the user would decide."""

    change: Change
    author: Author
    why: str


def why_decide(
    change: Change, roots: Sequence[Path], before: bytes | None, now: FileVersion | None
) -> str:
    """Why the user decides on `change`; empty if it stays whatever it is. Blocking.

    Args:
        change: The change.
        roots: The working folders with their git folders.
        before: The previous content.
        now: The content that was found; None if it could not be read, or is gone.
    """
    if change.control is None:
        content = None if now is None or now.is_link else now.content
        content = b"" if change.is_deletion else content
        if content is not None and is_harmless_content(change.path.name, content):
            return ""
        return f"{change.who} obeys it" if change.who else ""
    if change.is_deletion and change.control != "entry":
        return "git does less without it"
    if not any(map(change.path.is_relative_to, roots)):  # the `.git` to it is held
        return ""
    return why_obeyed(change.path, change.control, roots, before, now)


def is_reached(change: Change, approved: Approved, aside: AbstractSet[Path]) -> bool:
    """Whether a program still gets to `change` on a way that is not in question.

    If not, the user decides on a link on that way, and is shown what it leads to.

    Args:
        change: The change.
        approved: What was in place before, and is in question.
        aside: Where earlier changes were set aside.
    """
    return any(
        all(not approved.question_on(link) and _stays(link, aside) for link in way)
        for way in change.ways
    )


def decide(
    case: Case, origin: Origin, approved: Approved, *, is_over: bool
) -> tuple[Decision, Case]:
    """What becomes of a change, and the case as the user decides on it.

    Args:
        case: The change.
        origin: Whose content it is.
        approved: What was in place before, and is in question.
        is_over: Whether the command has ended: else it may need the steps that it noted.
    """
    change, author, why = case
    if origin == "user":
        return "bring" if change.is_in_copy else "accept", case
    if change.is_deletion:  # what was deleted in a copy comes back anyway
        is_users = change.path in approved.words  # nothing else ran when they had a version
        is_asked = approved.question_on(change.path) is not None
        is_left = change.is_in_copy or is_asked or not is_users
        return "leave" if is_left else "restore", case
    if change.control == "shared":
        return "separate", case
    if isinstance(origin, Commit):
        case = case._replace(why=f"{why}; from commit {origin.shown}, which you or a command added")
    is_pulled = isinstance(origin, Commit) and not change.is_in_copy
    is_needed = change.control == "step" and not is_over
    is_asked = author == "either" or is_pulled or is_needed
    return "ask" if is_asked else "set aside", case


def _stays(link: Path, aside: AbstractSet[Path]) -> bool:
    """Whether nothing around `link` was set aside."""
    return aside.isdisjoint((link, *link.parents))
