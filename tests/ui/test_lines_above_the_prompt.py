from pathlib import Path

import pytest
from textual.app import App, ComposeResult

from agent_tui.durations import format_duration
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import Todo, Usage
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.tokens import ContextUsage
from agent_tui.ui.chat.lines_above_prompt import (
    ActivityLine,
    ActivityState,
    PlanView,
    activity_text,
    plan_lines,
    queue_lines,
)
from tests.ui.app_support import running_app


def test_what_runs_for_how_long_and_how_to_stop_it():
    state = ActivityState("Writing", started_at=100.0, output_chars=1_360)
    assert activity_text(state, 112.4) == "Writing… · 12s · ↓340 tokens · esc stops"


def test_words_that_are_long_in_coming_are_waited_for_since_the_last():
    state = ActivityState("Thinking", started_at=100.0, awaited_since=200.0)
    assert activity_text(state, 325.0) == "Thinking 2m 05s… · esc stops"


def test_while_you_are_asked_the_line_says_so_and_then_what_ran_before():
    running = ActivityState("Running bash", started_at=100.0, command_since=100.0)
    asked = running.with_pause(now=110.0)
    assert activity_text(asked, 125.0) == "Waiting for your answer… · 10s · esc stops"
    answered = asked.without_pause(now=125.0)
    assert activity_text(answered, 127.0).startswith("Running bash… · 12s")


def test_a_retry_counts_down():
    state = ActivityState("Try 2 of 4", 100.0, until=108.0, detail="Overloaded.")
    assert activity_text(state, 104.0) == ("Try 2 of 4 in 4s… · esc stops · Overloaded.")
    assert " in 1s…" in activity_text(state, 107.9), "never in no time"
    assert " in " not in activity_text(state, 109.0)


def test_a_wait_for_a_limit_counts_down_by_the_wall_clock():
    state = ActivityState("Continuing", 100.0, ends_at_s=50_000.0, detail="It resets at 14:30.")
    shown = activity_text(state, 104.0, 50_000.0 - 5 * 3_600 + 120)
    assert shown == "Continuing in 4h 58m… · esc stops · It resets at 14:30."


@pytest.mark.parametrize(("width", "rows"), [(80, 2), (120, 1)])
async def test_an_address_that_does_not_answer_is_shown_whole(width: int, rows: int):
    class Line(App[None]):
        CSS = "#activity { padding: 0 2; height: 1; }"

        def compose(self) -> ComposeResult:
            yield ActivityLine(lambda: 101.0)

    reason = "Cannot reach the server at http://127.0.0.1:49321/v1 (some-model)."
    async with Line().run_test(size=(width, 5)) as pilot:
        line = pilot.app.query_one(ActivityLine)
        line.show(ActivityState("Try 2 of 3", 100.0, until=103.0, detail=reason))
        await pilot.pause()
        shown = " ".join(
            strip.text.strip() for strip in line.render_lines(line.region.reset_offset)
        )
        assert reason in shown
        assert line.size.height == rows
        line.show(None)
        await pilot.pause()
        assert line.size.height == 1


def test_long_times_stay_short():
    assert [format_duration(s) for s in (0.4, 59.9, 185, 3_725)] == [
        "0s",
        "59s",
        "3m 05s",
        "1h 02m",
    ]


async def test_the_line_of_a_cold_cache_comes_with_the_time_and_goes_with_a_message(
    tmp_path: Path,
):
    usage = Usage(input=5_000, output=5, total_tokens=5_005)
    replies = (Reply(text="One.", usage=usage), Reply(text="Two.", usage=usage))
    async with running_app(tmp_path, *replies) as ui:
        line = ui.app.view.widgets.cold
        conversation = ui.runtime.conversation
        now_s = 1_000.0
        ui.runtime.services.wall_clock = lambda: now_s
        dear = ModelRef("anthropic/dear")
        ui.show_events(*ui.runtime.set_model(dear))
        await ui.send("hello")
        conversation.usage = ContextUsage(100_000, 200_000, is_estimate=False)
        conversation.model_info = ModelInfo(dear.name, 200_000, 8_000, input_price=3.0)
        line.look()
        assert not line.display
        now_s += 301
        line.look()
        assert line.display
        assert "$0.30" in str(line.content)
        await ui.send("and now?")
        assert not line.display


def test_the_queue_shows_each_message_on_one_line():
    lines = queue_lines(("one\ntwo", "b\x1b[31m")).plain.split("\n")
    assert lines == ["↳ one⏎two", "↳ b␛[31m", "  alt+up takes them back"]


def test_a_long_queue_says_how_many_more_there_are():
    assert "and 6 more" in queue_lines(tuple("0123456789")).plain


def test_the_plan_shows_the_steps_around_the_present_one():
    todos = tuple(
        Todo(text=f"step {n}", status="completed" if n < 7 else "pending") for n in range(10)
    )
    lines = plan_lines(todos).plain.split("\n")
    assert lines[0] == "Plan 7/10 · +5 more"
    assert lines[1:] == ["✓ step 5", "✓ step 6", "· step 7", "· step 8", "· step 9"]


def test_a_plan_that_nobody_follows_stays_away_until_it_changes():
    view, plan = PlanView(), (Todo(text="one", status="pending"),)
    view.make_room("steps")
    view.show(plan)
    assert view.display
    view.end_turn()
    view.end_turn()
    view.show(plan)  # as after a compaction
    assert not view.display
    view.show((*plan, *plan))
    assert view.display


def test_a_long_command_says_how_to_move_it_to_the_background():
    state = ActivityState("Running bash", 0.0, command_since=1.0)
    assert "background" not in activity_text(state, 5.9)
    assert activity_text(state, 6.0).endswith(" · ctrl+b moves it to the background")
