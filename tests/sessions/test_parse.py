import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.messages import AssistantMessage, ToolResultMessage, UserMessage
from agent_tui.sessions.entries import (
    Carryover,
    CompactionDetails,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    Handover,
    KnownFile,
    Ledger,
    MessageEntry,
    UnknownEntry,
    WorkState,
)
from agent_tui.sessions.format.codec import encode_entry, encode_header, encode_repaired
from agent_tui.sessions.format.parse import ParsedSession, parse_session
from tests.support.session_values import conversation, header, session_bytes
from tests.support.trajectories import trajectory

ENTRIES = conversation()
LINES = [encode_header(header()), *(encode_entry(item) for item in ENTRIES)]


def assert_is_tree(parsed: ParsedSession) -> None:
    """Ids are unique and every parent stands before its children."""
    seen: set[str | None] = {None}
    for item in parsed.entries:
        assert item.id
        assert item.id not in seen
        assert item.parent_id in seen
        seen.add(item.id)


def with_line(number: int, line: bytes) -> bytes:
    """The sound file with line `number` (from 1) replaced."""
    return b"".join(
        [*LINES[: number - 1], line + b"\n" if line[-1:] != b"\n" else line, *LINES[number:]]
    )


def message_json(fields: dict[str, object], entry_id: str = "0000000f") -> bytes:
    data = {"type": "message", "id": entry_id, "parentId": None, "timestamp": "t"}
    return json.dumps({**data, "message": fields}).encode()


def only_entry(line: bytes) -> tuple[Entry, tuple[str, ...]]:
    parsed = parse_session(LINES[0] + line + b"\n")
    assert len(parsed.entries) == 1
    return parsed.entries[0], parsed.warnings


def test_paths_that_are_not_utf8_are_read_back_even_beside_a_text_that_is_repaired() -> None:
    path = "/a/own\udcff.txt"
    state = WorkState(branches={path: "main"})
    carried = Carryover(
        read_files=(path,), handover=Handover(files=(KnownFile(path=path),), state=state)
    )
    head = header().model_copy(update={"cwd": path, "compaction": carried})
    made = CompactionEntry(
        id="0000000f",
        summary=path,
        first_kept_entry_id="0000000e",
        details=CompactionDetails(read_files=(path,), ledger=Ledger(modified_files=(path,))),
    )
    repaired, line = encode_repaired(made)
    parsed = parse_session(encode_header(head) + line)
    assert (parsed.header.cwd, parsed.header.compaction) == (path, carried)
    (entry,) = parsed.entries
    assert isinstance(entry, CompactionEntry)
    assert isinstance(repaired, CompactionEntry)
    assert entry.details == repaired.details == made.details
    assert entry.summary == repaired.summary == "/a/own\ufffd.txt"


def test_a_sound_file_gives_back_what_was_written() -> None:
    parsed = parse_session(session_bytes(ENTRIES))
    assert parsed.entries == ENTRIES
    assert parsed.header == header()
    assert parsed.warnings == ()
    assert parsed.ends_clean


def test_a_cut_at_every_byte_recovers_exactly_the_whole_lines_before_it() -> None:
    whole = b"".join(LINES)
    ends = [sum(map(len, LINES[: count + 1])) - 1 for count in range(len(LINES))]
    for cut in range(len(whole) + 1):
        parsed = parse_session(whole[:cut])
        complete = sum(end <= cut for end in ends)
        assert parsed.has_header == (complete > 0)
        assert parsed.entries == ENTRIES[: max(complete - 1, 0)]
        is_torn = cut not in (0, *ends, *(end + 1 for end in ends))
        assert any("cut off" in warning for warning in parsed.warnings) == is_torn


