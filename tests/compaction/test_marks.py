"""A compaction honours what the user marked."""

from agent_tui.compaction.outcome import child_entries
from agent_tui.compaction.plan import read_live
from agent_tui.config import CompactionSettings
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.replay.marks import Mark, mark_entry, read_marks
from agent_tui.tokens import ExactCounter
from tests.compaction.compacting import compacted, in_place, seen
from tests.support.session_values import chain
from tests.support.talk import Talk

COUNTER = ExactCounter()
SETTINGS = CompactionSettings()
WINDOW = 20_000
SECRET, NEEDED = "The launch word is AMARYLLIS-7.", "Port 8443 must never change."


def long_talk(start: int = 0) -> Talk:
    talk = Talk(prefix=f"t{start}")
    talk.user(SECRET)
    talk.reply("Understood, AMARYLLIS-7 it is.")
    talk.tool("read", {"path": "notes.md"}, f"{NEEDED}\n" + "detail of the notes\n" * 30)
    for number in range(start, start + 24):
        talk.user(f"Please do step {number} of the work.")
        talk.tool("bash", {"command": f"make step{number}"}, f"output {number}\n" * 60)
        talk.reply(f"Step {number} is done.")
    return talk


def with_marks(path: tuple[Entry, ...], marks: dict[str, Mark]) -> tuple[Entry, ...]:
    return chain(*path, *(mark_entry(key, mark) for key, mark in marks.items()))


def told(path: tuple[Entry, ...]) -> str:
    return "\n".join(item.message.text for item in seen(path))


def after(path: tuple[Entry, ...], name: str = "compaction") -> tuple[Entry, ...]:
    result = compacted(path, COUNTER, settings=SETTINGS, window=WINDOW)
    assert result is not None
    return in_place(path, result, name)


def test_what_is_marked_keep_stands_word_for_word_with_its_call():
    path = long_talk().path
    result = next(e for e in path if NEEDED in str(e))
    whole = "detail of the notes\n" * 30
    assert whole not in told(after(path))
    kept = after(with_marks(path, {result.id: "keep"}))
    assert whole.strip() in told(kept)
    assert [item.message.role for item in seen(kept)][1:3] == ["assistant", "toolResult"]


def test_what_is_marked_drop_is_in_no_section_of_the_summary():
    path = long_talk().path
    assert "AMARYLLIS" in told(after(path))
    marked = with_marks(path, {path[0].id: "drop", path[1].id: "drop"})
    assert "AMARYLLIS" not in told(after(marked))


def test_a_dropped_result_is_in_no_section_but_its_call_is_answered():
    path = long_talk().path
    result = next(e for e in path if NEEDED in str(e))
    marked = with_marks(path, {result.id: "drop"})
    assert NEEDED not in told(marked)
    assert NEEDED not in told(after(marked))


def test_pins_are_copied_into_the_sessions_that_compactions_start_and_keeps_are_not():
    path = long_talk().path
    marked = with_marks(path, {path[0].id: "pin", path[1].id: "keep"})
    first = compacted(marked, COUNTER, settings=SETTINGS, window=WINDOW)
    assert first is not None
    child = child_entries(first)
    assert SECRET in told(child)
    assert "Understood, AMARYLLIS" in told(child)
    assert read_marks(child).by_id == {path[0].id: "pin"}
    longer = chain(*child, *long_talk(100).path[2:])
    second = compacted(longer, COUNTER, settings=SETTINGS, window=WINDOW, previous=first.carryover)
    assert second is not None
    grandchild = child_entries(second)
    messages = [item.message.text for item in seen(grandchild)]
    assert SECRET in messages
    assert "Understood, AMARYLLIS-7 it is." not in messages


def test_marked_messages_count_as_staying():
    path = long_talk().path
    live = read_live(with_marks(path, {path[0].id: "keep"}), COUNTER)
    assert path[0] in live.pinned
    assert path[0] not in live.entries
    assert live.pinned_tokens == COUNTER.count_message(seen(path)[0].message)
