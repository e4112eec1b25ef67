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
from agent_tui.features.sandbox.file_contents import FileContents
from agent_tui.features.sandbox.git_controls import why_obeyed
from agent_tui.features.sandbox.known_versions import KnownVersions
from agent_tui.features.sandbox.obeyed_state import Approved

Decision: TypeAlias = Literal["accept", "leave", "bring", "restore", "separate", "ask", "set aside"]
"""It stays; it stays, but nobody approved of it; it is made outside as well; the previous content
comes back; the file gets a separate content; it stays until the user answers; it is moved to our
folder until the user answers."""


class _Commit(NamedTuple):
    """One that a command, or the user meanwhile, made or fetched; as the user is shown it."""

    shown: str


_Origin: TypeAlias = _Commit | Literal["user", "unknown"]
"""Whose content it is. The user's is what they last had or allowed there, or in their commits."""


class Case(NamedTuple):
    """A change to decide on, who made it, and why the user would decide."""

    change: Change
    author: Author
    why: str


class ChangeJudge:
    """Accepts what programs outside do not follow, what the user did, and what they had before.

    Args:
        contents: Has the contents of files by their digests.
        versions: Knows the versions in the user's commits.
        roots: The working folders with their git folders.
    """

    def __init__(
        self, contents: FileContents, versions: KnownVersions, roots: Sequence[Path]
    ) -> None:
        self._contents = contents
        self._versions = versions
        self._roots = roots

    def open_case(self, change: Change, author: Author) -> Case | None:
        """What there is to decide on `change`; None if it stays whatever it is. Blocking."""
        why = "" if author == "user" else self._why(change)
        return Case(change, author, why) if why else None

    async def decide(
        self, case: Case, approved: Approved, aside: AbstractSet[Path], *, is_over: bool
    ) -> tuple[Decision, Case]:
        """What becomes of a change, and the case as the user decides on it.

        Args:
            case: The change.
            approved: What was in place before.
            aside: Where earlier changes were set aside.
            is_over: Whether the command has ended: else it may need the steps that it noted.
        """
        change, author, why = case
        if not any(
            all(not approved.question_on(link) and _stays(link, aside) for link in way)
            for way in change.ways
        ):
            return "leave", case  # the user decides on a link, and is shown what it leads to
        origin = await self._origin_of(change, approved)
        if origin == "user":
            return "bring" if change.is_in_copy else "accept", case
        if change.is_deletion:  # what was deleted in a copy comes back anyway
            is_users = change.path in approved.words  # nothing else ran when they had a version
            is_asked = approved.question_on(change.path) is not None
            is_left = change.is_in_copy or is_asked or not is_users
            return "leave" if is_left else "restore", case
        if change.control == "shared":
            return "separate", case
        if isinstance(origin, _Commit):
            case = case._replace(
                why=f"{why}; from commit {origin.shown}, which you or a command added"
            )
        is_pulled = isinstance(origin, _Commit) and not change.is_in_copy
        is_needed = change.control == "step" and not is_over
        is_asked = author == "either" or is_pulled or is_needed
        return "ask" if is_asked else "set aside", case

    def _why(self, change: Change) -> str:
        """Why the user decides on `change`; empty if nobody need decide."""
        if change.control is None:
            return f"{change.who} obeys it" if change.who else ""
        if change.is_deletion and change.control != "entry":
            return "git does less without it"
        if not any(map(change.path.is_relative_to, self._roots)):  # the `.git` to it is held
            return ""
        before = self._contents.bytes_of(change.before)
        return why_obeyed(change.path, change.control, self._roots, before)

    async def _origin_of(self, change: Change, approved: Approved) -> _Origin:
        """Where all files of `change` are from."""
        if change.control not in (None, "way"):  # a commit can have a link
            return "unknown"
        origin: _Origin = "user"
        for path, digest in change.files:
            if digest == approved.words.get(path):
                continue
            version = self._contents.version_of(digest or change.before)
            if version is None:
                return "unknown"
            if await self._versions.has(path, version):
                if digest or await self._versions.lack(path):
                    continue
                return "unknown"
            shown = await self._versions.commit_with(path, version) if digest else ""
            if not shown:
                return "unknown"
            origin = _Commit(shown)
        return origin


def _stays(link: Path, aside: AbstractSet[Path]) -> bool:
    """Whether nothing around `link` was set aside."""
    return aside.isdisjoint((link, *link.parents))
