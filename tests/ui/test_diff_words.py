from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.ui.diff_view import MAX_PAIRINGS, Marks, find_changed_words
from tests.support.rows import each_row


def marked(line: str, marks: Marks) -> str:
    """`line` with its changed pieces in brackets."""
    for start, end in reversed(marks):
        line = f"{line[:start]}[{line[start:end]}]{line[end:]}"
    return line


def changes(removed: list[str], added: list[str]) -> tuple[list[str], list[str]]:
    old, new = find_changed_words(removed, added)
    return (
        [marked(*pair) for pair in zip(removed, old, strict=True)],
        [marked(*pair) for pair in zip(added, new, strict=True)],
    )


@each_row(
    ("old", "new", "shown"),
    [
        ("parse(argv)", "parse(argv, 1)", ("parse(argv)", "parse(argv[, 1])")),
        ("def old_name(a):", "def new_name(a):", ("def [old_name](a):", "def [new_name](a):")),
        ("if a is b or c:", "if a in c or c:", ("if a [is b] or c:", "if a [in c] or c:")),
        ("  x = one(1)", "      x = one(1)", ("  x = one(1)", "      x = one(1)")),
        ("import os", "class Parser:", ("import os", "class Parser:")),
        ("", "", ("", "")),
    ],
)
def test_only_what_changed_is_marked(old: str, new: str, shown: tuple[str, str]):
    assert changes([old], [new]) == ([shown[0]], [shown[1]])


def test_lines_are_paired_by_what_they_have_in_common():
    old, new = changes(
        ["    args = parse(argv)", "    return run(args)"],
        ["    args = parse(argv[1:])", "    if args.version:", "    return run(args, 1)"],
    )
    assert old == ["    args = parse(argv)", "    return run(args)"]
    assert new == [
        "    args = parse(argv[[1:]])",
        "    if args.version:",
        "    return run(args[, 1])",
    ]


def test_a_large_change_of_as_many_lines_is_paired_one_by_one():
    count = MAX_PAIRINGS
    old, new = changes(
        [f"call(a, {n})" for n in range(count)], [f"call(b, {n})" for n in range(count)]
    )
    assert old[-1] == f"call([a], {count - 1})"
    assert new[0] == "call([b], 0)"
    assert changes(["x = 1"] * count, ["x = 2"] * (count + 1))[0] == ["x = 1"] * count


def test_long_lines_are_marked_from_the_first_to_the_last_difference():
    words = [f"w{n}" for n in range(1_000)]
    old, new = " ".join(["a", *words, "b"]), " ".join(["a", *words[:9], "X", *words[10:], "b"])
    assert changes([old], [new]) == ([old.replace("w9 ", "[w9] ")], [new.replace("X", "[X]")])


line = st.text(st.sampled_from("ab (),.\t=_"), max_size=30)


@settings(deadline=None, max_examples=60)
@given(st.lists(line, max_size=4), st.lists(line, max_size=4))
def test_marks_are_in_order_inside_their_lines_and_equal_lines_have_none(
    removed: list[str], added: list[str]
):
    for lines, marks in zip((removed, added), find_changed_words(removed, added), strict=True):
        for text, spans in zip(lines, marks, strict=True):
            borders = [border for span in spans for border in span]
            assert borders == sorted(set(borders))
            assert not borders or (borders[0] >= 0 and borders[-1] <= len(text))
    assert find_changed_words(removed, removed) == ([()] * len(removed), [()] * len(removed))
