"""The outline of a file: the headings of Markdown, and the indented blocks of everything else."""

import re
from collections.abc import Iterator, Sequence, Set
from itertools import accumulate
from math import inf
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


def beginnings_above(path: str, lines: Sequence[str], at: int) -> list[int]:
    """The indexes at which the blocks begin that line `at` is inside of, the outermost first.

    Args:
        path: The file, whose suffix tells Markdown.
        lines: The known lines.
        at: An index in them; of a blank line, the next one counts.
    """
    at = next((n for n in range(at, len(lines)) if lines[n].strip()), at)
    above = [*_depths(path, lines[: at + 1])]
    depth = above.pop()[1] if above and above[-1][0] == at else inf
    found: list[int] = []
    for start, outer in reversed(above):
        if outer < depth and not lines[start].lstrip().startswith(_CLOSING):
            found.append(start)
            depth = outer
    return found[::-1]


def titles_above(path: str, lines: Sequence[str], at: int, seen: set[int]) -> str:
    """The first lines of the two outermost blocks that line `at` is inside of; may be empty.

    Those whose indexes are in `seen` are left out, and the others are added to it.
    """
    starts = [one for one in beginnings_above(path, lines, at)[:2] if one not in seen]
    seen.update(starts)
    return " > ".join(one_line(lines[start], _TITLE_ABOVE_CHARS) for start in starts)


def block_around(
    path: str, lines: Sequence[str], first: int, last: int, most: int
) -> tuple[int, int] | None:
    """First and last index of the largest block of up to `most` lines with lines `first` to `last`.

    None if there is none.
    """
    depths = dict(_depths(path, lines))
    for start in (*beginnings_above(path, lines, first), first):
        depth = depths.get(start, 0)
        end = next((n for n, other in depths.items() if n > start and other <= depth), len(lines))
        while end > start + 1 and not lines[end - 1].strip():
            end -= 1
        if last < end <= start + most:
            return start, end - 1
    return None


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
