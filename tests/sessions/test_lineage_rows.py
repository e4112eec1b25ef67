from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.sessions.listing import MOST_GUIDES, lineage_rows
from tests.support.session_files import NEWEST, summary


def shown(*sessions) -> list[str]:
    return [row.guides + row.summary.id for row in lineage_rows(sessions)]


def test_a_session_stands_below_the_one_it_goes_on_from() -> None:
    sessions = (summary("c", "b"), summary("b", "a", age_s=1), summary("a", age_s=2))
    assert shown(*sessions) == ["a", "└─ b", "   └─ c"]
    assert [row.depth for row in lineage_rows(sessions)] == [0, 1, 2]


def test_the_newest_of_a_chain_decides_its_place() -> None:
    old_root = summary("old", age_s=100)
    its_child = summary("child", "old", age_s=1)
    middle = summary("middle", age_s=50)
    newest = summary("newest", age_s=0)
    rows = lineage_rows([middle, old_root, its_child, newest])
    assert [row.summary.id for row in rows] == ["newest", "old", "child", "middle"]
    assert rows[1].newest == datetime.fromtimestamp(NEWEST - 1, UTC)


def test_forks_are_branches_the_newest_activity_first() -> None:
    sessions = (
        summary("a", age_s=9),
        summary("b", "a", age_s=8),
        summary("c", "a", age_s=5),
        summary("d", "b", age_s=1),
    )
    assert shown(*sessions) == ["a", "├─ b", "│  └─ d", "└─ c"]
    assert [row.is_last for row in lineage_rows(sessions)] == [True, False, True, True]


def test_a_parent_is_known_by_path_name_or_id_wherever_it_has_moved() -> None:
    parent = summary("p", folder="/new")
    for named in ("/new/stamp_p.jsonl", "/old/stamp_p.jsonl", "stamp_p.jsonl", "p"):
        assert shown(parent, summary("c", named, folder="/new")) == ["p", "└─ c"]
        assert shown(parent, summary("c", named, folder="/other")) == ["p", "└─ c"]


def test_of_two_copies_of_a_parent_the_one_beside_its_child_is_meant() -> None:
    copies = (summary("p", folder="/one", age_s=3), summary("p", folder="/two", age_s=4))
    rows = lineage_rows([*copies, summary("c", "p", folder="/two", age_s=5)])
    assert [str(row.summary.path.parent) for row in rows] == ["/one", "/two", "/two"]


def test_a_session_whose_parent_is_gone_begins_a_chain() -> None:
    assert shown(summary("c", "/gone/stamp_x.jsonl"), summary("d", "c")) == ["c", "└─ d"]


def test_a_circle_begins_with_its_oldest() -> None:
    circle = (summary("a", "c", age_s=1), summary("b", "a", age_s=9), summary("c", "b", age_s=5))
    assert shown(*circle, summary("x", "x")) == ["x", "b", "└─ c", "   └─ a"]


def test_a_very_long_chain_stays_within_the_line() -> None:
    chain = [summary("0"), *(summary(str(n), str(n - 1)) for n in range(1, 3_000))]
    rows = lineage_rows(chain)
    assert [row.summary.id for row in rows] == [found.id for found in chain]
    assert max(len(row.guides) for row in rows) == 3 * MOST_GUIDES


@given(st.lists(st.tuples(st.integers(0, 12), st.none() | st.integers(0, 12)), max_size=14))
def test_every_session_comes_once_and_after_its_parent(drawn) -> None:
    sessions = [
        summary(
            str(one), None if parent is None else str(parent), folder=f"/{number}", age_s=number
        )
        for number, (one, parent) in enumerate(drawn)
    ]
    rows = lineage_rows(sessions)
    assert sorted(row.summary.path for row in rows) == sorted(one.path for one in sessions)
    depth = -1
    for row in rows:
        assert 0 <= row.depth <= depth + 1
        depth = row.depth
        assert row.newest >= row.summary.modified
