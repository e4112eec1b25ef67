"""Hunks in other versions of their file: they are found, applied and taken back exactly."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.review.changes import Hunk, find_hunks, split_lines
from agent_tui.features.review.hunk_places import place_hunks, switch_place

LINES = st.lists(st.sampled_from("ab"), max_size=9)
TEXTS = st.builds(
    lambda lines, ends: "\n".join(lines) + ("\n" if ends and lines else ""), LINES, st.booleans()
)
FAR = "".join(f"{n}\n" for n in range(8))
PARTED = st.tuples(TEXTS.filter(lambda text: text.endswith("\n")), TEXTS).map(FAR.join)


def switch(index: list[str], old: list[str], new: list[str], hunk: Hunk) -> list[str] | None:
    hunks = list(find_hunks(old, new))
    place = place_hunks(index, old, new, hunks)[hunks.index(hunk)]
    return switch_place(index, old, new, hunk, place) if place is not None else None


def applied(index: list[str], old: list[str], new: list[str]) -> list[bool | None]:
    places = place_hunks(index, old, new, list(find_hunks(old, new)))
    return [place.is_applied if place else None for place in places]


@given(PARTED | TEXTS, PARTED | TEXTS, st.randoms(use_true_random=False))
def test_all_hunks_lead_to_the_file_and_back_to_the_last_commit(
    head: str, file: str, random: Random
):
    old, new = split_lines(head), split_lines(file)
    hunks = list(find_hunks(old, new))
    index = old
    for wanted, end in ((True, new), (False, old)):
        for _ in hunks:
            states = applied(index, old, new)
            assert None not in states
            left = [hunk for hunk, is_on in zip(hunks, states, strict=True) if is_on != wanted]
            if not left:
                break
            switched = switch(index, old, new, random.choice(left))
            assert switched is not None
            index = switched
        assert index == end


@given(PARTED | TEXTS, PARTED | TEXTS, PARTED | TEXTS)
def test_a_hunk_changes_nothing_else_whatever_the_index_has(head: str, index: str, file: str):
    old, new, text = split_lines(head), split_lines(file), split_lines(index)
    for hunk in find_hunks(old, new):
        switched = switch(text, old, new, hunk)
        if switched is None:
            continue
        changed = [[line.text for line in hunk.lines if line.sign in sign] for sign in (" -", " +")]
        sizes = {len(changed[0]) - len(changed[1]), len(changed[1]) - len(changed[0])}
        assert len(text) - len(switched) in sizes
        assert switch(switched, old, new, hunk) in (text, None)


def test_equal_lines_are_staged_not_unstaged():
    old, new = ["row\n"] * 4, ["row\n"] * 5
    (hunk,) = find_hunks(old, new)
    assert applied(old, old, new) == [False]
    assert switch(old, old, new, hunk) == new
    assert switch(new, old, new, hunk) == old


def test_a_line_added_at_the_end_is_not_added_twice():
    old, new = ["a\n", "b\n", "c\n"], ["a\n", "b\n", "c\n", "d\n"]
    assert applied(new, old, new) == [True]
    assert applied(old, old, new) == [False]


def test_other_lines_of_the_index_stay():
    old = [f"{n}\n" for n in range(30)]
    new = [*old[:20], "new\n", *old[20:]]
    index = ["of the index\n", *old]
    (hunk,) = find_hunks(old, new)
    assert switch(index, old, new, hunk) == ["of the index\n", *new]
    assert switch(["of the index\n", *new], old, new, hunk) == index
    assert switch(["something else\n"], old, new, hunk) is None
