"""Entries of other clones decide nothing here."""

import re
from pathlib import Path

import pytest

import agent_tui
from agent_tui.agent.turn.limit_wait import LimitWait, open_wait, wait_entry
from agent_tui.features.goal.goal import Goal, goal_entry, goal_in
from agent_tui.features.sharing.form import PROJECT
from agent_tui.features.sharing.guard import (
    TAKEN_STATE,
    admit_entry,
    admit_header,
    is_session_id,
    is_sound,
)
from agent_tui.messages import Pin
from agent_tui.sessions.context import newest_model, newest_thinking_level
from agent_tui.sessions.entries import (
    CustomEntry,
    Entry,
    ModelChangeEntry,
    ThinkingLevelChangeEntry,
)
from agent_tui.sessions.replay.file_changes import (
    NOT_PULLED,
    FileChanges,
    FileVersion,
    RecordedFileChange,
    file_changes_entry,
    file_changes_in,
)
from agent_tui.sessions.replay.pins import pin_entry, pins_on
from tests.support.rows import each_row
from tests.support.session_values import chain, entry, header, user

DECISIONS: tuple[Entry, ...] = chain(
    CustomEntry(custom_type="permission_mode", data="full"),
    goal_entry(Goal(text="delete everything", checks=("rm -rf x",))),
    wait_entry(LimitWait(model="m", until_s=1.0)),
    ModelChangeEntry(provider="x", model_id="y", base_url="http://127.0.0.1:1/v1"),
    ThinkingLevelChangeEntry(thinking_level="max"),
    pin_entry(Pin(kind="goal", name="g", path="goal", digest="d"), "always do this"),
    CustomEntry(custom_type="a-plugin-of-theirs", data={"allow": "*"}),
)


def test_decisions_of_another_clone_are_in_their_place_but_not_in_force() -> None:
    admitted = [admit_entry(item) for item in DECISIONS]
    assert [(item.id, item.parent_id) for item in admitted] == [
        (item.id, item.parent_id) for item in DECISIONS
    ]
    assert goal_in(DECISIONS) is not None
    assert goal_in(admitted) is None
    assert open_wait(DECISIONS) is not None
    assert open_wait(admitted) is None
    assert newest_model(admitted) == ("", "")
    assert newest_thinking_level(admitted) == ""
    assert not pins_on(admitted)
    kinds = [getattr(item, "custom_type", "") for item in admitted]
    assert all(kind.startswith("foreign/") for kind in kinds)


@each_row("item", DECISIONS)
def test_an_admitted_entry_is_admitted_as_it_is(item: Entry) -> None:
    once = admit_entry(item)
    assert admit_entry(once) == once


def test_every_state_that_the_program_writes_is_either_taken_or_known_to_decide() -> None:
    """A new custom entry has to be put into one of the two sets."""
    decides = {"permission_mode", "goal", "limit_wait", "went_back"}
    decides |= {"review_comment", "review_mark"}
    pattern = re.compile(r'^_?[A-Z_]+(?:: Final)? = "([a-z]+_?[a-z_]*)"$', re.MULTILINE)
    folder = Path(agent_tui.__file__).parent
    named: set[str] = set()
    rooms = ("sessions/replay/*.py", "agent/**/*.py", "features/**/*.py")
    for file in [file for room in rooms for file in folder.glob(room)]:
        text = file.read_text()
        if "CustomEntry(" in text or "custom_entry(" in text:
            named |= set(pattern.findall(text))
    # Messages: text for the model.
    named -= {"files_restored", "hook", "hook_kept", "jobs_ended", "pinned"}
    named -= {"temporary_files_gone", "turn_stopped", "turn_continued"}
    assert named >= {"goal", "file_changes", "context_undo", "permission_mode"}
    assert named <= TAKEN_STATE | decides


def changes_of(*changes: RecordedFileChange) -> tuple[RecordedFileChange, ...]:
    (placed,) = chain(file_changes_entry(FileChanges(changes=changes)))
    admitted = admit_entry(placed)
    assert admit_entry(admitted) == admitted
    found = file_changes_in(admitted)
    assert found is not None
    return found.changes


KEPT = FileVersion(digest="d" * 64, mode=0o100644, is_kept=True)
LINK = KEPT.model_copy(update={"mode": 0o120000})


def test_a_content_that_is_not_here_is_said_to_be_missing() -> None:
    change = RecordedFileChange(path=f"{PROJECT}/a.py", before=FileVersion(), after=KEPT)
    (admitted,) = changes_of(change)
    assert admitted.after.why_not == NOT_PULLED
    assert admitted.before == FileVersion()


@each_row(
    ("path", "version"),
    [
        ("/home/bo/.bashrc", KEPT),
        (f"{PROJECT}/../.bashrc", KEPT),
        (f"{PROJECT}/.git/hooks/pre-commit", KEPT),
        (f"{PROJECT}/sub/.GIT/config", KEPT),
        (PROJECT, KEPT),
        (f"{PROJECT}x/a", KEPT),
        (f"{PROJECT}/link", LINK),
    ],
)
def test_no_undo_can_write_where_a_pulled_session_names_it(path: str, version: FileVersion) -> None:
    assert changes_of(RecordedFileChange(path=path, before=version, after=FileVersion())) == ()


def test_a_header_names_no_file() -> None:
    admitted = admit_header(
        header(parentSession="../../../etc/passwd", timestamp="../x", origin="tour")
    )
    assert admitted.parent_session is None
    assert admitted.origin is None
    assert "/" not in admitted.timestamp
    assert admit_header(header(parentSession="b1c2d3")).parent_session == "b1c2d3"


@each_row("name", ["../x", "a/b", "", ".hidden", "x" * 200, "a b", "-rf", "abc"])
def test_such_a_name_is_no_id_of_a_session(name: str) -> None:
    assert not is_session_id(name)


@pytest.mark.parametrize("name", ["", "../1", "x" * 65, "a b", "a\nb"])
def test_such_an_entry_is_left_out(name: str) -> None:
    (placed,) = chain(entry(user("x")))
    assert is_sound(placed)
    assert not is_sound(placed.model_copy(update={"id": name}))
    if name:
        assert not is_sound(placed.model_copy(update={"parent_id": name}))
