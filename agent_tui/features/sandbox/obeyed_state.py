"""What outside programs follow in the working folders: as it is, and as it was approved."""

import os
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, BeforeValidator, PlainSerializer

from agent_tui.features.sandbox.file_contents import EMPTY, OTHER, is_link_digest, is_stored
from agent_tui.features.sandbox.git_repository import GitRepository
from agent_tui.features.sandbox.project_walk import WalkFindings
from agent_tui.safe_paths import is_folder, is_link
from agent_tui.tools.git.settings import ControlKind

Protection: TypeAlias = Literal["compared", "copied", "mounted"]
"""How a followed file is protected: compared after each command; replaced by a copy inside; a
read-only mount."""


def _from_json(value: object) -> object:
    return os.fsdecode(value.encode("latin-1")) if isinstance(value, str) else value


def _to_json(path: str | Path) -> str:
    return os.fsencode(path).decode("latin-1")


FsText: TypeAlias = Annotated[
    str, BeforeValidator(_from_json), PlainSerializer(_to_json, when_used="json")
]
"""A name of the file system, which JSON can store whatever its bytes are."""

FsPath: TypeAlias = Annotated[
    Path, BeforeValidator(_from_json), PlainSerializer(_to_json, when_used="json")
]


Way: TypeAlias = tuple[Path, ...]
"""The links on the way to a followed file or folder; none if it is followed at its own path."""


@dataclass(frozen=True, slots=True)
class Node:
    """An uppermost followed file or folder.

    Args:
        who: Which program follows it.
        way: How it is protected.
        files: The digest of each file in it; `OTHER` for a folder with too many, `EMPTY` for
            one without.
    """

    who: str
    way: Protection
    files: Mapping[Path, str]


@dataclass(slots=True)
class Look:
    """The current state.

    Args:
        found: What the walk found.
        repositories: That of each ``.git``.
        gits: The git folders of all repositories.
        named: Those of the uppermost followed files and folders that are found by their names.
        nodes: The uppermost followed files and folders.
        ways: For those that are followed because something leads to them: the links on each way.
        controls: What git follows in its folders, and what each is for.
        files: The digest of each file in `nodes` and `controls`.
        gone: Where files are gone that a program followed before: who, empty if the repository was
            removed as a whole; and the digest of what has taken the place of the file or of a
            folder around it, empty for nothing.
    """

    found: WalkFindings
    repositories: Sequence[GitRepository] = ()
    gits: AbstractSet[Path] = frozenset()
    named: AbstractSet[Path] = frozenset()
    nodes: dict[Path, Node] = field(default_factory=dict[Path, Node])
    ways: dict[Path, list[Way]] = field(default_factory=dict[Path, list[Way]])
    controls: dict[Path, ControlKind] = field(default_factory=dict[Path, ControlKind])
    files: dict[Path, str] = field(default_factory=dict[Path, str])
    gone: Mapping[Path, tuple[str, str]] = field(default_factory=dict[Path, tuple[str, str]])

    def node_of(self, path: Path) -> Path | None:
        """The node that `path` is or lies in."""
        return next((place for place in (path, *path.parents) if place in self.nodes), None)

    def who_follows(self, path: Path) -> str:
        """Which program follows `path`; unknown before the first look."""
        node = self.node_of(path)
        return "a program outside" if node is None else self.nodes[node].who

    def is_led_to(self, path: Path, last: "Look") -> bool:
        """Whether only what was written since `last` leads to `path`, not its name or place."""
        node = self.node_of(path)
        if node is None:
            return path not in last.files and last.gits.isdisjoint(path.parents)
        before = last.ways.get(node, [()]) if node in last.nodes else ()
        is_new = all(way not in before for way in self.ways.get(node, [()]))
        return is_new and node not in self.named


class Question(NamedTuple):
    """What the user decides on: why, and what is there; empty while nothing is."""

    why: str
    digest: str


