"""Changes of files as values: files, their hunks, and the lines of these. All of it is pure."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.tools.files.diffs import before_diff

Side: TypeAlias = Literal["old", "new"]
Sign: TypeAlias = Literal[" ", "-", "+"]
_Opcode: TypeAlias = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]

_CONTEXT = 3
_MOST_COMPARED = 20_000
"""Lines; comparing takes more than linear time. Beyond, all between the first and the last
difference is one hunk."""

_MOST_FOR_DIFFLIB = 2_000
"""Lines; its differences read better, but it takes seconds for a large file with many of them.
Beyond, the longest common subsequence decides."""

_LEAST_ALIKE = 0.5
"""Share of their lines that a removed and an added file have in common if one became the other, as
in git."""

_MOST_PAIRED = 60
_MOST_PAIRED_BYTES = 400_000
"""Removed and added files beyond these numbers are not compared with each other."""

_NO_END = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class HunkLine:
    """A line of a hunk, with its newline, and its numbers in both files, from 1; 0 for none."""

    sign: Sign
    text: str
    old: int
    new: int


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that changed together, with some unchanged ones around them.

    Attributes:
        lines: The lines.
        old_start: The index of its first line in the old file.
        new_start: That in the new file.
        key: What it is recognized by, wherever it lies: the hash of its lines, and how many hunks
            with the same lines precede it in the file.
    """

    lines: tuple[HunkLine, ...]
    old_start: int
    new_start: int
    key: str

    @property
    def diff(self) -> str:
        """It as a unified diff without the names of files."""
        old = sum(line.sign != "+" for line in self.lines)
        new = sum(line.sign != "-" for line in self.lines)
        starts = self.old_start + (old > 0), self.new_start + (new > 0)
        head = f"@@ -{starts[0]},{old} +{starts[1]},{new} @@\n"
        return head + "".join(map(_diff_line, self.lines))


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file before and after.

    Attributes:
        name: Its name for users and the model, relative to the folder of the conversation.
        path: Where it is, or was.
        before: Its content; None if it did not exist.
        after: Its content; None if it does not exist.
        was: Its earlier name, if it was renamed.
        note: What else is to be said of it, such as why its content is not shown.
        hunks: What changed in it; none for a binary file.
        counts: Numbers of added and removed lines.
        digest: That of the present content, which a mark of the user's is bound to.
        was_path: Where it was, if it was renamed.
        before_mode: Its mode before, as in git; 0 if it is not known.
    """

    name: str
    path: Path
    before: bytes | None
    after: bytes | None
    was: str = ""
    note: str = ""
    hunks: tuple[Hunk, ...] = field(default=(), repr=False)
    counts: tuple[int, int] = (0, 0)
    digest: str = ""
    was_path: Path | None = None
    before_mode: int = 0

    @property
    def kind(self) -> str:
        """What became of the file, if not only its lines changed."""
        if self.was:
            return f"renamed from {self.was}"
        if self.before is None and self.after is None:
            return ""
        if self.before is None:
            return "new file"
        return "deleted" if self.after is None else ""

    @property
    def has_both(self) -> bool:
        """Whether the file is there before and after."""
        return self.before is not None and self.after is not None

    def lines(self, side: Side) -> list[str]:
        """All lines of one side; none of a binary file."""
        text = text_of(self.before if side == "old" else self.after)
        return split_lines(text) if text is not None else []

    def find(self, key: str) -> Hunk | None:
        """The hunk with that `Hunk.key`."""
        return next((hunk for hunk in self.hunks if hunk.key == key), None)


def file_change(
    name: str,
    path: Path,
    before: bytes | None,
    after: bytes | None,
    *,
    renamed: FileChange | None = None,
    note: str = "",
    before_mode: int = 0,
) -> FileChange:
    """The change of a file, with its hunks; `renamed` is the removed file that it was."""
    old, new = text_of(before), text_of(after)
    hunks: tuple[Hunk, ...] = ()
    if old is None or new is None:
        note = note or "binary"
    else:
        hunks = tuple(find_hunks(split_lines(old), split_lines(new)))
    signs = Counter(line.sign for hunk in hunks for line in hunk.lines)
    content = b"-" if after is None else b"+" + after
    digest = hashlib.sha256(content).hexdigest()[:16]
    return FileChange(
        name,
        path,
        before,
        after,
        renamed.name if renamed else "",
        note,
        hunks,
        (signs["+"], signs["-"]),
        digest,
        renamed.path if renamed else None,
        renamed.before_mode if renamed else before_mode,
    )


def with_present(change: FileChange, after: bytes | None, note: str) -> FileChange:
    """`change` with another present content."""
    made = file_change(
        change.name,
        change.path,
        change.before,
        after,
        note=note,
        before_mode=change.before_mode,
    )
    return replace(made, was=change.was, was_path=change.was_path)


def text_of(content: bytes | None) -> str | None:
    """The content of a file as text, empty if there is none; None if it is binary."""
    if content is None:
        return ""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def split_lines(text: str) -> list[str]:
    r"""Lines with their newlines; unlike `str.splitlines`, only ``\n`` ends one."""
    pieces = text.split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def find_hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[Hunk]:
    """What changed from the lines `old` to the lines `new`, in order."""
    start, end = 0, 0
    shorter = min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if start == len(old) == len(new):
        return
    left = max(start - _CONTEXT, 0)
    right = max(end - _CONTEXT, 0)
    old_part, new_part = old[left : len(old) - right], new[left : len(new) - right]
    seen: Counter[str] = Counter()
    for lines in _grouped(old_part, new_part, left, start - left, end - right):
        digest = _digest_of(lines)
        old_start = next((line.old - 1 for line in lines if line.old), -1)
        new_start = next((line.new - 1 for line in lines if line.new), -1)
        # A hunk without lines on one side is a whole file, which begins or ends empty.
        yield Hunk(lines, max(old_start, 0), max(new_start, 0), f"{digest}.{seen[digest]}")
        seen[digest] += 1


def _grouped(
    old: Sequence[str], new: Sequence[str], above: int, head: int, tail: int
) -> Iterator[tuple[HunkLine, ...]]:
    """The lines of each hunk.

    Args:
        old: The old lines, from the context of the first difference to that of the last.
        new: The new ones.
        above: How many lines are above both.
        head: How many lines both begin with.
        tail: How many they end with.
    """
    for group in _Grouper(_opcodes(old, new, head, tail)).get_grouped_opcodes(_CONTEXT):
        lines: list[HunkLine] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += (
                    HunkLine(" ", old[a + n], above + a + n + 1, above + c + n + 1)
                    for n in range(b - a)
                )
            else:
                lines += (HunkLine("-", old[n], above + n + 1, 0) for n in range(a, b))
                lines += (HunkLine("+", new[n], 0, above + n + 1) for n in range(c, d))
        yield tuple(lines)


class _Grouper(SequenceMatcher[str]):
    """Groups differences that are known."""

    def __init__(self, opcodes: list[_Opcode]) -> None:
        super().__init__(None, "", "")
        self._opcodes = opcodes

    def get_opcodes(self) -> list[_Opcode]:
        """The differences."""
        return self._opcodes


def _opcodes(old: Sequence[str], new: Sequence[str], head: int, tail: int) -> list[_Opcode]:
    """How `new` comes from `old`, as difflib says it; for the arguments see `_grouped`."""
    size = len(old) + len(new)
    if size > _MOST_COMPARED:
        return [
            ("equal", 0, head, 0, head),
            ("replace", head, len(old) - tail, head, len(new) - tail),
            ("equal", len(old) - tail, len(old), len(new) - tail, len(new)),
        ]
    if size <= _MOST_FOR_DIFFLIB:
        return SequenceMatcher(None, old, new).get_opcodes()
    from rapidfuzz.distance import LCSseq  # only for a large file

    opcodes: list[_Opcode] = []
    for is_equal, steps in groupby(LCSseq.opcodes(old, new), lambda step: step.tag == "equal"):
        group = [*steps]
        first, last = group[0], group[-1]
        tag = "equal" if is_equal else "replace"
        place = first.src_start, last.src_end, first.dest_start, last.dest_end
        opcodes.append((tag, *place))
    return opcodes


def function_above(old: Sequence[str], hunk: Hunk) -> str:
    """The line that git shows in the heading of `hunk`, which tells the function; empty for none.

    It is the nearest line above that begins with a letter, ``_`` or ``$``.
    """
    above = reversed(old[: hunk.old_start])
    return next((line.strip() for line in above if line[0].isalpha() or line[0] in "_$"), "")


def without_hunk(after: str, hunk: Hunk) -> str | None:
    """`after` with `hunk` taken back; None if its lines are not there."""
    return before_diff(after, hunk.diff, is_exact=True)


def pair_renames(changes: Iterable[FileChange]) -> list[FileChange]:
    """`changes` in order of name, a removed and an added file that are alike made one."""
    found = sorted(changes, key=lambda change: change.name)
    gone = [one for one in found if one.after is None and one.before and not one.note]
    come = [one for one in found if one.before is None and one.after and not one.note]
    if len(gone) > _MOST_PAIRED or len(come) > _MOST_PAIRED:
        return found
    ranked = sorted(
        ((_alike(a.before or b"", b.after or b""), a.name, b.name) for a in gone for b in come),
        key=lambda row: (-row[0], row[1:]),
    )
    pairs: dict[str, str] = {}
    for share, was, name in ranked:
        if share >= _LEAST_ALIKE and was not in pairs.values() and name not in pairs:
            pairs[name] = was
    by_name = {one.name: one for one in gone}
    return [
        file_change(one.name, one.path, by_name[was].before, one.after, renamed=by_name[was])
        if (was := pairs.get(one.name))
        else one
        for one in found
        if one.name not in pairs.values() or one.before is None
    ]


def _alike(old: bytes, new: bytes) -> float:
    """The share of common lines; 1 for equal contents."""
    if old == new:
        return 1.0
    if max(len(old), len(new)) > _MOST_PAIRED_BYTES:
        return 0.0
    left, right = Counter(old.split(b"\n")), Counter(new.split(b"\n"))
    return min(2 * (left & right).total() / (left.total() + right.total()), 0.99)


def _digest_of(lines: Iterable[HunkLine]) -> str:
    text = "".join(f"{line.sign}{line.text}\0" for line in lines)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _diff_line(line: HunkLine) -> str:
    end = "" if line.text.endswith("\n") else f"\n{_NO_END}\n"
    return f"{line.sign}{line.text}{end}"
