"""Finding the text in a file that comes nearest to one that is not in it."""

from rapidfuzz import fuzz

from agent_tui.tools.shorten import cut_line

_MAX_LINES_SEARCHED = 20_000
_MAX_LINES_SHOWN = 12
_WORTH_SHOWING = 60.0
"""Similarity in percent below which a place is not what was meant."""


def describe_nearest(text: str, wanted: str) -> str:
    """Where `wanted` nearly occurs in `text` and what differs, for the model to mend its call."""
    lines = text.split("\n")[:_MAX_LINES_SEARCHED]
    sought = wanted.strip("\n").split("\n")
    start, score = _nearest_window(lines, sought)
    if score < _WORTH_SHOWING:
        return "Nothing in it comes near. Read the file again."
    window = lines[start : start + len(sought)]
    shown = "\n".join(
        f"{number}\t{cut_line(line, 300)}"
        for number, line in enumerate(window[:_MAX_LINES_SHOWN], start=start + 1)
    )
    last = start + len(window)
    place = f"line {last}" if len(window) == 1 else f"lines {start + 1}-{last}"
    return f"{_difference(window, sought)} Nearest text, {place}:\n{shown}"


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


def _difference(found: list[str], sought: list[str]) -> str:
    """One sentence on what keeps two runs of lines apart."""
    if [line.rstrip() for line in found] == [line.rstrip() for line in sought]:
        return "Only spaces at line ends or the blank lines around it differ."
    if [line.strip() for line in found] == [line.strip() for line in sought]:
        has_tabs = any("\t" in _indent(line) for line in found)
        wants_tabs = any("\t" in _indent(line) for line in sought)
        if has_tabs != wants_tabs:
            used = "tabs" if has_tabs else "spaces"
            return f"Only the indentation differs: the file uses {used}."
        return "Only the indentation differs."
    if ["".join(line.split()) for line in found] == ["".join(line.split()) for line in sought]:
        return "Only whitespace within lines differs."
    if [line.casefold() for line in found] == [line.casefold() for line in sought]:
        return "Only upper and lower case differ."
    for number, (have, want) in enumerate(zip(found, sought, strict=False), start=1):
        if have != want:
            return f"It first differs in line {number} of the text you gave."
    return "The file ends earlier."


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
