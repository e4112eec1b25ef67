"""Finding the text in a file that comes nearest to one that is not in it."""

from rapidfuzz import fuzz

from agent_tui.omissions import marks_in
from agent_tui.tools.shorten import cut_line

_MAX_LINES_SEARCHED = 20_000
_MAX_LINES_SHOWN = 12
_WORTH_SHOWING = 60.0
"""Similarity in percent below which a place is not what was meant."""


def describe_miss(text: str, wanted: str) -> str:
    """Why `wanted` is not in `text`, and what comes nearest, for the model to mend its call."""
    if marks := marks_in(wanted):
        return (
            f"It contains {marks[0][-200:]!r}, a placeholder for text left out of this "
            "conversation. Read the file again."
        )
    lines = text.split("\n")[:_MAX_LINES_SEARCHED]
    sought = wanted.strip("\n").split("\n")
    start, score = _nearest_window(lines, sought)
    if score < _WORTH_SHOWING:
        return "Nothing similar is in it. Read the file again."
    window = lines[start : start + len(sought)]
    shown = "\n".join(
        f"{number}\t{cut_line(line, 300)}"
        for number, line in enumerate(window[:_MAX_LINES_SHOWN], start=start + 1)
    )
    last = start + len(window)
    place = f"line {last}" if len(window) == 1 else f"lines {start + 1}-{last}"
    return f"{_difference(window, sought, start + 1)} Nearest text, {place}:\n{shown}"


def _nearest_window(lines: list[str], sought: list[str]) -> tuple[int, float]:
    """Start (from 0) of the run of lines most like `sought`, and how like it is in percent.

    The most telling sought line picks candidates, so that the work stays linear in the file.
    """
    anchor = max(range(len(sought)), key=lambda index: len(sought[index].strip()))
    target = sought[anchor].strip()
    ranked = sorted(
        ((fuzz.ratio(line.strip(), target), index) for index, line in enumerate(lines)),
        key=lambda pair: (-pair[0], pair[1]),
    )
    best_start, best_score = 0, 0.0
    joined = "\n".join(line.strip() for line in sought)
    for _, index in ranked[:20]:
        start = max(0, index - anchor)
        window = "\n".join(line.strip() for line in lines[start : start + len(sought)])
        score = fuzz.ratio(window, joined)
        if score > best_score:
            best_start, best_score = start, score
    return best_start, best_score


def _difference(found: list[str], sought: list[str], first: int) -> str:
    """One sentence on what keeps two runs of lines apart; `first` is the number of `found[0]`."""
    if ["".join(line.split()) for line in found] == ["".join(line.split()) for line in sought]:
        return "Only whitespace within lines differs."
    if [line.casefold() for line in found] == [line.casefold() for line in sought]:
        return "Only upper and lower case differ."
    for index, (have, want) in enumerate(zip(found, sought, strict=False)):
        if have.split() != want.split():
            return (
                f"Line {index + 1} of the text you gave, {cut_line(want, 200)!r}, differs from "
                f"line {first + index}."
            )
    return "The file ends before that."
