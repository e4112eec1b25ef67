"""An answer is read however a model lays it out, and only what exists can be kept."""

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.curation.answer import Pick
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.features.curation.reading import read_answer
from tests.support.rows import each_row

NOTES = "## Goal\nBuild the parser.\n\n## Next Steps\n1. Test it."


def piece(number: int, first: int = 1, lines: int = 40) -> Piece:
    text = tuple(f"line {number}" for number in range(first, first + lines))
    return Piece(
        number, f"e{number}", "result", f"read f{number}.py", text, first, 100, f"f{number}.py"
    )


PIECES = (piece(1), piece(2, first=100), piece(7), piece(12))
ONE, TWO, SEVEN, TWELVE = PIECES


@each_row(
    "text",
    [
        f"<notes>\n{NOTES}\n</notes>\n\n<keep>\n#2 105-110\n#7\n</keep>",
        f"Here you are.\n<notes>\n{NOTES}\n</notes>\n<keep>\n#2 105-110\n#7\n",
        f"<notes>{NOTES}\n<keep>\n- #2 lines 105–110\n- #7 (the task)\n</keep>",
        f"```\n<notes>\n{NOTES}\n</notes>\n<keep>\n2: 105 - 110\n7\n</keep>\n```",
        f"{NOTES}\n\n## Keep\n`#2` L105-L110\n* #7",
        f"<Notes>\n{NOTES}\n</Notes>\n<Keep>\n#2, 105-110 the signature\n#7 - whole\n</Keep>",
    ],
)
def test_notes_and_list_are_found_whatever_is_around_them(text: str) -> None:
    answer = read_answer(text.replace("`#2`", "#2"), PIECES)
    assert answer.notes == NOTES
    assert answer.picks == (Pick(TWO, ((105, 110),)), Pick(SEVEN))
    assert answer.unknown == 0


def test_what_does_not_exist_is_counted_and_not_kept() -> None:
    answer = read_answer("<keep>\n#3\n#99 1-5\n#2 1-50\n#1 30-400\n#1 30-400\n</keep>", PIECES)
    assert answer.picks == (Pick(ONE, ((30, 40),)),)
    assert answer.unknown == 3


def test_a_number_of_any_length_names_nothing() -> None:
    digits = "9" * 5_000
    assert read_answer(f"<keep>\n#{digits}\n#1 {digits}-{digits}\n</keep>", PIECES).picks in (
        (),
        (Pick(ONE),),
    )


def test_several_parts_of_one_text_stay_in_the_order_of_need() -> None:
    answer = read_answer("<keep>\n#2 130-135, 101-103\n#1 1-40\n</keep>", PIECES)
    assert answer.picks == (Pick(TWO, ((130, 135), (101, 103))), Pick(ONE))


@each_row(
    "line",
    ["#2 101, 103-105, 109", "#2 lines 101, L103-L105 (109)", "#2 101,103-105,109"],
)
def test_a_single_line_is_a_part(line: str) -> None:
    answer = read_answer(f"<keep>\n{line}\n</keep>", PIECES)
    assert answer.picks == (Pick(TWO, ((101, 101), (103, 105), (109, 109))),)


@each_row("line", ["#2 101-103, 421 tokens", "#2 101-103, 1,102 tokens (105 per 50 lines)"])
def test_a_size_copied_from_the_list_is_no_part(line: str) -> None:
    answer = read_answer(f"<keep>\n{line}\n</keep>", PIECES)
    assert answer.picks == (Pick(TWO, ((101, 103),)),)


def test_without_a_list_all_is_notes() -> None:
    answer = read_answer(NOTES, PIECES)
    assert (answer.notes, answer.picks) == (NOTES, ())


@given(st.text())
def test_anything_can_be_read(text: str) -> None:
    answer = read_answer(text, PIECES)
    for pick in answer.picks:
        last = pick.piece.first + len(pick.piece.lines) - 1
        assert all(pick.piece.first <= a <= b <= last for a, b in pick.spans)
