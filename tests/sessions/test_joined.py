"""The tree of a session and those before it: what is a copy, and where a branch ends."""

from agent_tui.sessions.entries import CompactionEntry, Entry, MessageEntry
from agent_tui.sessions.lineage.joined import JoinedTree, copies, leaf_when_continued
from agent_tui.sessions.lineage.known_session import KnownSession
from tests.support.session_values import chain, entry, header, reply, user


def at(day: int, item: MessageEntry, **fields: object) -> MessageEntry:
    return item.model_copy(update={"timestamp": f"2026-03-{day:02}T00:00:00.000Z", **fields})


EARLIER = chain(
    at(1, entry(user("first")), id="E1"),
    at(2, entry(reply("second")), id="E2"),
    at(3, entry(user("third")), id="E3"),
)
BEGUN = "2026-03-10T00:00:00.000Z"
COMPACTION = CompactionEntry(id="C", timestamp=BEGUN, summary="so far", first_kept_entry_id="E3")
OWN = (
    at(11, entry(user("go")), id="U"),
    at(12, entry(reply("done")), id="A"),
)


def known(*entries: Entry, **fields: object) -> KnownSession:
    return KnownSession(header(**fields), None, entries)


def child(*entries: Entry) -> KnownSession:
    return known(*entries, id="child", parent_session="parent", timestamp=BEGUN)


def pulled(own_id: str) -> MessageEntry:
    """What somebody pushed below the own reply, with a time before the session began."""
    return at(1, entry(user("theirs")), id=own_id, parent_id="A", pulled_from="Eve")


def test_copies_follow_the_compaction_and_the_branch_ends_behind_them() -> None:
    session = child(*chain(COMPACTION, EARLIER[2], *OWN))
    assert copies(session, known(*EARLIER)) == {"E3"}
    tree = JoinedTree([session], "A", is_whole=False)
    assert [item.id for item in tree.entries] == ["C", "U", "A"]
    assert tree.place("C").leaf_id == "E3"
    both = JoinedTree([known(*EARLIER), session], "A", is_whole=True)
    assert [item.id for item in both.path] == ["E1", "E2", "E3", "C", "U", "A"]


def test_a_pulled_entry_with_an_old_time_is_no_copy_and_moves_no_place() -> None:
    session = child(*chain(COMPACTION, *OWN), pulled("P"))
    tree = JoinedTree([session], "A", is_whole=False)
    assert tree.has("P")
    assert tree.place("A").leaf_id == "A"


def test_a_pulled_entry_with_an_earlier_id_does_not_move_the_leaf_there() -> None:
    earlier, session = known(*EARLIER), child(*chain(COMPACTION, *OWN), pulled("E1"))
    assert leaf_when_continued(earlier, session) == "E3"
    tree = JoinedTree([earlier, session], "A", is_whole=True)
    assert [item.id for item in tree.path] == ["E1", "E2", "E3", "C", "U", "A"]
    assert tree.place("A").leaf_id == "A"