def test_unicode_line_separators_do_not_end_a_line() -> None:
    parsed = parse_session(session_bytes(ENTRIES))
    found = parsed.entries[2]
    assert isinstance(found, MessageEntry)
    assert isinstance(found.message, ToolResultMessage)
    assert found.message.text == "one\u2028line"
    assert "\u2028".encode() in LINES[3]


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (b'{"type":"message","id"', "line 4: not valid JSON"),
        (b"\x00" * 50, "line 4: nothing but NUL bytes"),
        (b"[1,2]", "line 4: not a JSON object"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "line 4: nested too deeply"),
        (b'{"a":' + b"1" * 5_000 + b"}", "line 4: not valid JSON"),
    ],
)
def test_a_broken_line_in_the_middle_is_named_and_its_children_stay_linked(
    broken: bytes, problem: str
) -> None:
    parsed = parse_session(with_line(4, broken))
    assert len(parsed.entries) == len(ENTRIES) - 1
    assert_is_tree(parsed)
    assert parsed.entries[2].parent_id == ENTRIES[1].id
    assert any(warning.startswith(problem) for warning in parsed.warnings)
    assert "recovered 7 of 8 lines" in parsed.warnings


@pytest.mark.parametrize("split", [0, 40, len(LINES[3]) - 1])
def test_a_line_with_nul_bytes_before_in_or_behind_it_is_read_without_them_and_named(
    split: int,
) -> None:
    line = LINES[3].rstrip(b"\n")
    parsed = parse_session(with_line(4, line[:split] + b"\x00" * 8 + line[split:]))
    assert parsed.entries == ENTRIES
    assert any("line 4: NUL bytes" in warning for warning in parsed.warnings)


def test_an_entry_that_names_no_parent_among_ones_that_do_follows_the_entry_before_it() -> None:
    fields = json.loads(LINES[3])
    del fields["parentId"]
    parsed = parse_session(with_line(4, json.dumps(fields).encode()))
    assert parsed.entries == ENTRIES
    assert any("line 4: names no parent" in warning for warning in parsed.warnings)


def test_children_of_a_lost_parent_stay_siblings() -> None:
    branch = ENTRIES[6].model_copy(update={"id": "000000aa", "parent_id": ENTRIES[2].id})
    data = b"".join([*LINES[:3], b"broken\n", *LINES[4:], encode_entry(branch)])
    parsed = parse_session(data)
    by_id = {item.id: item for item in parsed.entries}
    assert by_id["000000aa"].parent_id == by_id[ENTRIES[3].id].parent_id == ENTRIES[1].id


def test_two_entries_with_one_id_are_told_apart_and_children_follow_the_newer() -> None:
    again = ENTRIES[3].model_copy(update={"id": ENTRIES[2].id})
    rest = [ENTRIES[4].model_copy(update={"parent_id": again.id}), *ENTRIES[5:]]
    parsed = parse_session(session_bytes([*ENTRIES[:3], again, *rest]))
    assert_is_tree(parsed)
    assert len(parsed.entries) == 7
    assert parsed.entries[4].parent_id == parsed.entries[3].id != ENTRIES[2].id
    assert any("line 5: id 00000003 is taken" in warning for warning in parsed.warnings)


def test_a_line_written_twice_counts_once() -> None:
    parsed = parse_session(b"".join([*LINES[:4], LINES[3], *LINES[4:]]))
    assert parsed.entries == ENTRIES
    assert parsed.warnings == ("line 5: repeats entry 00000003; left out",)


def test_swapped_lines_are_put_in_order() -> None:
    parsed = parse_session(b"".join([*LINES[:6], LINES[7], LINES[6]]))
    assert parsed.entries == ENTRIES
    assert any("comes before its parent" in warning for warning in parsed.warnings)


def test_entries_that_are_each_others_parents_are_kept() -> None:
    first = ENTRIES[0].model_copy(update={"parent_id": ENTRIES[1].id})
    parsed = parse_session(session_bytes([first, *ENTRIES[1:]]))
    assert_is_tree(parsed)
    assert {item.id for item in parsed.entries} == {item.id for item in ENTRIES}


def test_entries_of_a_file_without_header_are_offered() -> None:
    parsed = parse_session(with_line(1, b"no header"), fallback_id="abc")
    assert not parsed.has_header
    assert parsed.header.id == "abc"
    assert parsed.entries == ENTRIES
    assert parsed.warnings[1].startswith("line 1: no session header")


def test_a_file_of_another_kind_is_recognised() -> None:
    assert not parse_session(b"# Notes\n\nSome text.\n").looks_like_session
    assert not parse_session(b"\x89PNG\r\n\x1a\n\x00").looks_like_session
    assert parse_session(b"").looks_like_session
    assert parse_session(b'{"type":"sess').looks_like_session


