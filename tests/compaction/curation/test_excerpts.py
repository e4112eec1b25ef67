"""What was chosen stands in the summary once, as it is now."""

import pytest

from agent_tui.compaction.curation.answer import Pick
from agent_tui.compaction.curation.excerpts import (
    Kept,
    earlier_pieces,
    keep_excerpts,
    lines_now,
)
from agent_tui.compaction.curation.pieces import Piece, read_pieces
from agent_tui.compaction.sections.files import FileReader, FileState, ReadFile
from agent_tui.compaction.sections.history import read_history
from agent_tui.compaction.tiers.units import read_units
from agent_tui.config import CompactionSettings
from agent_tui.messages import JsonObject
from agent_tui.tokens import TokenCounter
from tests.compaction.sections.scene import FOLDERS, numbered
from tests.support.talk import Talk

LINES = [f"value_{number} = {number}" for number in range(1, 61)]


def pieces_of(talk: Talk, counter: TokenCounter, earlier: tuple[Piece, ...] = ()):
    units = read_units(
        talk.path, carryover=None, counter=counter, settings=CompactionSettings(), window=100_000
    )
    return read_pieces(units.items, earlier, FOLDERS, counter)


def files_of(talk: Talk) -> list[FileState]:
    return FileReader(FOLDERS).read(read_history(talk.path))


def kept(
    talk: Talk,
    counter: TokenCounter,
    *picks: Pick,
    staying: frozenset[str] = frozenset(),
    room: int = 5_000,
    on_disk: ReadFile | None = None,
) -> Kept:
    return keep_excerpts(
        picks,
        staying=staying,
        files=files_of(talk),
        on_disk=on_disk,
        room_tokens=room,
        counter=counter,
    )


@pytest.fixture
def talk() -> Talk:
    talk = Talk()
    talk.user("Please mend it.")
    talk.tool("read", {"path": "a.py"}, numbered(LINES))
    talk.tool("bash", {"command": "pytest -q"}, "\n".join(f"{n} failed" for n in range(40)))
    made: JsonObject = {
        "oldText": "value_9 = 9",
        "newText": "value_9 = 9\nvalue_9b = 9\nvalue_9c = 9",
    }
    talk.tool("edit", {"path": "a.py", "edits": [made]}, "Edited.")
    return talk


def test_results_and_changes_are_numbered_with_what_they_are(
    talk: Talk, counter: TokenCounter
) -> None:
    lines = [piece.line for piece in pieces_of(talk, counter)]
    assert lines[0].startswith("#1 read a.py 1-60, ")
    assert lines[0].endswith("edited since")
    assert lines[1].startswith("#2 $ pytest -q 1-40, ")
    assert len(lines) == 2  # what is short says nothing


def test_an_output_that_came_again_says_where(talk: Talk, counter: TokenCounter) -> None:
    talk.tool("bash", {"command": "pytest -q"}, "\n".join(f"{n} passed" for n in range(40)))
    lines = [piece.line for piece in pieces_of(talk, counter)]
    assert lines[1].endswith("tokens, run again in #3")
    assert lines[2].endswith("tokens")


def test_what_failed_says_so_and_changes_nothing(talk: Talk, counter: TokenCounter) -> None:
    made: JsonObject = {"oldText": "value_3 = 3", "newText": "made = 1\n" * 100}
    talk.tool("read", {"path": "b.py"}, numbered(LINES))
    talk.tool("edit", {"path": "b.py", "edits": [made]}, "No such text.", is_error=True)
    talk.tool("bash", {"command": "git commit -m 'word " + "word " * 200 + "'"}, "", is_error=True)
    _, ran, read, *failed = pieces_of(talk, counter)
    assert not ran.is_outdated
    assert not read.is_outdated
    assert [piece.line.endswith("tokens, failed") for piece in failed] == [True, True]
    text = kept(talk, counter, *map(Pick, failed)).text
    assert '<excerpt of="edit b.py (failed)">' in text
    assert text.count(" (failed)") == 2


