"""The union of a session and its copy: what is here stays, and what is new is added beside it."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.sharing.merging import Merge, merge_entries
from agent_tui.sessions.entries import Entry, leaf_of
from tests.support.session_values import chain, entry, user

BASE = chain(entry(user("one")), entry(user("two")))


def said(text: str, own_id: str, parent: str | None, second: int) -> Entry:
    when = f"2026-03-02T09:00:{second:02}.000Z"
    changes = {"id": own_id, "parent_id": parent, "timestamp": when}
    return entry(user(text)).model_copy(update=changes)


def merge(local: Sequence[Entry], incoming: Sequence[Entry]) -> Merge:
    return merge_entries(local, incoming, lambda own, other: bare([own]) == bare([other]))


def pulled(item: Entry) -> Entry:
    return item.model_copy(update={"pulled_from": "Ada L"})


def test_only_what_is_missing_is_added_in_its_order() -> None:
    new = [said("three", "a3", BASE[-1].id, 3), said("four", "a4", "a3", 4)]
    merged = merge(BASE, [*BASE, *new])
    assert merged.added == tuple(new)
    assert merged.stays
    assert not merge((), BASE).stays
    assert not merge(list(map(pulled, BASE)), new).stays
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


def test_another_entry_with_its_id_keeps_no_entry_out() -> None:
    tip = BASE[-1].id
    first, second = said("one", "a1", tip, 3), said("two", "a2", "a1", 4)
    circle, lost = said("evil", "a1", "a2", 1), said("evil", "a2", "nowhere", 1)
    merged = merge(BASE, [circle, lost, first, second, circle])
    assert merged.added == (first, second)
    assert merged.waiting == 0


def test_an_entry_here_is_never_replaced() -> None:
    other = BASE[0].model_copy(update={"message": user("something else")})
    merged = merge(BASE, [other])
    assert merged.added == ()
    assert merged.differing == (BASE[0].id,)


def test_a_session_continues_where_its_user_left_it_whatever_the_time_of_what_is_pulled() -> None:
    own = [*BASE, said("here", "h1", BASE[-1].id, 1)]
    future = said("there", "t1", "h1", 59).model_copy(update={"timestamp": "9999-01-01T00:00:00Z"})
    for incoming in ([future], [said("older", "t0", BASE[0].id, 0)]):
        together = [*own, *map(pulled, merge(own, incoming).added)]
        assert leaf_of(together) is own[-1]
        going_on = said("more", "h2", "h1", 2)
        assert leaf_of([*together, going_on]) is going_on


def test_a_session_that_was_only_pulled_continues_with_what_was_pushed_last() -> None:
    there = list(map(pulled, BASE))
    newer = pulled(said("newer", "t1", BASE[0].id, 0))
    assert leaf_of([*there, newer]) is newer
    assert leaf_of(()) is None


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, str, int]]:
    """Steps of two clones: which one, whether it writes or pulls, and below which entry."""
    step = st.tuples(st.integers(0, 1), st.sampled_from(["write", "pull"]), st.integers(0, 30))
    return draw(st.lists(step, max_size=20))


def bare(items: Sequence[Entry]) -> dict[str, Entry]:
    return {item.id: item.model_copy(update={"pulled_from": None}) for item in items}


@given(histories())
def test_clones_that_pull_from_each_other_end_with_the_same_entries_each_at_its_place(
    steps: list[tuple[int, str, int]],
) -> None:
    clones: list[list[Entry]] = [list(BASE), list(BASE)]
    written = set(map(lambda item: item.id, BASE))

    def pull(own: list[Entry], other: list[Entry]) -> None:
        before, leaf = list(own), leaf_of(own)
        own += map(pulled, merge(own, list(bare(other).values())).added)
        assert own[: len(before)] == before
        assert leaf_of(own) is leaf

    for number, (which, doing, place) in enumerate(steps):
        own, other = clones[which], clones[1 - which]
        if doing == "write":
            leaf = leaf_of(own)
            assert leaf is not None
            parent = own[place % len(own)].id if place % 3 == 0 else leaf.id
            own.append(said(f"{number}", f"n{number:04}", parent, (place * 7) % 60))
            written.add(own[-1].id)
        else:
            pull(own, other)
    for _ in range(2):
        pull(clones[0], clones[1])
        pull(clones[1], clones[0])
    assert bare(clones[0]) == bare(clones[1])
    assert bare(clones[0]).keys() >= written
    for clone in clones:
        known: set[str | None] = {None}
        for item in clone:
            assert item.parent_id in known
            known.add(item.id)
