from pathlib import Path

import pytest

from agent_tui.attachments import instructions_block
from agent_tui.messages import AssistantMessage, Cost, Usage
from agent_tui.sessions.entries import (
    Carryover,
    CompactionEntry,
    Entry,
    ModelChangeEntry,
    Requests,
    SessionInfoEntry,
)
from agent_tui.sessions.file import chunks
from agent_tui.sessions.file.chunks import (
    CHUNK_BYTES,
    LongLine,
    checksum,
    read_chunks,
    read_lines,
)
from agent_tui.sessions.format.codec import encode_entry
from agent_tui.sessions.listing import SessionSummary, extend_summary, read_summary
from tests.support.session_values import chain, entry, header, reply, session_bytes, user


def counted(tokens: int, *, is_estimate: bool = False) -> AssistantMessage:
    usage = Usage(input=tokens - 5, output=5, is_estimate=is_estimate)
    return reply("ok").model_copy(update={"usage": usage})


def compaction(tokens_after: int) -> CompactionEntry:
    usage = Usage(total_tokens=999)
    return CompactionEntry(
        summary="S", first_kept_entry_id="x", tokens_after=tokens_after, usage=usage
    )


def summary_of(path: Path, *entries: Entry) -> SessionSummary:
    path.write_bytes(session_bytes(chain(*entries), header()))
    found = read_summary(path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("entries", "tokens"),
    [
        ((entry(user("a")),), 0),
        ((entry(user("a")), entry(counted(700)), entry(user('"usage"'))), 700),
        ((entry(user("a")), entry(counted(700)), entry(counted(800))), 800),
        ((entry(counted(700)), entry(counted(900, is_estimate=True))), 700),
        ((entry(counted(700)), compaction(90)), 90),
        ((entry(counted(700)), compaction(90), entry(counted(120))), 120),
    ],
)
def test_the_context_holds_what_was_counted_last(
    tmp_path: Path, entries: tuple[Entry, ...], tokens: int
) -> None:
    assert summary_of(tmp_path / "s.jsonl", *entries).context_tokens == tokens


def test_what_was_appended_changes_the_summary_as_reading_it_whole_does(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    first = (entry(user("first")), SessionInfoEntry(name="Old"), entry(counted(700)))
    before = summary_of(path, *first)
    later = (entry(user("second")), SessionInfoEntry(name="New"))
    model = ModelChangeEntry(provider="q", model_id="m2")
    for more in ((), (entry(user("x")),), later, (model, entry(counted(50)))):
        whole = summary_of(path, *first, *more)
        assert extend_summary(before) == whole
    assert before.name == "Old"
    assert before.message_count == 2


def test_a_name_in_the_middle_of_a_large_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    talk = [entry(user("word " * 50_000)) for _ in range(20)]
    found = summary_of(path, *talk, SessionInfoEntry(name="Here"), *talk)
    assert path.stat().st_size > 2 * CHUNK_BYTES
    assert found.name == "Here"
    assert found.message_count == 40
    assert found.size_bytes == path.stat().st_size


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("data", [b"", b"\n", b"a", b"ab\ncdefgh\ni", b"\n\nab\n", b"abcdefghij\n"])
def test_pieces_are_whole_lines_and_together_the_file(
    tmp_path: Path, data: bytes, chunk_bytes: int
) -> None:
    path = tmp_path / "f"
    path.write_bytes(data)
    found = list(read_chunks(path, 0, chunk_bytes))
    assert b"".join(chunk.data for chunk in found) == data
    assert all(chunk.data.endswith(b"\n") for chunk in found[:-1])
    assert [chunk.size_bytes for chunk in found] == [len(chunk.data) for chunk in found]
    assert b"".join(chunk.data for chunk in read_chunks(path, 1, chunk_bytes)) == data[1:]


@pytest.mark.parametrize("chunk_bytes", [1, 4, 7, 30, 1_000])
@pytest.mark.parametrize("end", [b"", b"\n", b"\nlast", b"\nlast\n"])
def test_a_line_that_is_too_long_is_counted_and_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int, end: bytes
) -> None:
    monkeypatch.setattr(chunks, "MAX_LINE_BYTES", 20)
    path = tmp_path / "f"
    path.write_bytes(b"first\n" + b"x" * 200 + end)
    found = list(read_chunks(path, 0, chunk_bytes))
    assert sum(chunk.size_bytes for chunk in found) == path.stat().st_size
    if chunk_bytes < 200:
        kept = b"first\n" + end
        assert b"".join(chunk.data for chunk in found) == kept
    monkeypatch.setattr(chunks, "CHUNK_BYTES", chunk_bytes)
    with path.open("rb") as file:
        first, long, *rest = read_lines(file)
    assert first == b"first\n"
    assert long == LongLine(200 + end.startswith(b"\n"), has_end=bool(end))
    assert b"".join(line for line in rest if isinstance(line, bytes)) == end[1:]


