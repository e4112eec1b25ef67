"""Git's objects, each checked against its id, so that nothing a command forged counts.

Git itself checks an object it reads only in ``git fsck``. A command can replace the file of a
commit, or have git see other parents: by a graft, a replacement, a commit graph.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from agent_tui.tools.git.command import object_id

_TIME: Final = re.compile(r"\s*(\d{1,12})\s*[+-]\d{4}\s*")
_PLAIN: Final = re.compile(
    r"utf-?8|us-ascii|iso-?8859-\d+|latin-?1|(?:windows-|cp)125\d|koi8-\w+|euc-\w+", re.IGNORECASE
).fullmatch
"""Encodings in which ASCII is ASCII: git converts a commit that it makes another from."""


class _Object(NamedTuple):
    kind: str
    content: bytes


class TreeEntry(NamedTuple):
    """What a tree says of a name: git's mode, and the id of the object."""

    mode: str
    id: str


NOTHING: Final = TreeEntry("", "")


class VerifiedObjects:
    """The objects in what ``git cat-file --batch`` printed, without those of another content."""

    def __init__(self, printed: bytes) -> None:
        self._objects = {
            id: each
            for id, each in _parse(printed)
            if object_id(each.content, like=id, kind=each.kind) == id
        }

    def history_of(self, tips: Iterable[str]) -> set[str]:
        """The ids of `tips` and of what is in their history, as far as it is known."""
        pending = list(tips)
        seen = set(pending)
        for id in pending:
            found = set(self._links_of(id)) - seen
            seen |= found
            pending += found
        return seen

    def times_of(self, commits: Iterable[str]) -> set[int | None]:
        """When commits were written, in seconds, as far as they are known.

        None is among them if git may read another time.
        """
        return {time for id in commits for time in self._times_of(id)}

    def _times_of(self, commit: str) -> Iterator[int | None]:
        odd = [each for each in self._values_of(commit, "commit", b"encoding ") if not _PLAIN(each)]
        for author in self._values_of(commit, "commit", b"author "):
            found = None if odd else _TIME.fullmatch(author.rpartition(">")[2])
            yield int(found[1]) if found else None

    def find(self, commit: str, parts: Sequence[str]) -> TreeEntry | None:
        """The entry at the path of `parts` in `commit`.

        Returns:
            `NOTHING` if there is none; None if it is not known.
        """
        entry = TreeEntry("", next(self._values_of(commit, "commit", b"tree "), ""))
        for part in parts:
            tree = self._objects.get(entry.id)
            if tree is None:
                return None
            name = part.encode("utf-8", "surrogateescape")
            # A file where a folder is sought has no files.
            entries = _entries(tree.content, len(commit) // 2) if tree.kind == "tree" else ()
            if (entry := dict(entries).get(name, NOTHING)) is NOTHING:
                break
        return entry

    def is_new(self, commit: str, parts: Sequence[str]) -> bool:
        """Whether no parent of `commit` has the same file at the path of `parts`.

        False too if one is not known.
        """
        entry = self.find(commit, parts)
        found = [self.find(each, parts) for each in self._values_of(commit, "commit", b"parent ")]
        return None not in found and entry not in found

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


def _entries(tree: bytes, id_bytes: int) -> Iterator[tuple[bytes, TreeEntry]]:
    """Each name in a tree, and its entry: ``mode name``, a zero byte, and the id's bytes."""
    at = 0
    while (end := tree.find(b"\0", at)) >= 0:
        mode, _, name = tree[at:end].partition(b" ")
        at = end + 1 + id_bytes
        yield name, TreeEntry(mode.decode("ascii", "replace"), tree[end + 1 : at].hex())
