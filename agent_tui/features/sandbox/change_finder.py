"""Finds what changed between two states of the working folders: pure, reads no disk."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_tui.features.sandbox.file_contents import EMPTY, OTHER, is_link_digest, is_other
from agent_tui.features.sandbox.folder_copies import FolderCopy
from agent_tui.features.sandbox.git_controls import SHALLOW
from agent_tui.features.sandbox.git_index import INDEX
from agent_tui.features.sandbox.git_repository import restored_among
from agent_tui.features.sandbox.obeyed_state import Look, Node, Way
from agent_tui.tools.git.settings import ControlKind


@dataclass(frozen=True, slots=True)
class Change:
    """One change made by commands, or perhaps by the user.

    Args:
        path: What it affects.
        source: Where it is now: elsewhere for a copy.
        files: Its files, and the digest of each; empty for one that is gone.
        before: The digest of what was there; empty for nothing.
        who: Which program follows it; empty for one of git's own files.
        control: For one of git's own files, which no commit brings: its kind.
        ways: As in `Look`.
    """

    path: Path
    source: Path
    files: tuple[tuple[Path, str], ...]
    before: str = ""
    who: str = ""
    control: ControlKind | None = None
    ways: tuple[Way, ...] = ((),)

    @property
    def digest(self) -> str:
        """The digest of what is at `path` itself; empty for nothing, or a folder."""
        return dict(self.files).get(self.path, "")

    @property
    def is_deletion(self) -> bool:
        """Whether the file is gone."""
        return self.files[:1] == ((self.path, ""),)

    @property
    def is_in_copy(self) -> bool:
        """Whether it was made in a copy: what is at `path` outside is as it was."""
        return self.source != self.path


def find_changes(
    before: Mapping[Path, str], look: Look, copies: Iterable[FolderCopy]
) -> list[Change]:
    """What differs in `look`, in the order in which it is to be decided.

    Args:
        before: The digests of the approved files.
        look: The current state.
        copies: The copies that commands may have changed.
    """
    changes = [
        *(each for path in look.nodes for each in _find_in_node(before, path, look)),
        *_find_in_controls(before, look),
        *(each for copy in copies for each in _find_in_copy(copy, look)),
        *_find_deleted(before, look),
    ]
    # Links first. Git makes an index again, when HEAD and the settings are in order.
    return sorted(changes, key=lambda change: (change.path.name == INDEX, () not in change.ways))


def _find_in_node(before: Mapping[Path, str], path: Path, look: Look) -> Iterator[Change]:
    """A new folder with all that is in it is one change."""
    node = look.nodes[path]
    if EMPTY in node.files.values():
        return
    was, ways = before.get(path, ""), tuple(look.ways.get(path, ((),)))
    is_link_replaced = is_link_digest(was) and path not in node.files  # by a folder
    if is_link_replaced or not _is_known(before, path, node):
        yield Change(path, path, tuple(node.files.items()), was, node.who, ways=ways)
        return
    for file, digest in node.files.items():
        was = before.get(file, "")
        is_other = digest not in ("", was) and file not in look.controls
        if is_other and look.node_of(file) == path:  # a link may lead into a node
            new = ways if not was else ((),)
            yield Change(file, file, ((file, digest),), was, node.who, ways=new)


def _is_known(before: Mapping[Path, str], path: Path, node: Node) -> bool:
    """Whether something that `path` is or contains was approved."""
    return (
        path in before
        or any(file in before for file in node.files)
        or any(path in file.parents for file in before)
    )


def _find_in_controls(before: Mapping[Path, str], look: Look) -> Iterator[Change]:
    """Changes in what git follows.

    Also in what is mounted: the mount disappears when the user's editor or git replaces the file.
    What is `SHALLOW` in a new repository is what its clone left out.
    """
    for path, kind in look.controls.items():
        digest, was = look.files[path], before.get(path, "")
        if digest not in ("", was):
            is_clones = path.name == SHALLOW and path.with_name("HEAD") not in before
            kind = "data" if is_clones and kind == "graft" else kind
            yield Change(path, path, ((path, digest),), was, control=kind)


def _find_in_copy(copy: FolderCopy, look: Look) -> Iterator[Change]:
    if copy.before is None or copy.now == copy.before:
        return
    node = look.node_of(copy.path) or next(
        (each for each in look.nodes if each.is_relative_to(copy.path)), None
    )
    who = "the outside" if node is None else look.nodes[node].who
    if copy.now is None:
        yield Change(copy.path, copy.copy, ((copy.path, OTHER),), who=who)
        return
    # What is gone comes first: a link may be in its folder's place.
    for below in (*sorted(copy.before.keys() - copy.now.keys()), *sorted(copy.now)):
        was, digest = copy.before.get(below, ""), copy.now.get(below, "")
        path = copy.path / below
        if digest != was:
            yield Change(path, copy.copy / below, ((path, digest),), was, who)


def _find_deleted(before: Mapping[Path, str], look: Look) -> Iterator[Change]:
    """What is gone: programs do less without settings, or do what these forbid.

    What led to a git folder may have one in its place.
    """
    for path, (who, now) in look.gone.items():
        if (was := before.get(path, "")) != now:
            yield Change(path, path, ((path, now),), was, who)
    gone = before.keys() - look.files.keys()
    for path, kind in restored_among(gone, look.gits):
        if not is_other(before[path]):
            now = OTHER if path in look.found.gits else ""
            yield Change(path, path, ((path, now),), before[path], control=kind)