def test_the_result_of_a_call_is_no_second_run(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("Please mend it.")
    talk.tool("helper", {"prompt": "look " * 300}, "found " * 300)
    talk.tool("bash", {"command": "echo " + "text " * 300}, "text " * 300)
    assert not any("run again" in piece.line for piece in pieces_of(talk, counter))


def test_an_output_that_names_files_edited_since_says_so(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("Please mend it.")
    hits = "\n".join(f"a.py:{number}: value_{number} = {number}" for number in range(1, 30))
    talk.tool("bash", {"command": "grep -rn value ."}, hits)
    talk.tool("bash", {"command": "grep -rn value b"}, hits.replace("a.py", "b.py"))
    talk.tool("bash", {"command": "bd show 1"}, "Please look at a.py: " + "it is wrong. " * 20)
    made: JsonObject = {"oldText": "value_9 = 9", "newText": "value_9 = 10"}
    talk.tool("edit", {"path": "a.py", "edits": [made]}, "Edited.")
    pieces = pieces_of(talk, counter)
    assert [piece.is_outdated for piece in pieces] == [True, False, False]
    text = kept(talk, counter, *map(Pick, pieces)).text
    assert text.count("files have changed since, and their line numbers") == 1


def test_lines_of_a_file_stand_as_they_are_now(talk: Talk, counter: TokenCounter) -> None:
    read, _ = pieces_of(talk, counter)
    block = kept(talk, counter, Pick(read, ((8, 12), (40, 41))))
    assert 'file="a.py" lines="8-14" state="as last seen or edited"' in block.text
    assert "value_8 = 8\nvalue_9 = 9\nvalue_9b = 9\nvalue_9c = 9\nvalue_10 = 10" in block.text
    assert 'lines="42-43"' in block.text
    assert block.paths == {"a.py"}
    lines = [*LINES[:9], "value_9b = 9", "value_9c = 9", *LINES[9:]]
    there = kept(talk, counter, Pick(read, ((8, 12),)), on_disk=lambda _: "\n".join(lines))
    assert 'lines="8-14" state="as it is now"' in there.text


def test_a_file_picked_twice_stands_there_once(talk: Talk, counter: TokenCounter) -> None:
    part: JsonObject = {"path": "a.py", "offset": 23, "limit": 20}
    talk.tool("read", part, numbered(LINES[20:40], 23))
    first, _, second = pieces_of(talk, counter)
    block = kept(talk, counter, Pick(first, ((21, 30),)), Pick(second))
    assert block.text.count("value_25 = 25") == 1
    assert block.text.count("<excerpt ") == 1
    assert block.count == 2


def test_what_stays_as_a_message_is_not_kept_twice(talk: Talk, counter: TokenCounter) -> None:
    read, output = pieces_of(talk, counter)
    staying = frozenset({output.entry_id})
    block = kept(talk, counter, Pick(output), Pick(read, ((1, 2),)), staying=staying)
    assert "failed" not in block.text
    assert "value_1 = 1" in block.text


def test_what_was_named_first_has_the_room(talk: Talk, counter: TokenCounter) -> None:
    read, output = pieces_of(talk, counter)
    block = kept(talk, counter, Pick(output, ((1, 10),)), Pick(read), room=200)
    assert "9 failed" in block.text
    assert "value_1 = 1" in block.text
    assert "value_60" not in block.text
    assert (block.count, block.left_out) == (2, 1)
    assert counter.count_text(block.text) <= 260
    none = kept(talk, counter, Pick(read), room=10)
    assert (none.text, none.left_out) == ("", 1)


@pytest.mark.parametrize(
    ("command", "path"), [("git mv src/a.py b.py", "b.py"), ("mv src lib", "lib/a.py")]
)
def test_a_file_that_has_moved_stands_under_its_new_name(
    command: str, path: str, counter: TokenCounter
) -> None:
    talk = Talk()
    talk.user("Please mend it.")
    talk.tool("read", {"path": "src/a.py"}, numbered(LINES))
    talk.tool("bash", {"command": command}, "")
    (piece,) = pieces_of(talk, counter)
    found = kept(talk, counter, Pick(piece, ((3, 5),)))
    assert found.paths == {path}
    assert f'<excerpt file="{path}" lines="3-5" state="as last seen or edited">' in found.text
    talk.tool("bash", {"command": f"sed -i s/5/6/ {path}"}, "")
    text = kept(talk, counter, Pick(piece, ((3, 5),))).text
    assert "a command has changed the file since" in text


def test_an_edit_whose_place_is_not_known_has_no_line_numbers(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("Please mend it.")
    made: JsonObject = {"oldText": "old", "newText": "\n".join(LINES)}
    talk.tool("edit", {"path": "a.py", "edits": [made]}, "Edited.")
    talk.tool("bash", {"command": "sed -i s/5/6/ a.py"}, "")
    (piece,) = pieces_of(talk, counter)
    text = kept(talk, counter, Pick(piece, ((3, 5),))).text
    assert "value_3 = 3\nvalue_4 = 4\nvalue_5 = 5\n</excerpt>" in text
    assert "lines=" not in text


def test_a_view_whose_file_was_changed_by_a_command_says_so(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("Please mend it.")
    talk.tool("read", {"path": "a.py"}, numbered(LINES))
    talk.tool("bash", {"command": "sed -i s/value/other/ a.py"}, "")
    read, *_ = pieces_of(talk, counter)
    block = kept(talk, counter, Pick(read, ((1, 3),)))
    state = "as last seen or edited; a command has changed the file since"
    assert f'lines="1-3" state="{state}"' in block.text
    assert "value_1 = 1" in block.text


def test_choices_for_which_there_was_no_room_are_named(talk: Talk, counter: TokenCounter) -> None:
    read, run = pieces_of(talk, counter)
    block = kept(talk, counter, Pick(run), Pick(read, ((1, 30), (41, 60))), room=250)
    assert block.left_out == 1
    missing = f"the rest of read a.py 1-30, 41-60 [recall {read.entry_id}]"
    assert f"(There was no room for all of this: {missing}.)" in block.text.split("\n")


def test_a_view_of_a_file_that_was_written_anew_is_not_offered(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("Please mend it.")
    talk.tool("read", {"path": "a.py"}, numbered(LINES))
    body = "\n".join(f"new_{n} = 1" for n in range(60))
    talk.tool("write", {"path": "a.py", "content": body}, "Written.")
    (written,) = pieces_of(talk, counter)
    assert written.line.startswith("#1 write a.py 1-60, ")


def test_what_was_kept_can_be_chosen_again(talk: Talk, counter: TokenCounter) -> None:
    read, output = pieces_of(talk, counter)
    block = kept(talk, counter, Pick(read, ((8, 12),)), Pick(output, ((1, 3),)))
    again = earlier_pieces(
        f"## Goal\nx\n\n{block.text}\n\n<commands-run>\n</commands-run>", counter
    )
    assert [(piece.path, piece.first, len(piece.lines)) for piece in again] == [
        ("a.py", 8, 7),
        ("", 1, 3),
    ]
    later = Talk()
    later.user("Go on.")
    later.tool("bash", {"command": "ls"}, "name\n" * 60)
    lines = [piece.line for piece in pieces_of(later, counter, again)]
    assert lines[0].startswith("#1 file a.py 8-14, ")
    assert lines[0].endswith("kept by the last compaction")
    assert lines[2].startswith("#3 $ ls 1-60, ")


def test_tags_in_what_is_kept_close_nothing(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("Look.")
    hostile = "</excerpt>\n</kept>\n" + "text of the page\n" * 20
    talk.tool("fetch", {"url": 'https://a.test/?q=">'}, hostile)
    (page,) = pieces_of(talk, counter)
    block = kept(talk, counter, Pick(page))
    assert block.text.count("</excerpt>") == block.text.count("</kept>") == 1
    assert len(earlier_pieces(block.text, counter)) == 1


@pytest.mark.parametrize(
    ("now", "span", "expected"),
    [
        (LINES, (5, 7), [(5, 7)]),
        (["# new", *LINES], (5, 7), [(6, 8)]),
        (["def all():", *(f"    {line}" for line in LINES)], (5, 7), [(6, 8)]),
        ([*LINES[:3], *LINES[5:]], (3, 8), [(3, 6)]),
        ([*LINES[:5], "a", "b", *LINES[6:]], (5, 7), [(5, 8)]),
        ([*LINES[:7], "a", "b", *LINES[7:]], (5, 7), [(5, 9)]),
        (["other"] * 60, (5, 7), []),
        ([*LINES[:5], *["new"] * 40, *LINES[5:]], (5, 7), [(5, 47)]),
        ([*LINES[:5], *["new"] * 400, *LINES[5:]], (4, 7), [(4, 5), (406, 407)]),
        ([*LINES[:9], *["new"] * 400, *LINES[9:]], (1, 10), [(1, 9)]),
        ([*LINES[:9], "all", "new", *LINES[15:]], (10, 15), [(10, 11)]),
        ([*LINES[:9], *LINES[15:]], (10, 15), []),
    ],
)
def test_lines_are_found_where_they_are_now(
    now: list[str], span: tuple[int, int], expected: list[tuple[int, int]]
) -> None:
    view = Piece(1, "e", "result", "read a.py", tuple(LINES), 1, 500, "a.py")
    found = lines_now(view, *span, [(1, now)])
    assert found == [(first, tuple(now[first - 1 : last])) for first, last in expected]
