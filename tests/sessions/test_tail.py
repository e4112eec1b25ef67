from pathlib import Path

from agent_tui.features.session_picker.newest_entries import newest_entries
from tests.support.session_values import chain, conversation, entry, session_bytes, user


def test_a_short_session_is_given_whole_without_its_header(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(session_bytes(conversation()))
    assert newest_entries(path, 3) == conversation()


def test_of_a_long_session_the_newest_entries_are_read(tmp_path: Path) -> None:
    path, said = tmp_path / "a.jsonl", chain(*(entry(user("x" * 90_000)) for _ in range(40)))
    path.write_bytes(session_bytes(said))
    few, more = newest_entries(path, 3), newest_entries(path, 10)
    assert len(few) == 4  # whole lines in the last 400 kB
    assert few == said[-4:]
    assert 10 <= len(more) < 40
    assert more == said[-len(more) :]


def test_one_entry_longer_than_is_read_at_first_is_found(tmp_path: Path) -> None:
    path, said = tmp_path / "a.jsonl", chain(entry(user("a")), entry(user("x" * 900_000)))
    path.write_bytes(session_bytes(said))
    assert newest_entries(path, 1)[-1:] == said[-1:]


def test_lines_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    path, said = tmp_path / "a.jsonl", conversation()
    path.write_bytes(session_bytes(said[:2]) + b"{broken\n\xff\n" + session_bytes(said[2:]))
    assert newest_entries(path, 9) == said
