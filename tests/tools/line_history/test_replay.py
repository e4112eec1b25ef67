"""Which change made each line: the true one, or not known, and never another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from agent_tui.tools.line_history.changes import RecordedChange, changes_of_file, in_order_of_time
from agent_tui.tools.line_history.kept_lines import sources_of
from agent_tui.tools.line_history.replay import (
    Earlier,
    Made,
    Origin,
    Origins,
    Unknown,
    Unrecorded,
    replay_changes,
)
from tests.support.edited_file import EARLIER, OUTSIDE, EditedFile, Line, Record
from tests.support.histories import for_every

RECORDS: tuple[Record, ...] = ("contents", "digests", "diff", "words", "excerpt", "patch")
COMMON = ["", "}", "pass"]


def found(file: EditedFile) -> tuple[list[RecordedChange], list[Origins]]:
    changes = changes_of_file(in_order_of_time(file.known), file.path)
    return changes, list(replay_changes(changes, file.text, file.kept.get).lines)


def maker_of(origin: Origin, changes: list[RecordedChange]) -> str:
    match origin:
        case Made(change, _):
            return changes[change].entry.id
        case Unrecorded():
            return OUTSIDE
        case Earlier():
            return EARLIER
        case Unknown():
            return "unknown"


SOME_OR_MORE = pytest.mark.parametrize(
    "examples", [80, pytest.param(400, marks=pytest.mark.thorough)]
)


@SOME_OR_MORE
def test_the_answer_is_the_true_change_or_not_known(examples: int):
    for_every(st.data(), examples, expect_the_true_change_or_unknown)


def expect_the_true_change_or_unknown(data: DataObject) -> None:
    file = EditedFile([Line(text, EARLIER) for text in data.draw(texts("first"), "first")])
    for step in range(data.draw(st.integers(1, 9), "steps")):
        change_somehow(file, step, data)
    changes, lines = found(file)
    assert len(lines) == len(file.lines)
    for line, origins in zip(file.lines, lines, strict=True):
        makers = {maker_of(origin, changes) for origin in origins}
        assert line.maker in makers or "unknown" in makers


@SOME_OR_MORE
def test_where_contents_are_kept_and_lines_differ_each_is_answered(examples: int):
    for_every(st.data(), examples, expect_the_change_of_each_line)


def expect_the_change_of_each_line(data: DataObject) -> None:
    file = EditedFile([Line(f"first {n}", EARLIER) for n in range(data.draw(st.integers(0, 5)))])
    for step in range(data.draw(st.integers(1, 9), "steps")):
        change_somehow(file, step, data, common=[], records=("contents",))
    changes, lines = found(file)
    for line, origins in zip(file.lines, lines, strict=True):
        assert [maker_of(origin, changes) for origin in origins] == [line.maker]


def change_somehow(
    file: EditedFile,
    step: int,
    data: DataObject,
    common: list[str] = COMMON,
    records: tuple[Record, ...] = RECORDS,
) -> None:
    start = data.draw(st.integers(0, len(file.lines)))
    end = data.draw(st.integers(start, min(start + 3, len(file.lines))))
    replaced = {line.text for line in file.lines[start:end]}
    ways = ["edit", "edit", "edit", "outside", "session", "compact", "move"]
    match data.draw(st.sampled_from(ways + ["undo"] * bool(file.versions)), f"step {step}"):
        case "edit":
            file.record = data.draw(st.sampled_from(records))
            file.writes_whole = data.draw(st.booleans())
            file.context = data.draw(st.integers(0, 2))
            new = data.draw(texts(f"edit {step}", [one for one in common if one not in replaced]))
            file.replace(start, end, new)
        case "outside":
            file.change_outside(start, end, data.draw(texts(f"outside {step}", [])))
        case "undo":
            file.restore(data.draw(st.integers(0, len(file.versions) - 1)))
        case "move":
            file.move(f"/project/{step}.txt")
        case way:
            file.begin(continues=way == "compact")


def texts(name: str, common: list[str] = COMMON) -> st.SearchStrategy[list[str]]:
    """A few lines: some are in the file already, others nowhere else."""
    one = st.integers(0, 3).map(lambda n: common[n] if n < len(common) else "")
    return st.lists(one, max_size=3).map(
        lambda drawn: [text or f"{name}, line {n}" for n, text in enumerate(drawn)]
    )


LINES = st.lists(st.sampled_from("abcde"), max_size=8)


@given(LINES, LINES)
def test_a_kept_line_has_the_same_text_and_only_others_are_new(before: list[str], after: list[str]):
    for line, source in zip(after, sources_of(before, after), strict=True):
        assert all(before[index] == line for index in source.kept)
        assert source.kept or source.may_be_new
        assert source.kept or line not in before or source.may_be_new


@given(LINES)
def test_an_unchanged_text_keeps_every_line(lines: list[str]):
    kept = [(list(source.kept), source.may_be_new) for source in sources_of(lines, lines)]
    assert kept == [([at], False) for at in range(len(lines))]


def test_of_equal_lines_it_does_not_say_which_one_is_new():
    first, second, third = sources_of(["a", "x"], ["a", "a", "x"])
    assert first == second
    assert (first.kept, first.may_be_new) == (frozenset({0}), True)
    assert (third.kept, third.may_be_new) == (frozenset({1}), False)