class Approved(BaseModel):
    """What was last approved, and what is in question. It is on disk while commands run.

    Four acts approve, each of digests that were read once: the user's answer, what a permitted tool
    wrote, a look while nothing of a command ran, and a judgement on a change.

    Args:
        files: The digest of each approved file, as in `Look`.
        asked: The files that differ and may be the user's or a job's.
        words: What the user last had or allowed at a path, as a digest: commands may bring it back.
        first: See `ProjectWalk`.
    """

    files: dict[FsPath, str] = {}
    asked: dict[FsPath, Question] = {}
    words: dict[FsPath, str] = {}
    first: tuple[FsText, ...] = ()

    @property
    def standing(self) -> dict[Path, str]:
        """What may be there: what was approved, or is in question instead."""
        asked = {path: digest for path, (_, digest) in self.asked.items() if digest}
        return self.files | asked

    def question_on(self, path: Path) -> Question | None:
        """The question about `path`, or about a folder around it."""
        if not self.asked:
            return None
        places = (self.asked.get(place) for place in (path, *path.parents))
        return next(filter(None, places), None)

    def note_word(self, path: Path) -> None:
        """Note that the user wants what is approved at `path`, and nothing from before."""
        self.words.pop(path, None)
        if is_stored(digest := self.files.get(path, "")):
            self.words[path] = digest

    def take(self, files: Iterable[tuple[Path, str]]) -> None:
        """Approve of files with these digests; an empty one is that of nothing."""
        for path, digest in files:
            self.asked.pop(path, None)
            self.files.pop(path, None)
            if digest:
                self.files[path] = digest

    def forget(self, folders: Iterable[Path]) -> list[Path]:
        """Forget all that was approved in `folders`; returns where that was."""
        around = set(folders)
        forgotten = [path for path in self.files if not around.isdisjoint(path.parents)]
        self.take((path, "") for path in forgotten)
        return forgotten

    def take_harmless(self, files: Iterable[tuple[Path, str]]) -> None:
        """Approve of changes that nobody need decide on; what was in question before still is."""
        for path, digest in files:
            if (question := self.question_on(path)) is not None:
                self.asked[path] = question._replace(digest=digest)
            else:
                self.take([(path, digest)])

    def ask(self, files: Iterable[tuple[Path, str]], why: str) -> None:
        """Note that the user decides on files with these digests."""
        self.asked |= {path: Question(why, digest) for path, digest in files}

    def take_users(self, now: Mapping[Path, str]) -> list[Path]:
        """Approve of what the user has `now`, but for what is in question.

        Returns:
            What they changed or deleted since.
        """
        asked = {
            path: question._replace(digest=digest)
            for path, digest in now.items()
            if (question := self.question_on(path)) and digest != self.files.get(path)
        }
        around = {place for path in now for place in path.parents} if self.asked else ()
        for path in self.asked.keys() - now.keys():  # nothing leads to it now
            if path not in around and os.path.lexists(path):
                asked[path] = self.asked[path]
        kept = {
            path: digest
            for path, digest in self.files.items()
            if path in asked
            or (asked and path not in now and _may_be_back(path, digest, asked.keys()))
        }
        left = self.files.items() - kept.items()
        self.asked = asked
        self.files = {path: now[path] for path in now if path not in asked} | kept
        return [path for path, digest in left if now.get(path) != digest]

    def take_rest(self, now: Mapping[Path, str]) -> list[Path]:
        """Take in a look at which all that was changed has been judged.

        No program follows what is gone. But what a job removed while it was in question comes back
        with a no. Below a folder that is too large, nobody knows what is there.

        Returns:
            What is gone.
        """
        for path, (why, _) in list(self.asked.items()):
            if now.get(path, "") == self.files.get(path, ""):
                del self.asked[path]
            elif path not in now:
                self.asked[path] = Question(why, "")
        large = {path for path in now if now[path] == OTHER} | self.asked.keys()
        gone = [
            path
            for path in self.files.keys() - now.keys()
            if not (path in self.asked or _may_be_back(path, self.files[path], large))
        ]
        self.take((path, "") for path in gone)
        self.files |= {path: EMPTY for path in now if now[path] == EMPTY}
        return gone


def _may_be_back(path: Path, digest: str, around: AbstractSet[Path]) -> bool:
    """Whether what is not followed now may be again: it is there, or `around` may have it.

    A link for which there is a folder is back with a no to what is in that.
    """
    is_there = os.path.lexists(path)
    if is_link_digest(digest) and is_folder(path) and not is_link(path):
        is_there = any(path in each.parents for each in around)
    return is_stored(digest) and (is_there or not around.isdisjoint(path.parents))
