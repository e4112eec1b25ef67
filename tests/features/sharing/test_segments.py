"""The parts in which a session travels."""

import pytest

from agent_tui.errors import SessionError
from agent_tui.features.sharing import segments
from agent_tui.features.sharing.segments import (
    HEADER_ID,
    draft_segments,
    file_key,
    file_name,
    listed_names,
    name_segment,
    next_number,
    parse_name,
    read_ids,
    read_segment,
    write_ids,
)
from agent_tui.sessions.format.codec import encode_entry, encode_header
from tests.support.session_values import chain, conversation, entry, header, user

FIRST = header()


def lines() -> list[tuple[str, bytes]]:
    entries = [(item.id, encode_entry(item)) for item in conversation()]
    return [(HEADER_ID, encode_header(FIRST)), *entries]


def test_what_is_read_from_a_part_is_what_was_written() -> None:
    (draft,) = draft_segments(FIRST.id, "Ada", lines())
    read = read_segment(draft.data, FIRST.id)
    assert (read.by, read.header, read.unreadable) == ("Ada", FIRST, 0)
    assert read.entries == conversation()
    assert read_ids(write_ids(draft.ids)) == {HEADER_ID, *(e.id for e in conversation())}


def test_a_long_session_travels_in_several_parts() -> None:
    long = chain(*(entry(user("x" * 300_000)) for _ in range(10)))
    drafts = list(draft_segments(FIRST.id, "", ((e.id, encode_entry(e)) for e in long)))
    assert len(drafts) > 2
    assert all(len(draft.data) < segments.SEGMENT_BYTES + 400_000 for draft in drafts)
    read = [e for draft in drafts for e in read_segment(draft.data, FIRST.id).entries]
    assert tuple(read) == long


def test_names_are_ordered_and_read_back() -> None:
    first, second = name_segment(1, "plain", b"a"), name_segment(2, "0123456789ab", b"b")
    assert parse_name(str(first)) == first
    tree = {str(second): "", second.ids_name: "", str(first): "", first.ids_name: "", "x": ""}
    assert next_number(tree) == 3
    absurd = f"{10**17}-plain-{'0' * 24}"
    assert parse_name(absurd) is not None
    assert next_number([*tree, absurd]) == 3
    assert listed_names(tree, "plain") == [first.ids_name]
    for name in ("../x", "000001-plain", f"{first}/..", "", "1-plain-0"):
        assert parse_name(name) is None
    assert file_key(file_name("plain", "s", "d")) == "plain"
    assert file_key("file-plain-../../x") == ""


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00\xff", b"{}\n", b'{"type":"shared_segment","session":"other"}\n', b"[]\n" * 3],
)
def test_a_part_that_is_none_of_this_session_is_refused(data: bytes) -> None:
    with pytest.raises(SessionError):
        read_segment(data, FIRST.id)


def test_a_newer_form_says_to_update() -> None:
    head = f'{{"type":"shared_segment","version":2,"session":"{FIRST.id}"}}\n'
    with pytest.raises(SessionError, match="newer agent-tui"):
        read_segment(head.encode(), FIRST.id)


def test_hostile_lines_are_left_out_and_counted() -> None:
    (draft,) = draft_segments(FIRST.id, "Ada", lines())
    other = encode_header(header(id="0a1b2c3d-0000-4000-8000-000000000002"))
    hostile = b"\n".join(
        [b"not json", b"[" * 100_000, b'{"type":"message","id":"../x","parentId":null}', b"\xff"]
    )
    read = read_segment(draft.data + other + hostile + b"\n", FIRST.id)
    assert read.entries == conversation()
    assert read.header == FIRST
    assert read.unreadable == 5
