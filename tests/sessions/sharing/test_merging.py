"""The union of a session and its copy: what is here stays, what is new is added, all converge."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.sessions.entries import Entry
from agent_tui.sessions.sharing.guard import MERGED
from agent_tui.sessions.sharing.merging import Merge, merge_entries
from tests.support.session_values import chain, entry, user

BASE = chain(entry(user("one")), entry(user("two")))


def said(text: str, own_id: str, parent: str | None, second: int) -> Entry:
    when = f"2026-03-02T09:00:{second:02}.000Z"
    changes = {"id": own_id, "parent_id": parent, "timestamp": when}
    return entry(user(text)).model_copy(update=changes)


def merge(local: Sequence[Entry], incoming: Sequence[Entry]) -> Merge:
    return merge_entries(local, incoming, lambda own, other: own == other)


def last_said(entries: Sequence[Entry]) -> str:
    """The newest message on the branch that a reader continues: that of the last line."""
    by_id = {item.id: item for item in entries}
    present: Entry | None = entries[-1]
    while present is not None and present.type != "message":
        present = by_id.get(present.parent_id or "")
    return present.id if present is not None else ""


def test_only_what_is_missing_is_added_in_its_order() -> None:
    new = [said("three", "a3", BASE[-1].id, 3), said("four", "a4", "a3", 4)]
    merged = merge(BASE, [*BASE, *new])
    assert merged.added == tuple(new)
    assert not merged.has_branched
    assert merge([*BASE, *new], BASE).added == ()


def test_an_entry_comes_after_its_parent() -> None:
    first, second = said("three", "a3", BASE[-1].id, 3), said("four", "a4", "a3", 4)
    assert merge(BASE, [second, first]).added == (first, second)


def test_an_entry_without_a_parent_here_waits() -> None:
    lost = said("x", "a5", "nowhere", 5)
    circle = (said("y", "b1", "b2", 5), said("z", "b2", "b1", 6))
    merged = merge(BASE, [lost, *circle])
    assert merged.added == ()
    assert merged.waiting == 3


def test_an_entry_here_is_never_replaced() -> None:
    other = BASE[0].model_copy(update={"message": user("something else")})
    merged = merge(BASE, [other])
    assert merged.added == ()
    assert merged.differing == (BASE[0].id,)


def test_both_continue_on_the_branch_with_the_newest_message() -> None:
    tip = BASE[-1].id
    here, there = [*BASE, said("here", "h1", tip, 9)], [*BASE, said("there", "t1", tip, 5)]
    first, second = merge(here, there), merge(there, here)
    assert first.has_branched
    assert second.has_branched
    after_here, after_there = [*here, *first.added], [*there, *second.added]
    assert last_said(after_here) == last_said(after_there) == "h1"
    (mark,) = [item for item in after_here if getattr(item, "custom_type", "") == MERGED]
    assert mark.parent_id == "h1"
    settled = merge(after_there, after_here)
    assert settled.added == (mark,)
    assert merge(after_here, [*after_there, *settled.added]).added == ()


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, str, int]]:
    """Steps of two clones: which one, whether it writes or pulls, and below which entry."""
    step = st.tuples(st.integers(0, 1), st.sampled_from(["write", "pull"]), st.integers(0, 30))
    return draw(st.lists(step, max_size=20))


@given(histories())
def test_clones_that_pull_from_each_other_end_with_the_same_entries(
    steps: list[tuple[int, str, int]],
) -> None:
    clones: list[list[Entry]] = [list(BASE), list(BASE)]
    written = set(map(lambda item: item.id, BASE))
    for number, (which, doing, place) in enumerate(steps):
        own, other = clones[which], clones[1 - which]
        if doing == "write":
            parent = own[place % len(own)].id if place % 3 == 0 else own[-1].id
            own.append(said(f"{number}", f"n{number:04}", parent, (place * 7) % 60))
            written.add(own[-1].id)
        else:
            before = list(own)
            own += merge(own, other).added
            assert own[: len(before)] == before
    for _ in range(2):
        clones[0] += merge(clones[0], clones[1]).added
        clones[1] += merge(clones[1], clones[0]).added
    first, second = ({item.id: item for item in clone} for clone in clones)
    assert first == second
    assert first.keys() >= written
    assert last_said(clones[0]) == last_said(clones[1])
    for clone in clones:
        known: set[str | None] = {None}
        for item in clone:
            assert item.parent_id in known
            known.add(item.id)
