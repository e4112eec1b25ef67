"""Damaged session files: no crash, nothing lost in silence, and work goes on."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.errors import SessionError
from agent_tui.messages import AssistantMessage, ToolCall
from agent_tui.sessions.entries import CustomEntry, Entry, Header, MessageEntry
from agent_tui.sessions.file import chunks
from agent_tui.sessions.format.codec import DEPTH, TOO_DEEP_TEXT, encode_entry, encode_header
from agent_tui.sessions.format.parse import ParsedSession, parse_session
from agent_tui.sessions.log import SessionLog
from tests.support.context_checks import assert_sendable
from tests.support.damage import damaged
from tests.support.rich_session import rich_log
from tests.support.session_values import conversation, entry, header, session_bytes, user

LOG = rich_log()
LINES = [encode_header(LOG.header)[:-1], *(encode_entry(item)[:-1] for item in LOG.entries)]
SOUND = dict(zip(LINES[1:], LOG.entries, strict=True))


def content(item: Entry) -> bytes:
    """`item` without its place in the tree, which the loss of others changes."""
    place = {"id": "", "parent_id": None}
    if item.type == "compaction":
        place["first_kept_entry_id"] = ""
    return encode_entry(item.model_copy(update=place))


def written(entries: Sequence[Entry]) -> list[bytes]:
    """`entries` as lines: to be compared where a value may be no number, equal to nothing."""
    return [encode_entry(item) for item in entries]


def assert_nothing_lost_in_silence(data: bytes, parsed: ParsedSession) -> None:
    """Each line of `data` that is as it was written is recovered, or a warning names it."""
    named = {warning.partition(":")[0] for warning in parsed.warnings}
    recovered = Counter(content(item) for item in parsed.entries)
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line not in SOUND or f"line {number}" in named:
            continue
        wanted = content(SOUND[line])
        assert recovered[wanted] > 0, (number, line)
        recovered[wanted] -= 1


def assert_nothing_on_a_shared_line_is_lost(data: bytes, parsed: ParsedSession) -> None:
    """Two whole lines behind each other on one are both recovered."""
    recovered = {content(item) for item in parsed.entries}
    for line in data.split(b"\n"):
        for first, second in pairwise(LINES[1:]):
            if line == first + second:
                assert {content(SOUND[first]), content(SOUND[second])} <= recovered


def assert_work_goes_on(path: Path, data: bytes) -> None:
    parsed = parse_session(data, fallback_id="1")
    path.write_bytes(data)
    if not parsed.looks_like_session:
        assert not any(line in SOUND for line in data.split(b"\n"))
        with pytest.raises(SessionError, match="is not a session file"):
            SessionLog.open(path)
        return
    with SessionLog.open(path, "none") as log:
        before = log.entries
        assert written(before) == written(parsed.entries)
        added = log.append(entry(user("go on")))
        assert_sendable(log.path_entries())
    with SessionLog.open(path, "none") as again:
        assert written(again.entries) == written((*before, added))
        assert again.leaf_id == added.id
    if log.header.version == header().version and not list(path.parent.glob("*.bak")):
        assert path.read_bytes().startswith(data)
    for spare in path.parent.glob("*.bak"):
        assert spare.read_bytes() == data
        spare.unlink()


def damage_and_check(folder: Path, seeds: range) -> None:
    for seed in seeds:
        data = damaged(LINES, random.Random(seed))
        parsed = parse_session(data)
        try:
            assert_nothing_lost_in_silence(data, parsed)
            assert_nothing_on_a_shared_line_is_lost(data, parsed)
            assert_work_goes_on(folder / "s_1.jsonl", data)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("part", [0, 1])
def test_damaged_files_lose_nothing_in_silence_and_work_goes_on(tmp_path: Path, part: int) -> None:
    damage_and_check(tmp_path, range(part * 250, part * 250 + 250))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ten_thousand_damaged_files_lose_nothing_in_silence(tmp_path: Path) -> None:
    damage_and_check(tmp_path, range(1_000, 11_000))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["type", "id", "parentId", "message", "role", "content", "text", "version", "compaction"]
)
VALUES = JSON_VALUES | st.sampled_from(["session", "message", "user", "toolResult", "1", "2"])


@settings(max_examples=60)
@given(st.binary(max_size=200), st.integers(0, len(LINES)))
def test_any_bytes_between_the_lines_cost_no_line(noise: bytes, at: int) -> None:
    data = b"\n".join([*LINES[:at], noise, *LINES[at:]]) + b"\n"
    parsed = parse_session(data)
    assert_nothing_lost_in_silence(data, parsed)
    assert len(parsed.entries) >= len(LOG.entries)


@settings(max_examples=100)
@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=4))
def test_any_objects_as_lines_can_be_opened_gone_on_with_and_opened_again(
    tmp_path_factory: pytest.TempPathFactory, values: list[dict[str, object]]
) -> None:
    lines = [json.dumps(value).encode() for value in values]
    data = b"\n".join([*LINES[:3], *lines]) + b"\n"
    assert_work_goes_on(tmp_path_factory.mktemp("any") / "s_1.jsonl", data)


def nested(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [150, 220, 300, 1_500, 100_000])
def test_what_nests_too_deeply_to_be_read_again_is_shortened_when_it_is_written(
    tmp_path: Path, levels: int
) -> None:
    path = tmp_path / "s_1.jsonl"
    call = ToolCall.model_construct(id="c", name="read", arguments={"deep": nested(levels)})
    asked = AssistantMessage.model_construct(content=(call,))
    with SessionLog.create(path, header()) as log:
        log.append(MessageEntry.model_construct(message=asked))
        log.append(CustomEntry.model_construct(custom_type="x", data=nested(levels)))
    with SessionLog.open(path) as again:
        assert again.warnings == ()
        assert again.entries == log.entries
        assert TOO_DEEP_TEXT in path.read_text()
        assert_sendable((entry(user("x")), *again.path_entries()))


def test_of_a_line_that_nests_too_deeply_the_rest_is_kept() -> None:
    line = LINES[1][:-1] + b',"extra":' + b"[" * 400 + b"]" * 400 + b"}"
    parsed = parse_session(b"\n".join([LINES[0], line]))
    (found,) = parsed.entries
    assert isinstance(found, MessageEntry)
    assert found.message == user("look at both files \u2028 \u00fc \U0001f600")
    assert parsed.warnings == ("line 2: values nested too deeply were left out",)
    assert DEPTH < 200


@pytest.mark.parametrize(
    ("line", "recovered"),
    [
        (LINES[2] + LINES[3], (2, 3)),
        (LINES[2][:40] + LINES[3], (3,)),
        (LINES[2][:40] + LINES[3] + LINES[2][40:], ()),
        (LINES[2] + LINES[3][:-1], (2,)),
        (LINES[1][:-9] + LINES[2] + b" " + LINES[3] + b"\r", (2, 3)),
    ],
)
def test_whole_entries_on_a_line_with_others_are_recovered(
    line: bytes, recovered: tuple[int, ...]
) -> None:
    parsed = parse_session(b"\n".join([LINES[0], line, LINES[4]]) + b"\n")
    wanted = [content(LOG.entries[number - 1]) for number in (*recovered, 4)]
    assert [content(item) for item in parsed.entries] == wanted
    assert any(warning.startswith("line 2: not valid JSON") for warning in parsed.warnings)
    assert "recovered 2 of 3 lines" in parsed.warnings


def test_parts_of_a_broken_message_are_no_entries() -> None:
    parts = b'{"type":"text","text":"a"},' * 3 + b'{"type":"toolCall","id":"c","name":"read"}'
    line = b'{"type":"message","id":"1","parentId":null,"timestamp":"t","message":{"content":['
    parsed = parse_session(b"\n".join([LINES[0], line + parts, LINES[1]]) + b"\n")
    assert parsed.entries == LOG.entries[:1]


def test_an_entry_with_an_id_of_another_type_stays_in_its_conversation() -> None:
    lines = [
        line.replace(b'"00000003"', b"3") for line in session_bytes(conversation()).split(b"\n")
    ]
    parsed = parse_session(b"\n".join(lines))
    assert [item.parent_id for item in parsed.entries[1:]] == [
        item.id for item in parsed.entries[:-1]
    ]


def test_what_is_appended_to_an_entry_whose_id_was_made_stays_there(tmp_path: Path) -> None:
    path = tmp_path / "s_1.jsonl"
    again = conversation()[3].model_copy(update={"id": "00000003"})
    path.write_bytes(session_bytes([*conversation()[:3], again, *conversation()[4:]]))
    with SessionLog.open(path) as log:
        log.branch_to(log.entries[3].id)
        added = log.append(entry(user("from here")))
        expected = log.path_entries()
    with SessionLog.open(path) as log:
        assert log.entries[-1] == added
        assert log.path_entries() == expected
        assert sum("missing" in warning for warning in log.warnings) == 1


def test_a_message_with_thousands_of_wrong_parts_keeps_the_sound_ones() -> None:
    parts = b'{"type":"hologram"},' * 3_000 + b'{"type":"text","text":"kept"}'
    line = b'{"type":"message","id":"1","parentId":null,"timestamp":"t","message":'
    line += b'{"role":"assistant","content":[' + parts + b"]}}"
    parsed = parse_session(LINES[0] + b"\n" + line)
    (found,) = parsed.entries
    assert isinstance(found, MessageEntry)
    assert found.message.text == "kept"
    assert parsed.warnings[-1] == "line 2: 2,980 more fields left out"


def test_a_header_with_thousands_of_wrong_values_hides_no_entry() -> None:
    for count in (100, 20_000):
        wrong = b"1," * count + b'"a.py"'
        first = b'{"type":"session","id":"s","compaction":{"readFiles":[' + wrong + b"]}}"
        parsed = parse_session(b"\n".join([first, *LINES[1:]]), fallback_id="fallback")
        assert parsed.entries == LOG.entries
        assert parsed.header.id == ("s" if count == 100 else "fallback")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "repeated", "end"),
    [
        (b'{"type":"custom","customType":"x","data":"', b"x", b'"}'),
        (b'{"type":"custom","customType":"x","data":"', b"x", b""),
        (b"", b"\x00", b""),
        (b"", b"{", b""),
        (b"", b'{"type":"text"},', b""),
        (b"", b"\xff", b""),
    ],
    ids=["whole", "open", "nul", "braces", "objects", "bytes"],
)
def test_a_line_of_100_mb_is_read_or_named(start: bytes, repeated: bytes, end: bytes) -> None:
    line = start + repeated * (100_000_000 // len(repeated)) + end
    parsed = parse_session(b"\n".join([*LINES, line]) + b"\n")
    assert parsed.entries[: len(LOG.entries)] == LOG.entries
    assert len(parsed.entries) > len(LOG.entries) or f"line {len(LINES) + 1}:" in str(
        parsed.warnings
    )


def test_a_header_made_up_for_a_file_without_one_is_of_the_present_version() -> None:
    parsed = parse_session(b"\n".join(LINES[1:]), fallback_id="abc")
    assert parsed.header == Header(id="abc", timestamp="", cwd="")


@pytest.mark.parametrize("torn", [False, True])
def test_a_line_of_any_length_costs_no_memory_and_the_session_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: bool
) -> None:
    monkeypatch.setattr(chunks, "MAX_LINE_BYTES", 10_000)
    path, count = tmp_path / "s.jsonl", 500_000
    with SessionLog.create(path, Header(cwd="/w")) as log:
        kept = log.append(entry(user("before")))
    with path.open("ab") as file:
        file.write(b'{"type":"message","content":"' + b"x" * count + (b"" if torn else b'"}\n'))
    with SessionLog.open(path) as log:
        assert log.entries == (kept,)
        assert any("too long to read" in line for line in log.warnings)
        after = log.append(entry(user("after")))
    assert SessionLog.open(path, read_only=True).entries == (kept, after)


def test_a_file_that_is_one_endless_line_is_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "MAX_LINE_BYTES", 10_000)
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"type":"' + b"x" * 50_000)
    with pytest.raises(SessionError, match="contains no entries"):
        SessionLog.open(path)
