"""The end of a file: its lines and entries, the last one first."""

import tempfile
from itertools import islice
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.sessions.file.newest_lines import newest_lines
from agent_tui.sessions.newest_entries import newest_entries
from tests.support.session_values import chain, conversation, entry, session_bytes, user


def test_a_short_session_is_given_whole_without_its_header(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(session_bytes(conversation()))
    assert tuple(newest_entries(path)) == conversation()[::-1]


def test_of_a_long_session_the_newest_entries_are_read(tmp_path: Path) -> None:
    path, said = tmp_path / "a.jsonl", chain(*(entry(user("x" * 90_000)) for _ in range(40)))
    path.write_bytes(session_bytes(said))
    assert tuple(islice(newest_entries(path), 3)) == said[:-4:-1]
    assert tuple(newest_entries(path, 400_000)) == said[:-5:-1]  # whole lines in 400 kB


def test_one_entry_longer_than_is_read_at_first_is_found(tmp_path: Path) -> None:
    path, said = tmp_path / "a.jsonl", chain(entry(user("a")), entry(user("x" * 900_000)))
    path.write_bytes(session_bytes(said))
    assert next(newest_entries(path)) == said[-1]


def test_lines_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    path, said = tmp_path / "a.jsonl", conversation()
    path.write_bytes(session_bytes(said[:2]) + b"{broken\n\xff\n" + session_bytes(said[2:]))
    assert tuple(newest_entries(path)) == said[::-1]


@given(st.lists(st.integers(0, 90_000), max_size=6), st.booleans(), st.integers(0, 300_000))
def test_lines_come_whole_and_from_the_end(sizes: list[int], ends: bool, most_bytes: int) -> None:
    lines = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    data = b"\n".join(lines) + b"\n" * ends
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(data)
        found = list(newest_lines(Path(file.name), most_bytes))
    begins_at = max(len(data) - most_bytes, 0)
    whole = data[begins_at:].split(b"\n")[1 if begins_at else 0 :]
    assert found == list(filter(None, reversed(whole)))