def test_a_checksum_tells_growth_from_a_rewrite(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"one\n" * 3_000)
    size = path.stat().st_size
    before = checksum(path, size)
    with path.open("ab") as file:
        file.write(b"more\n")
    assert checksum(path, size) == before
    path.write_bytes(b"two\n" + b"one\n" * 3_000)
    assert checksum(path, size) != before
    assert checksum(path, size - 1) == -1, "the middle of a line"
    assert checksum(path, 0) == -1
    assert checksum(tmp_path / "none", 4) == -1


def test_the_first_prompt_is_what_the_person_typed(tmp_path: Path):
    sent = f"/review\n\n{instructions_block('Read the diff.')}"
    assert summary_of(tmp_path / "s.jsonl", entry(user(sent))).first_prompt == "/review"


def paid(cost_usd: float) -> AssistantMessage:
    usage = Usage(input=10, output=5, cost=Cost(total=cost_usd))
    return reply("ok").model_copy(update={"usage": usage})


def test_the_cost_is_that_of_all_requests(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    compacted = CompactionEntry(
        summary='{"usage":{"cost":{"total":5}}}',
        first_kept_entry_id="x",
        usage=Usage(cost=Cost(total=0.25)),
    )
    found = summary_of(path, entry(paid(1.5)), entry(user("a")), compacted)
    assert found.cost_usd == 1.75
    with path.open("ab") as file:
        file.write(encode_entry(entry(paid(0.5))))
    extended = extend_summary(found)
    assert extended == read_summary(path)
    assert extended is not None
    assert extended.cost_usd == 2.25


def test_what_was_paid_elsewhere_is_no_cost(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    pulled = entry(paid(8)).model_copy(update={"pulled_from": "sam"})
    copied = entry(paid(4)).model_copy(update={"timestamp": "2020-01-01T00:00:00.000Z"})
    own = entry(paid(0.5)).model_copy(update={"timestamp": "2999-01-01T00:00:00.000Z"})
    spent = Requests(model="m", requests=2, usage=Usage(cost=Cost(total=2)))
    carried = Carryover(lastSummary="S", spent=(spent,))
    fork = header(parent_session="other", compaction=carried)
    path.write_bytes(session_bytes(chain(pulled, copied, own), fork))
    found = read_summary(path)
    assert found is not None
    assert found.cost_usd == 2.5


def test_the_summary_that_began_a_session_costs_what_its_header_has(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    usage = Usage(cost=Cost(total=0.25))
    spent = Requests(model="m", requests=1, usage=usage)
    child = header(parent_session="other", compaction=Carryover(lastSummary="S", spent=(spent,)))
    first = CompactionEntry(
        summary="S", first_kept_entry_id="", usage=usage, timestamp=child.timestamp
    )
    path.write_bytes(session_bytes(chain(first, entry(paid(0.5))), child))
    found = read_summary(path)
    assert found is not None
    assert found.cost_usd == 0.75
