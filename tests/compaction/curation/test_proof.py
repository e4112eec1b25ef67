"""The steps that were made after a choice are held against the context it comes to."""

import pytest

from agent_tui.compaction.curation.answer import Proof, prove
from agent_tui.messages import JsonObject
from tests.compaction.sections.scene import FOLDERS, numbered
from tests.support.talk import Talk

LINES = [f"value_{number} = {number}" for number in range(1, 61)]


def change(number: int, path: str = "a.py") -> JsonObject:
    edit: JsonObject = {"oldText": LINES[number - 1], "newText": f"value_{number} = None"}
    return {"path": path, "edits": [edit]}


@pytest.fixture
def talk() -> Talk:
    talk = Talk()
    talk.user("Please mend it.")
    talk.tool("read", {"path": "a.py"}, numbered(LINES))
    return talk


def test_without_steps_there_is_nothing_to_say(talk: Talk) -> None:
    proof = prove(talk.path, talk.path[-1].id, "", FOLDERS)
    assert proof == Proof()
    assert proof.sentence == ""
    assert prove(talk.path, "unknown", "", FOLDERS) == Proof()


def test_an_edit_is_covered_where_the_context_shows_its_lines(talk: Talk) -> None:
    through = talk.path[-1].id
    talk.tool("edit", change(30), "Edited.")
    proof = prove(talk.path, through, f"a.py\n  {LINES[29]}\n", FOLDERS)
    assert proof.sentence == "1 of the 1 steps since then covered"


def test_what_an_edit_missed_is_brought_back_as_it_is_now(talk: Talk) -> None:
    through = talk.path[-1].id
    talk.tool("edit", change(30), "Edited.")
    talk.tool("read", {"path": "a.py", "offset": 1, "limit": 1}, numbered(LINES[:1]))
    proof = prove(talk.path, through, "a.py", FOLDERS)
    assert proof.sentence == "1 of the 2 steps since then covered, 1 brought back"
    (pick,) = proof.brought_back
    assert pick.piece.first == 18
    assert pick.piece.lines[12] == "value_30 = None"
    assert len(pick.piece.lines) == 25


def test_what_was_not_known_before_is_no_need(talk: Talk) -> None:
    through = talk.path[-1].id
    talk.tool("read", {"path": "b.py"}, numbered(LINES))
    talk.tool("edit", change(30, "b.py"), "Edited.")
    talk.tool("edit", change(31), "No such text.", is_error=True)
    assert prove(talk.path, through, "", FOLDERS) == Proof()
