"""Of a reply in JSON, what people read is left."""

import json

import pytest

from agent_tui.compaction.tiers.describe import telling_line
from agent_tui.compaction.tiers.json_reply import read_fields

REPLY = {
    "url": "https://api.example/comments/7",
    "node_id": "PRRC_kwDOQyo98M6iFO",
    "user": {"login": "ada", "site_admin": False},
    "state": "OPEN",
    "labels": [{"id": 3, "name": "bug"}],
    "body": "It stops.\n\nThe lock is held.",
    "reactions": {"total_count": 0},
}


def test_fields_that_people_read_stay_whatever_they_are_in() -> None:
    text = "state: OPEN\nname: bug\nbody:\nIt stops.\n\nThe lock is held."
    assert read_fields(json.dumps(REPLY)) == text
    assert read_fields(json.dumps([REPLY, {"error": "gone"}])) == f"{text}\nerror: gone"


def test_a_text_that_the_call_wrote_is_only_named() -> None:
    text = read_fields(json.dumps(REPLY), "gh api -f body='It stops.\n\nThe lock is held.'")
    assert text == "state: OPEN\nname: bug\nbody: (as written above)"


def test_a_long_text_keeps_its_beginning_and_a_long_list_its_first_items() -> None:
    (line,) = read_fields(json.dumps({"body": "so " * 1_000})).split("\n")
    assert line.endswith("… [+1799 characters]")
    lines = read_fields(json.dumps([{"title": str(n)} for n in range(50)])).split("\n")
    assert lines[-2:] == ["title: 39", "[10 more fields]"]


def test_a_reply_without_such_fields_is_its_size_and_other_text_is_no_reply() -> None:
    assert read_fields('{"id": 7, "ok": true, "state": null}') == "(JSON, 36 characters)"
    deep = "[" * 900 + "]" * 900
    assert read_fields(deep) in ("", "(JSON, 1,800 characters)")
    for text in ("{", "[main 1234567] x", "7", '"text"', "", "[" * 100_000):
        assert read_fields(text) == ""


def test_the_line_that_tells_of_a_reply_is_no_end_of_json() -> None:
    assert telling_line(json.dumps(REPLY)) == "state: OPEN"
    url = "https://api.example/" + "x" * 120
    reply = [{"title": "x", "url": url}, {"message": "not found"}]
    assert telling_line(json.dumps(reply)) == "message: not found"
    assert telling_line(json.dumps({"url": url})) == "(JSON, 151 characters)"


@pytest.mark.parametrize("text", ["[]", '{"passed": 12, "failed": 1}', '{"ok": 3, "state": "x"}'])
def test_a_reply_that_fits_on_a_line_stays_as_it_is(text: str) -> None:
    assert telling_line(text) == text
    assert telling_line(text.replace(" ", "\n  ") + "\n") == text