def test_unknown_entries_and_unknown_fields_are_kept_and_written_back() -> None:
    line = b'{"type":"sparkle","id":"9","parentId":null,"timestamp":"t","glow":[1,null],"x":null}'
    parsed = parse_session(LINES[0] + line + b"\n")
    (found,) = parsed.entries
    assert isinstance(found, UnknownEntry)
    assert json.loads(encode_entry(found)) == json.loads(line)
    assert parsed.warnings == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "custom_message", "customType": "note", "content": "hi", "display": False},
        {"type": "custom", "customType": "note"},
    ],
    ids=lambda fields: fields["type"],
)
def test_what_another_program_left_out_is_not_written_back(fields: dict[str, object]) -> None:
    line = {**fields, "id": "0000000f", "parentId": None, "timestamp": "t"}
    found, _ = only_entry(json.dumps(line).encode())
    assert json.loads(encode_entry(found)).keys() == line.keys()


def test_a_wrong_field_costs_only_itself() -> None:
    found, warnings = only_entry(
        message_json(
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "kept"},
                    {"type": "hologram"},
                    {"type": "toolCall", "id": "c", "name": "read", "arguments": None},
                ],
                "usage": {"input": "many", "output": 5},
                "stopReason": "boredom",
            }
        )
    )
    assert isinstance(found, MessageEntry)
    message = found.message
    assert isinstance(message, AssistantMessage)
    assert message.text == "kept"
    assert message.tool_calls[0].arguments == {}
    assert message.usage.output == 5
    assert message.stop_reason == "stop"
    assert len([warning for warning in warnings if "left out" in warning]) == 4


def test_a_known_entry_without_what_it_needs_is_kept_as_unknown() -> None:
    found, warnings = only_entry(b'{"type":"message","id":"0000000f","parentId":null}')
    assert isinstance(found, UnknownEntry)
    assert found.type == "message"
    assert any("not a usable message" in warning for warning in warnings)


def test_the_prompt_of_pi_is_kept_quietly_and_not_shown_to_the_model() -> None:
    system = {"role": "system", "content": "", "sections": {"cwd": "/w"}, "toolsAdded": []}
    found, warnings = only_entry(message_json(system))
    assert isinstance(found, UnknownEntry)
    assert (found.model_dump()["message"]["sections"], warnings) == ({"cwd": "/w"}, ())


def test_lone_surrogates_and_bad_bytes_are_replaced() -> None:
    found, warnings = only_entry(
        message_json({"role": "user", "content": "x"}).replace(b'"x"', b'"\\ud83d a \xff"')
    )
    assert isinstance(found, MessageEntry)
    assert isinstance(found.message, UserMessage)
    assert found.message.text == "\ufffd a \ufffd"
    assert len(warnings) == 2


def test_near_relatives_of_our_messages_are_understood() -> None:
    found, _ = only_entry(
        message_json({"role": "hookMessage", "customType": "note", "content": "hi"})
    )
    assert isinstance(found, CustomMessageEntry)
    assert (found.custom_type, found.text, found.id) == ("note", "hi", "0000000f")
    found, _ = only_entry(
        message_json({"role": "toolResult", "toolCallId": "c", "toolName": "x", "content": "out"})
    )
    assert isinstance(found, MessageEntry)
    assert isinstance(found.message, ToolResultMessage)
    assert found.message.text == "out"


def test_version_1_gets_ids_and_its_compactions_find_their_first_kept_entry() -> None:
    lines = [
        {"type": "session", "id": "s", "timestamp": "t", "cwd": "/w", "thinkingLevel": "xhigh"},
        *(
            {"type": "message", "timestamp": "t", "message": {"role": "user", "content": t}}
            for t in "abc"
        ),
        {"type": "compaction", "timestamp": "t", "summary": "S", "firstKeptEntryIndex": 2},
    ]
    data = "\n\n".join(json.dumps(line) for line in lines).encode() + b"\n"
    parsed = parse_session(data)
    assert parsed.warnings == ()
    assert parsed.header.version == 1
    assert parsed.header.thinking_level == "xhigh"
    assert_is_tree(parsed)
    last = parsed.entries[3]
    assert isinstance(last, CompactionEntry)
    assert last.first_kept_entry_id == parsed.entries[1].id
    assert parse_session(data).entries == parsed.entries


