"""Which change made each line: the true one, or not known, and never another."""

import subprocess
from difflib import SequenceMatcher
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from agent_tui.features.why.line_history.changes import (
    RecordedChange,
    changes_of_file,
    in_order_of_time,
)
from agent_tui.features.why.line_history.kept_lines import lines_of, sources_of
from agent_tui.features.why.line_history.replay import (
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
    """Of equal lines, a difference cannot tell which is new: one of them has the true answer."""
    file = EditedFile([Line(text, EARLIER) for text in data.draw(texts("first"), "first")])
    ever = {*file.lines}
    for step in range(data.draw(st.integers(1, 9), "steps")):
        change_somehow(file, step, data)
        ever |= {*file.lines}
    changes, lines = found(file)
    assert len(lines) == len(file.lines)
    for line, origins in zip(file.lines, lines, strict=True):
        makers = {maker_of(origin, changes) for origin in origins}
        true = {one.maker for one in ever if one.text == line.text}
        assert true & makers or "unknown" in makers
        assert line.text in COMMON or line.maker in makers or "unknown" in makers


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
def test_kept_lines_are_equal_and_in_order(before: list[str], after: list[str]):
    sources = sources_of(before, after)
    pairs = [(line, old) for line, old in zip(after, sources.kept, strict=True) if old is not None]
    places = [old for _, old in pairs]
    assert [before[old] for old in places] == [line for line, _ in pairs]
    assert places == sorted(set(places))
    assert not sources.possible


@given(LINES, LINES)
def test_as_many_lines_are_kept_as_in_a_shortest_difference(before: list[str], after: list[str]):
    """Unless lines that occur once in both texts were moved."""
    kept = sum(old is not None for old in sources_of(before, after).kept)
    least = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    once = [line for line in after if before.count(line) == after.count(line) == 1]
    moved = [line for line in before if line in once] != once
    assert moved or kept >= sum(block.size for block in least) or once


@given(LINES)
def test_an_unchanged_text_keeps_every_line(lines: list[str]):
    assert sources_of(lines, lines).kept == list(range(len(lines)))


def test_a_difference_that_is_too_long_says_what_a_line_may_be():
    before = ["a", "b"] * 400
    after = ["b", "b", "a"] * 300
    sources = sources_of(before, after)
    assert sources.possible
    assert all(before[old] == after[at] for at, olds in sources.possible.items() for old in olds)


def added(before: str, after: str) -> list[int]:
    """The numbers of the added lines."""
    kept = sources_of(lines_of(before), lines_of(after)).kept
    return [at + 1 for at, old in enumerate(kept) if old is None]


def test_of_equal_lines_those_of_the_new_block_are_new():
    one = "def a():\n    if x:\n        return None\n    return None\n"
    two = "def b():\n    if x:\n        return None\n    y()\n    return None\n"
    assert added(one, f"{one}\n\n{two}") == [5, 6, 7, 8, 9, 10, 11]
    assert added(one, f"{two}\n\n{one}") == [1, 2, 3, 4, 5, 6, 7]
    assert added(one, one.replace("a()", "a(x)") + f"\n\n{two}") == [1, *range(5, 12)]
    tested = "@test\ndef a():\n    pass\n"
    assert added(f"{tested}\n{tested}", f"{tested}\n@test\ndef b():\n    pass\n\n{tested}") == [
        *range(5, 9)
    ]


def functions(numbers: range, rest: int) -> list[str]:
    """Short functions in Python or C, which have many equal lines."""
    made: list[str] = []
    for n in numbers:
        if rest % 2:
            body = ["    if x:", "        return None"] * (n % 2) + [f"    y = {n % 3}"] * (
                n % 3 > 0
            )
            made += ["@test"] * (n % 2) + [f"def f{n}():", *body, "    return None", ""]
        else:
            body = ["    if (x) {", "        return 0;", "    }"] * (n % 2)
            made += [f"int f{n}() {{", *body, *["    pass();"] * (n % 3), "    return 0;", "}", ""]
    return made


def test_a_new_function_has_the_lines_that_git_says(tmp_path: Path):
    """Functions that are added or removed at every place of a file."""
    cases: dict[str, tuple[list[str], list[str]]] = {}
    for rest in range(8):
        for size, at, new in product(range(1, 4), range(4), range(7, 10)):
            one = functions(range(rest, rest + min(at, size)), rest)
            two = functions(range(rest + min(at, size), rest + size), rest)
            texts = [*one, *two][:-1], [*one, *functions(range(new + 9, new + 10), rest), *two][:-1]
            cases[f"{rest}-{size}-{at}-{new}"] = (texts[rest // 6], texts[1 - rest // 6])
    for folder in (0, 1):
        (tmp_path / "ab"[folder]).mkdir()
        for name, both in cases.items():
            file = tmp_path / "ab"[folder] / name
            file.write_text("".join(f"{line}\n" for line in both[folder]))
    argv = ["git", "diff", "--no-index", "--no-color", "--no-ext-diff", "-U0", "a", "b"]
    printed = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    by_git: dict[str, list[int]] = {}
    numbers: list[int] = []
    for row in printed.splitlines():
        if row.startswith("diff --git"):
            numbers = by_git.setdefault(row.rpartition("/")[2], [])
        elif row.startswith("@@ "):
            first, _, count = row.split("+")[1].split(" ")[0].partition(",")
            numbers += range(int(first), int(first) + int(count or 1))
    ours = {
        name: [at + 1 for at, old in enumerate(sources_of(*both).kept) if old is None]
        for name, both in cases.items()
    }
    assert len(by_git) == len(ours)
    assert ours == by_git


def test_a_removed_block_is_one_that_a_reader_would_cut_out():
    first, second = ["@test", "def a():", "    pass", ""], ["@test", "def b():", "    pass"]
    assert sources_of([*first, *second], second).kept == [4, 5, 6]
