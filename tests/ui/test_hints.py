from pathlib import Path

import pytest

from agent_tui.ui.status.status_view import KNOWN_AFTER, Onboarding, Situation, hint_text
from tests.support.rows import each_row

IDLE = Situation("idle", "ask")


@each_row(
    ("situation", "hint"),
    [
        (IDLE, "enter sends · shift+tab mode: ask · ctrl+p all actions · /help"),
        (Situation("idle", "plan", "/co", is_menu_open=True), ""),
        (
            Situation("idle", "ask", "fix it"),
            "enter sends · ctrl+j new line · @ files · ctrl+g editor · ctrl+c clears",
        ),
        (
            Situation("idle", "ask", "!ls"),
            "enter runs it here · up earlier prompts · ctrl+c clears",
        ),
        (Situation("working", "ask"), "enter queues what you write"),
        (Situation("working", "ask", "and"), "enter queues"),
        (Situation("asks", "ask"), ""),  # the question says what each key is
    ],
)
def test_the_hint_is_about_what_can_be_done_now(situation: Situation, hint: str):
    assert hint_text(situation) == hint


def test_no_hint_is_wider_than_a_small_terminal():
    situations = [
        Situation(doing, "accept-edits", text)
        for doing in ("idle", "working", "asks")
        for text in ("", "x", "!x")
    ]
    assert max(len(hint_text(situation)) for situation in situations) <= 78


def test_after_so_many_messages_one_is_new_no_longer_in_any_session(tmp_path: Path):
    file = tmp_path / "data" / "onboarding.json"
    first = Onboarding(file)
    first.load()
    assert first.is_active
    for _ in range(KNOWN_AFTER - 1):
        first.message_sent()
    assert first.is_active
    second = Onboarding(file)
    second.load()
    second.message_sent()
    assert not second.is_active
    third = Onboarding(file)
    third.load()
    assert not third.is_active


def test_without_a_file_nobody_is_new():
    onboarding = Onboarding(None)
    onboarding.load()
    onboarding.message_sent()
    assert not onboarding.is_active


@pytest.mark.parametrize("kept", ["", "{", '{"a": 1}', "true", "-5"])
def test_a_damaged_count_is_none(tmp_path: Path, kept: str):
    file = tmp_path / "onboarding.json"
    file.write_text(kept, encoding="utf-8")
    onboarding = Onboarding(file)
    onboarding.load()
    assert onboarding.is_active


def test_a_count_that_cannot_be_kept_stops_nothing(tmp_path: Path):
    onboarding = Onboarding(tmp_path)  # a folder
    onboarding.load()
    onboarding.message_sent()
    assert onboarding.is_active