def test_a_file_with_ids_is_not_version_1_though_its_header_names_no_version() -> None:
    bare = b'{"type":"session","id":"s","timestamp":"t","cwd":"/w"}\n'
    parsed = parse_session(b"".join([bare, *LINES[1:]]))
    assert parsed.header.version == 3
    assert parsed.entries == ENTRIES


def test_the_real_version_1_session_opens_with_the_counts_of_its_source() -> None:
    parsed = parse_session((trajectory("pi/before-compaction.jsonl")).read_bytes())
    assert parsed.warnings == ()
    assert len(parsed.entries) == 1_002
    assert sum(isinstance(item, MessageEntry) for item in parsed.entries) == 990
    kept = [item for item in parsed.entries if isinstance(item, CompactionEntry)]
    by_id = {item.id: item for item in parsed.entries}
    assert [by_id[item.first_kept_entry_id].type for item in kept] == ["message", "message"]
    assert_is_tree(parsed)


def damage(data: bytes, seed: int) -> bytes:
    """One to four random damages: cuts, bit flips, swapped, doubled and foreign lines."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 4)):
        lines = data.split(b"\n")
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        spot = chance.randrange(len(data) + 1)
        match chance.randrange(8):
            case 0:
                data = data[:spot]
            case 1:
                flipped = bytes([data[spot - 1] ^ (1 << chance.randrange(8))]) if data else b""
                data = data[: max(spot - 1, 0)] + flipped + data[spot:]
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
                data = b"\n".join(lines)
            case 3:
                lines.insert(at, lines[other])
                data = b"\n".join(lines)
            case 4:
                data = data[:spot] + b"\x00" * chance.randint(1, 64) + data[spot:]
            case 5:
                lines.insert(at, b'{"type":"custom","customType":"x","data":' + b"[" * 5_000)
                data = b"\n".join(lines)
            case 6:
                old, new = chance.choice(
                    [(b'"role"', b'"rule"'), (b'"user"', b"7"), (b'"id"', b'"ID"'), (b":", b"")]
                )
                data = data.replace(old, new, chance.randint(1, 3))
            case _:
                data = data[:spot] + chance.randbytes(20) + data[spot:]
    return data


def test_damaged_files_never_crash_and_lose_only_what_is_named() -> None:
    whole = session_bytes(ENTRIES)
    for seed in range(200):
        data = damage(whole, seed)
        parsed = parse_session(data)
        assert_is_tree(parsed)
        lines = [line for line in data.split(b"\n") if line and not line.isspace()]
        left_out = sum("; left out" in warning for warning in parsed.warnings)
        assert len(parsed.entries) + parsed.has_header + left_out == len(lines), seed
        assert parse_session(data) == parsed, seed


@settings(max_examples=60)
@given(st.binary(max_size=300))
def test_any_bytes_at_all_can_be_read(data: bytes) -> None:
    assert_is_tree(parse_session(data))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@settings(max_examples=120)
@given(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["message", "compaction", "context_edit", "session", "x"])},
        optional={
            "id": JSON_VALUES,
            "parentId": JSON_VALUES,
            "timestamp": JSON_VALUES,
            "message": JSON_VALUES
            | st.fixed_dictionaries(
                {"role": st.sampled_from(["user", "assistant", "toolResult"])},
                optional={"content": JSON_VALUES, "usage": JSON_VALUES, "toolCallId": JSON_VALUES},
            ),
            "firstKeptEntryIndex": JSON_VALUES,
            "summary": JSON_VALUES,
            "targetId": JSON_VALUES,
        },
    )
)
def test_lines_with_values_of_any_type_are_kept_or_named(data: dict[str, object]) -> None:
    parsed = parse_session(LINES[0] + json.dumps(data).encode() + b"\n")
    assert_is_tree(parsed)
    assert parsed.entries or parsed.warnings
