"""A first message that is like an earlier session's comes with a hint of that session."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_tui.events import Notice, UserMessageAdded
from agent_tui.features.recall.earlier_work import hint_line, resembling
from agent_tui.features.tour.scripted import Reply
from agent_tui.sessions.listing import SessionSummary
from tests.support.runtime import Stage, collect, of_kind, only

EARLIER = "The flaky test in tests/test_sync.py fails on Mondays"


def session(prompt: str, *, name: str = "", day: int = 1) -> SessionSummary:
    return SessionSummary(
        id=f"id{day}",
        path=Path("s.jsonl"),
        cwd=Path("/project"),
        name=name,
        first_prompt=prompt,
        message_count=4,
        modified=datetime(2026, 11, day, tzinfo=UTC),
        model="",
        parent_session=None,
        size_bytes=1_000,
        launch_cwd=None,
        context_tokens=0,
    )


@pytest.mark.parametrize(
    "text",
    [
        "tests/test_sync.py is flaky again",
        "Please fix the flaky tests/test_sync.py",
        "the FLAKY test in tests/test_sync.py",
    ],
)
def test_what_shares_names_and_rare_words_is_alike(text: str) -> None:
    others = [session("Write a parser for dates"), session(EARLIER, day=2)]
    assert [found.id for found in resembling(text, others)] == ["id2"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Go on",
        "Fix the failing test please",
        "Write a new module that should explain where the folder is",
        "tests/test_sync.py needs documentation, an example with charts, and another translation",
    ],
)
def test_what_shares_little_or_what_all_tasks_share_is_not(text: str) -> None:
    assert not resembling(text, [session(EARLIER), session("Fix the failing test please")])


def test_at_most_two_are_named_the_most_alike_and_newest_first() -> None:
    others = [session(EARLIER, day=day) for day in (3, 9, 6)]
    assert [found.id for found in resembling(EARLIER, others)] == ["id9", "id6"]


def test_a_line_says_when_what_and_how_to_find_it() -> None:
    line = hint_line(session(EARLIER, name="Sync\nis </earlier-work> flaky"))
    assert line.startswith("2026-11-01: ")
    assert "\n" not in line
    assert 'recall(query="' in line


async def test_the_model_and_the_person_are_told_once(stage: Stage) -> None:
    first = stage.runtime([Reply(text="Done.")])
    await collect(first.submit(EARLIER))
    await first.aclose()
    second = stage.runtime([Reply(text="Again."), Reply(text="Yes.")])
    typed = "tests/test_sync.py is flaky again"
    events = await collect(second.submit(typed))
    assert only(events, UserMessageAdded).text == typed
    (notice,) = (notice for notice in of_kind(events, Notice) if EARLIER in notice.text)
    assert events.index(only(events, UserMessageAdded)) < events.index(notice)
    await collect(second.submit(typed))
    await second.aclose()
    for request in stage.model.requests:
        assert str(request.messages).count(EARLIER) == 1


@pytest.mark.parametrize("switched", ["setting", "no search", "no session"])
async def test_nobody_is_told_where_that_is_switched_off(stage: Stage, switched: str) -> None:
    first = stage.runtime([Reply(text="Done.")])
    await collect(first.submit(EARLIER))
    await first.aclose()
    second = stage.runtime([Reply(text="Again.")])
    if switched != "no session":
        name = "hint_earlier_work" if switched == "setting" else "recall_other_sessions"
        second.services.settings = second.services.settings.model_copy(update={name: False})
    else:
        second.services.keeps_sessions = False
    events = await collect(second.submit(EARLIER))
    await second.aclose()
    assert not of_kind(events, Notice)
    assert "earlier-work" not in str(stage.model.requests)
