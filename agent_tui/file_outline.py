"""The outline of a file: the headings of Markdown, and the indented blocks of everything else."""

import re
from collections.abc import Iterator, Sequence, Set
from itertools import accumulate
from pathlib import PurePath

from agent_tui.omissions import one_line

_MARKDOWN = (".md", ".mdx", ".markdown")
_HEADING = re.compile(r"(#{1,6})\s+\S")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_CLOSING = (")", "]", "}")
"""A line that begins with one of these ends or continues the block above it."""

_LEAST_LINES, _LINES_EACH, _MOST = 4, 20, 24
"""The smallest block that counts, and the blocks of a file: one for so many lines, at most."""

_WHOLE_LINES = 40
"""A smaller block is not divided."""

_NESTED = 3
"""A block inside of another counts as much as one that is so many times smaller."""

_TITLE_CHARS, _TITLE_ABOVE_CHARS = 60, 160
"""The latter shows a whole signature."""


def outline(path: str, first: int, lines: Sequence[str], wanted: Set[int]) -> tuple[str, ...]:
    """The `largest_blocks` of a file as ``12-40 def read(self)``, in order."""
    blocks = largest_blocks(path, first, lines, wanted)
    return tuple(f"{start}-{end} {title}" for start, end, title in blocks)


def largest_blocks(
    path: str, first: int, lines: Sequence[str], wanted: Set[int]
) -> list[tuple[int, int, str]]:
    """First and last line number and title of each of the largest blocks of a file, in order.

    Args:
        path: The file, whose suffix tells Markdown.
        first: Number of the first line.
        lines: The known lines.
        wanted: Numbers of lines; blocks without any of them are left out.
    """
    depths = list(_depths(path, lines))
    blocks: list[tuple[int, int, int]] = []
    before = list(accumulate((n in wanted for n in range(first, first + len(lines))), initial=0))
    divided = 0
    for start, end, nesting in sorted(_blocks(depths, lines)):
        size, title = end - start + 1, lines[start].strip()
        if start < divided or size < _LEAST_LINES or title.startswith(_CLOSING):
            continue
        divided = 0 if size > _WHOLE_LINES else end + 1
        if any(map(str.isalnum, title)) and before[end + 1] > before[start]:
            blocks.append((start, end, nesting))
    blocks.sort(key=lambda block: (block[0] - block[1]) / _NESTED ** block[2])
    most = min(max(len(lines) // _LINES_EACH, 1), _MOST)
    largest = sorted(blocks[:most])
    titles = [one_line(lines[start].strip().rstrip(" {:"), _TITLE_CHARS) for start, *_ in largest]
    return [
        (first + start, first + end, title)
        for (start, end, _), title in zip(largest, titles, strict=True)
    ]


def titles_above(path: str, lines: Sequence[str], at: int, seen: set[int]) -> str:
    """The first lines of the two outermost blocks that line `at` is inside of; may be empty.

    Args:
        path: The file, whose suffix tells Markdown.
        lines: The known lines.
        at: An index in them; of a blank line, the next one counts.
        seen: Indexes of lines that are left out; the others are added to it.
    """
    at = next((n for n in range(at, len(lines)) if lines[n].strip()), at)
    around = sorted(b for b in _blocks([*_depths(path, lines)], lines) if b[0] < at <= b[1])
    starts = [start for start, *_ in around if not lines[start].lstrip().startswith(_CLOSING)]
    new = [start for start in starts[:2] if start not in seen]
    seen.update(new)
    return " > ".join(one_line(lines[start], _TITLE_ABOVE_CHARS) for start in new)


def block_around(
    path: str, lines: Sequence[str], first: int, last: int, most: int
) -> tuple[int, int]:
    """First and last index of the largest block of up to `most` lines with lines `first` to `last`.

    If there is none, `first` and `last`.
    """
    blocks = ((start, end) for start, end, _ in _blocks([*_depths(path, lines)], lines))
    around = [(start, end) for start, end in blocks if start <= first <= last <= end < start + most]
    return min(around, default=(first, last))


def _depths(path: str, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    is_markdown = PurePath(path).suffix.lower() in _MARKDOWN
    return _heading_depths(lines) if is_markdown else _indents(lines)


def _heading_depths(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Index and level of each heading."""
    is_fenced = False
    for at, line in enumerate(lines):
        is_fenced ^= bool(_FENCE.match(line))
        if not is_fenced and (heading := _HEADING.match(line)):
            yield at, len(heading[1])


def _indents(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Index and indentation of each line that begins something."""
    for at, line in enumerate(lines):
        plain = line.expandtabs(4)
        if text := plain.strip():
            yield at, len(plain) - len(plain.lstrip()) + text.startswith(_CLOSING)


def _blocks(
    depths: Sequence[tuple[int, int]], lines: Sequence[str]
) -> Iterator[tuple[int, int, int]]:
    """First and last index of each line and the deeper ones below it, and its nesting."""
    open_blocks: list[tuple[int, int]] = []
    for at, depth in (*depths, (len(lines), -1)):
        while open_blocks and open_blocks[-1][1] >= depth:
            start, _ = open_blocks.pop()
            end = at - 1
            while end > start and not lines[end].strip():
                end -= 1
            yield start, end, len(open_blocks)
        open_blocks.append((at, depth))
