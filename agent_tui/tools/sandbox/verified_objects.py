"""Git's objects, each checked against its id, so that nothing a command forged counts.

Git itself checks an object it reads only in ``git fsck``. A command can replace the file of a
commit, or have git see other parents: by a graft, a replacement, a commit graph.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from agent_tui.tools.git.command import object_id


class _Object(NamedTuple):
    kind: str
    content: bytes


class VerifiedObjects:
    """The objects in what ``git cat-file --batch`` printed, without those of another content."""

    def __init__(self, printed: bytes) -> None:
        self._objects = {
            id: each
            for id, each in _parse(printed)
            if object_id(each.content, like=id, kind=each.kind) == id
        }

    def is_reachable(self, commit: str, tips: Iterable[str]) -> bool:
        """Whether `commit` is one of `tips` or their history."""
        pending = list(tips)
        seen = set(pending)
        for id in pending:
            if id == commit:
                return True
            found = set(self._links_of(id)) - seen
            seen |= found
            pending += found
        return False

    def find(self, commit: str, parts: Sequence[str]) -> str | None:
        """The id of the file at the path of `parts` in `commit`; None if it is not known."""
        id = next(self._values_of(commit, "commit", b"tree "), None)
        for part in parts:
            tree = self._objects.get(id or "")
            if tree is None or tree.kind != "tree":
                return None
            id = dict(_entries(tree.content, len(commit) // 2)).get(
                part.encode("utf-8", "surrogateescape")
            )
        return id

    def _links_of(self, id: str) -> Iterator[str]:
        yield from self._values_of(id, "commit", b"parent ")
        yield from self._values_of(id, "tag", b"object ")

    def _values_of(self, id: str, kind: str, key: bytes) -> Iterator[str]:
        """The values of `key` in the header of an object."""
        found = self._objects.get(id)
        if found is not None and found.kind == kind:
            for line in found.content.partition(b"\n\n")[0].split(b"\n"):
                if line.startswith(key):
                    yield line.removeprefix(key).decode("ascii", "replace")


def _parse(printed: bytes) -> Iterator[tuple[str, _Object]]:
    at = 0
    while (end := printed.find(b"\n", at)) >= 0:
        words = printed[at:end].decode("utf-8", "replace").split(" ")
        at = end + 1
        if len(words) == 3 and words[2].isdecimal():  # otherwise git has no such object
            id, kind, size = words
            yield id, _Object(kind, printed[at : at + int(size)])
            at += int(size) + 1


def _entries(tree: bytes, id_bytes: int) -> Iterator[tuple[bytes, str]]:
    """Each name in a tree, and its id: ``mode name``, a zero byte, and the id's bytes."""
    at = 0
    while (end := tree.find(b"\0", at)) >= 0:
        _, _, name = tree[at:end].partition(b" ")
        at = end + 1 + id_bytes
        yield name, tree[end + 1 : at].hex()
