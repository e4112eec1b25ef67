"""Lines that were seen earlier are found where they are now."""

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.curation.present_lines import (
    end_of_paragraph,
    lines_now,
    present_runs,
)
from agent_tui.compaction.sections.file_states import FileState
from tests.support.rows import each_row

LINES = [f"value_{number} = {number}" for number in range(1, 61)]


@each_row(
    ("now", "span", "expected"),
    [
        (LINES, (5, 7), [(5, 7)]),
        (["# new", *LINES], (5, 7), [(6, 8)]),
        (["def all():", *(f"    {line}" for line in LINES)], (5, 7), [(6, 8)]),
        ([*LINES[:3], *LINES[5:]], (3, 8), [(3, 6)]),
        ([*LINES[:5], "a", "b", *LINES[6:]], (5, 7), [(5, 8)]),
        ([*LINES[:7], "a", "b", *LINES[7:]], (5, 7), [(5, 9)]),
        (["other"] * 60, (5, 7), []),
        ([*LINES[:5], *["new"] * 40, *LINES[5:]], (5, 7), [(5, 47)]),
        ([*LINES[:5], *["new"] * 400, *LINES[5:]], (4, 7), [(4, 5), (406, 407)]),
        ([*LINES[:9], *["new"] * 400, *LINES[9:]], (1, 10), [(1, 9)]),
        ([*LINES[:9], "all", "new", *LINES[15:]], (10, 15), [(10, 11)]),
        ([*LINES[:9], *LINES[15:]], (10, 15), []),
    ],
)
def test_lines_are_found_where_they_are_now(
    now: list[str], span: tuple[int, int], expected: list[tuple[int, int]]
) -> None:
    found = lines_now((1, LINES), *span, [(1, now)])
    assert found == [(first, tuple(now[first - 1 : last])) for first, last in expected]


def test_what_the_log_shows_of_a_file_is_found_on_the_disk() -> None:
    file = FileState("a.py", runs=[(3, LINES[2:10]), (0, LINES[30:35])])
    now = ["# new", *LINES]
    assert present_runs(file, lambda _: "\n".join(now)) == [
        (4, tuple(LINES[2:10])),
        (32, tuple(LINES[30:35])),
    ]
    assert present_runs(file, None) == file.runs
    assert present_runs(file, lambda _: None) == file.runs


TEXT = [
    *("# Plan", "", "Some words on it,", "in two lines.", ""),
    *("## First", "- one", "  and more of it", "- two", "  - below two", ""),
    *("3. Third", "", "   its text", "", "4. Fourth", "", "**Fifth**", "ends here", ""),
]


@each_row(
    ("last", "end"),
    [
        ("Some words on it,", "in two lines."),
        ("in two lines.", "in two lines."),
        ("## First", "  - below two"),
        ("- one", "  and more of it"),
        ("  and more of it", "  and more of it"),
        ("- two", "  - below two"),
        ("  - below two", "  - below two"),
        ("3. Third", "   its text"),
        ("4. Fourth", "4. Fourth"),
        ("**Fifth**", "ends here"),
        ("# Plan", "in two lines."),
    ],
)
def test_a_range_is_extended_to_the_end_of_its_paragraph_or_item(last: str, end: str) -> None:
    assert TEXT[end_of_paragraph(TEXT, TEXT.index(last) - 9, TEXT.index(last))] == end


@given(lines=st.lists(st.sampled_from(["", "text", "- item", "  - item", "# head", "  text"])))
def test_at_most_twenty_lines_are_added(lines: list[str]) -> None:
    for last in range(len(lines)):
        for first in range(last + 1):
            most = min(20, last - first + 1, len(lines) - 1 - last)
            assert last <= end_of_paragraph(lines, first, last) <= last + most
