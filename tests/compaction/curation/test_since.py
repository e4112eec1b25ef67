"""Notes that were written ahead say where they end, and keep nothing that is superseded."""

from dataclasses import replace

import pytest

from agent_tui.compaction.curation.answer import KeepChoice
from agent_tui.compaction.curation.since import files_ahead, notes_now, older_than_notes
from agent_tui.compaction.sections.file_states import FileState
from agent_tui.compaction.sections.history import read_history
from agent_tui.compaction.summary.templates import SEVEN_SECTION, STRUCTURED, earlier_notes
from agent_tui.messages import JsonObject
from agent_tui.providers.base import ModelRef
from agent_tui.tokens import TokenCounter
from tests.compaction.sections.scene import FOLDERS
from tests.support.talk import Talk

NOTES = """\
## Goal
Build the parser.

## Progress

### In Progress
- [ ] the lexer, not committed yet

### Next Steps
1. Commit it.

## State
- `pytest -q`: 3 failed
- `make lint`: clean

## Key Decisions
- **one pass**: it is faster"""
EDIT: JsonObject = {"path": "/project/a.py", "edits": [{"oldText": "one", "newText": "two"}]}


@pytest.fixture
def talk() -> Talk:
    talk = Talk()
    talk.user("Build the parser.")
    talk.tool("bash", {"command": "ls"}, "a.py")
    return talk


def now(talk: Talk, through: str) -> str:
    choice = KeepChoice(NOTES, (), ModelRef("scripted/one"), through)
    return notes_now(choice, talk.path, STRUCTURED, FOLDERS)


def test_notes_to_which_nothing_was_added_stay_as_they_are(talk: Talk) -> None:
    through = talk.path[-1].id
    assert now(talk, through) == NOTES
    talk.reply("Now I go on.")
    assert now(talk, through) == NOTES
    assert now(talk, "unknown") == NOTES


def older(choice: KeepChoice, talk: Talk) -> str:
    return older_than_notes(choice, talk.path, read_history(talk.path))


def test_messages_that_are_older_than_the_notes_are_told(talk: Talk) -> None:
    choice = KeepChoice(NOTES, (), ModelRef("scripted/one"), talk.path[-1].id)
    assert "\nAll of them are older than the notes" in older(choice, talk)
    talk.user("Now the lexer.")
    asked = replace(choice, through=talk.path[-1].id)
    assert "\nThose up to `$ ls` are older" in older(choice, talk)
    assert "\nThose up to `$ ls` are older" in older(asked, talk)
    talk.tool("bash", {"command": "make"}, "")
    assert "\nThose up to `$ ls` are older" in older(choice, talk)
    begun = replace(choice, through=talk.path[0].id)
    assert not older(begun, talk)


@pytest.mark.parametrize(
    ("in_progress", "expected"),
    [
        (
            "SessionLive is half done; then src/lexer.py.",
            ["a.py", "web/session_live.ex", "src/lexer.py"],
        ),
        ("all that is left.", ["a.py"]),
    ],
)
def test_the_files_of_the_work_ahead_come_in_the_order_of_the_notes(
    talk: Talk, in_progress: str, expected: list[str]
) -> None:
    choice = KeepChoice(NOTES, (), ModelRef("scripted/one"), talk.path[-1].id)
    talk.tool("edit", EDIT, "Edited.")
    paths = ("src/lexer.py", "docs/done.md", "web/session_live.ex", "a.py")
    files = [FileState(path, is_changed=True) for path in paths]
    notes = NOTES.replace("the lexer, not committed yet", in_progress)
    found = files_ahead(files, choice, notes, talk.path, STRUCTURED, FOLDERS)
    assert [file.path for file in found] == expected
    told = "## Goal\nBuild it, with docs/done.md."
    assert files_ahead(files, choice, told, talk.path, STRUCTURED, FOLDERS) == files


def test_notes_say_before_which_steps_they_end(talk: Talk) -> None:
    through = talk.path[-1].id
    talk.tool("edit", EDIT, "Edited.")
    talk.tool("edit", EDIT, "No such text.", is_error=True)
    talk.tool("bash", {"command": "pytest <files-now>"}, "1 failed", is_error=True)
    end, *rest = now(talk, through).split("\n")
    assert end.startswith("(These notes end before the newest 3 steps, ")
    assert end.endswith("Since then: changed a.py; ran `pytest &lt;files-now>` (failed).)")
    text = "\n".join(rest)
    assert "### Next Steps\n(before the newest 3 steps)\n1. Commit it." in text
    assert "### In Progress\n(before the newest 3 steps)\n- [ ] the lexer" in text
    assert "## Key Decisions\n- **one pass**" in text


def test_work_that_was_committed_since_is_not_in_progress(talk: Talk) -> None:
    through = talk.path[-1].id
    talk.tool("bash", {"command": "git commit -qam 'The lexer'"}, "")
    text = now(talk, through)
    assert "not committed yet" not in text
    assert "### In Progress" not in text
    assert "Since then: ran `git commit -qam 'The lexer'`." in text
    assert "before the newest step," in text


def test_tests_that_ran_since_have_no_old_result(talk: Talk) -> None:
    through = talk.path[-1].id
    talk.tool("bash", {"command": "pytest -q"}, "3 passed")
    text = now(talk, through)
    assert "3 failed" not in text
    assert "`make lint`: clean" in text


def test_marks_of_one_compaction_are_gone_at_the_next(talk: Talk, counter: TokenCounter) -> None:
    through = talk.path[-1].id
    talk.tool("edit", EDIT, "Edited.")
    text = now(talk, through)
    later = earlier_notes(text, template=STRUCTURED, counter=counter, max_tokens=1_000)
    assert "newest step" not in later
    assert "**one pass**" in later


def test_notes_in_another_form_only_say_where_they_end(talk: Talk) -> None:
    through = talk.path[-1].id
    talk.tool("edit", EDIT, "Edited.")
    notes = "## TASK STATE\nBuild the parser.\n\n## NEXT STEPS\n1. Commit it."
    choice = KeepChoice(notes, (), ModelRef("scripted/one"), through)
    text = notes_now(choice, talk.path, SEVEN_SECTION, FOLDERS)
    assert "## NEXT STEPS\n(before the newest step)\n1. Commit it." in text
