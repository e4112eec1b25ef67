"""Compaction as a person sees it: commands, pages, lines in the chat, the bar."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_tui.commands.core.registry import load_commands
from agent_tui.compaction.outcome import CompactionPreview, Outcome
from agent_tui.compaction.request import CompactionRequest
from agent_tui.config import CompactionSettings
from agent_tui.errors import AgentTuiError
from agent_tui.features.context.keeping_screen import PreviewScreen
from agent_tui.features.context.screen import ContextScreen
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import UserMessage
from agent_tui.providers.base import ModelInfo
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.transcript.blocks import AssistantBlock, SummaryBlock, UserBlock
from tests.support.compaction_ways import talk
from tests.support.long_work import SUMMARY, long_work
from tests.support.models import MODEL, ListedModels
from tests.support.runtime import GOOD_SUMMARY, Stage
from tests.ui.app_support import Ui, answer, asking, held, running_app, said, sized

HALF_FULL, FULL = 60_000, 36_200
"""Windows that the work fills to a half, and to where room is made for the next message."""

NEAR = 24_000
"""A target so near that shortening alone is enough."""


@asynccontextmanager
async def at_work(
    root: Path, *replies: Reply, window: int = HALF_FULL, **options: Any
) -> AsyncGenerator[Ui]:
    """The app over work of some 30,000 tokens."""
    info = ModelInfo(MODEL.name, window, 4_000, source="setting")
    models, stage = ListedModels(infos={MODEL.name: info}), Stage(root)
    settings = CompactionSettings(target=NEAR / window)
    runtime = long_work(asking(stage, *replies, models=models, compaction=settings))
    async with running_app(
        root, *replies, stage=stage, runtime=runtime, models=models, **options
    ) as ui:
        ui.redraw()
        await ui.settle()
        yield ui


def summaries(ui: Ui) -> list[SummaryBlock]:
    return [block for block in ui.blocks if isinstance(block, SummaryBlock)]


def page_text(ui: Ui) -> str:
    """All that is written on the page on top."""
    return "\n".join(str(widget.render()) for widget in ui.app.screen.query("#page *"))


async def opened(ui: Ui, line: str, mark: str) -> None:
    """Send `line` and wait until the page on top shows `mark`."""
    await ui.submit(line)
    await ui.until(lambda: len(ui.app.screen_stack) > 1 and mark in page_text(ui))
    await ui.settle()


async def test_compact_summarises_and_keeps_the_chat(tmp_path: Path):
    async with at_work(tmp_path, held(SUMMARY)) as ui:
        before, path, shown = ui.usage.used, ui.path, ui.blocks
        await ui.send("/compact the api")
        assert ui.activity.state is not None
        assert ui.activity.state.label == "Compacting: choosing what to keep"
        assert ui.activity.state.output_chars == len(SUMMARY)
        await ui.finish()
        (asked,) = ui.stage.model.requests
        assert "the api" in str(asked)
        (block,) = summaries(ui)
        assert "The help shows the options as a table" in block.summary
        assert block.tokens_before == before
        assert block.tokens_after == ui.usage.used < before
        assert ui.blocks[: len(shown)] == shown
        assert ui.path != path


async def test_compact_shows_at_once_that_it_works_and_a_second_one_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with at_work(tmp_path, held(SUMMARY)) as ui:
        used, planner, go_on = ui.usage.used, ui.runtime.planner, asyncio.Event()
        preview = planner.preview

        async def count_slowly(request: CompactionRequest, strategy: str) -> CompactionPreview:
            await go_on.wait()
            return await preview(request, strategy)

        monkeypatch.setattr(planner, "preview", count_slowly)
        await ui.submit("/compact")
        await ui.until(lambda: ui.activity.state is not None)
        assert ui.activity.state is not None
        assert ui.activity.state.label == f"Compacting {used:,} tokens"
        await ui.submit("/compact")
        await ui.until(lambda: ui.notices)
        assert ui.notices == ["A compaction is already running. Esc or /abort stops it."]
        go_on.set()
        await ui.settle()
        await ui.finish()
        assert len(summaries(ui)) == 1


async def test_compact_during_an_automatic_compaction_says_that_one_is_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with at_work(tmp_path, Reply(text="Well."), window=FULL) as ui:
        planner, begun, go_on = ui.runtime.planner, asyncio.Event(), asyncio.Event()
        outcome = planner.outcome

        async def decide_slowly(*given: Any) -> Outcome:
            begun.set()
            await go_on.wait()
            return await outcome(*given)

        monkeypatch.setattr(planner, "outcome", decide_slowly)
        await ui.submit("work")
        await begun.wait()
        await ui.submit("/compact")
        await ui.until(lambda: ui.notices)
        assert ui.notices == ["A compaction is already running. Esc or /abort stops it."]
        go_on.set()
        await ui.settle()
        assert len(summaries(ui)) == 1
        assert not ui.runtime.is_compacting


async def test_esc_ends_a_compaction_that_still_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with at_work(tmp_path) as ui:
        never = asyncio.Event()

        async def count_forever(_request: CompactionRequest, _strategy: str) -> CompactionPreview:
            await never.wait()
            raise AssertionError

        monkeypatch.setattr(ui.runtime.planner, "preview", count_forever)
        path = ui.path
        await ui.submit("/compact")
        await ui.until(lambda: ui.activity.state is not None)
        await ui.pilot.press("escape")
        await ui.until(lambda: not ui.is_running)
        assert ui.notices == ["Compaction cancelled; nothing was changed."]
        assert ui.path == path


@pytest.mark.thorough
async def test_compact_waits_for_the_end_of_a_turn_but_its_preview_does_not(tmp_path: Path):
    async with at_work(tmp_path, held("still")) as ui:
        await ui.send("go")
        await ui.send("/compact")
        assert ui.notices == [
            "Cannot compact while the agent works. Stop it first with Esc or /abort."
        ]
        await opened(ui, "/compact --preview", "after /compact")
        ui.let_go()
        await ui.until(lambda: not ui.is_running)
        assert isinstance(ui.app.screen, PreviewScreen)
        assert len(ui.notices) == 1
        assert summaries(ui) == []


async def test_an_unknown_option_compacts_nothing(tmp_path: Path):
    async with at_work(tmp_path) as ui:
        await ui.send("/compact --preveiw")
        told = "Unknown option --preveiw. /compact takes --preview, --force and --strategy."
        assert ui.notices == [told]
        assert summaries(ui) == []


@pytest.mark.parametrize(
    ("typed", "note"),
    [
        ("--strategy hybrid", "hybrid: 9 tool results"),
        ("--strategy hybrid the api", "hybrid: 9 tool results"),
        ("the api --strategy=tiered", ""),
    ],
)
async def test_a_strategy_that_is_named_works_in_this_session(
    tmp_path: Path, typed: str, note: str
):
    async with at_work(tmp_path) as ui:
        path = ui.path
        await ui.send(f"/compact {typed}")
        (block,) = summaries(ui)
        assert note in block.note + block.summary
        assert block.tokens_after < block.tokens_before
        assert ui.path == path


async def test_a_focus_beside_a_strategy_reaches_the_model(tmp_path: Path):
    async with at_work(tmp_path, held()) as ui:
        await ui.send("/compact the api --strategy agent")
        (asked,) = ui.stage.model.requests
        assert "the api" in str(asked)


async def test_a_strategy_that_there_is_not_compacts_nothing(tmp_path: Path):
    async with at_work(tmp_path) as ui:
        await ui.send("/compact --strategy magic")
        await ui.send("/compact --strategy")
        assert ui.notices == [
            "There is no compaction strategy 'magic'. Available: tiered, hybrid, agent.",
            "--strategy needs a name. Available: tiered, hybrid, agent.",
        ]
        assert summaries(ui) == []


async def test_escape_cancels_a_compaction_and_gives_back_what_was_typed(tmp_path: Path):
    async with at_work(tmp_path, held(SUMMARY)) as ui:
        before = ui.path.read_bytes()
        await ui.send("/compact")
        await ui.send("and then this")
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.notices == ["Compaction cancelled; nothing was changed."]
        assert not ui.is_running
        assert ui.text == "and then this"
        assert ui.path.read_bytes() == before


async def test_what_is_typed_during_a_compaction_is_sent_after_it(tmp_path: Path):
    async with at_work(tmp_path, held(SUMMARY), Reply(text="On it.")) as ui:
        await ui.send("/compact")
        await ui.send("go on with the parser")
        await ui.finish()
        assert ui.sent[-1] == "go on with the parser"
        kinds = [type(block) for block in ui.blocks[-3:]]
        assert kinds == [SummaryBlock, UserBlock, AssistantBlock]


def percent(ui: Ui) -> int:
    usage = ui.status.usage
    assert usage.label == f"[ctx: ~{usage.percent}%]"
    return usage.percent


async def test_an_automatic_compaction_is_one_line_in_the_turn_that_goes_on(tmp_path: Path):
    reply = held("Well.", usage=sized(9_200))
    async with at_work(tmp_path, reply, window=FULL) as ui:
        assert percent(ui) == pytest.approx(85, abs=1), "the prompt names the folder"
        await ui.send("work")
        assert ui.is_running
        assert percent(ui) == pytest.approx(64, abs=1)
        (block,) = summaries(ui)
        assert "1 message: thinking and repeated outputs" in block.summary
        await ui.finish()
        assert ui.status.usage.label == "[ctx: 25%]"


async def test_ctrl_o_unfolds_what_a_compaction_did(tmp_path: Path):
    async with at_work(tmp_path) as ui:
        await ui.send("/compact --strategy tiered")

        def shown() -> str:
            chat = ui.chat
            return "\n".join(chat.render_line(row).text for row in range(chat.size.height))

        assert re.search(r"context compacted \(3\dk -> 2\dk tokens\)", shown())
        assert "1 message: thinking" not in shown()
        await ui.pilot.press("ctrl+o")
        await ui.settle()
        ui.chat.follow_end()
        await ui.settle()
        assert "1 message: thinking" in shown()


@pytest.mark.thorough
async def test_the_preview_shows_tiers_and_facts_and_writes_nothing(tmp_path: Path):
    async with at_work(tmp_path) as ui:
        expected, file = await ui.runtime.preview_compaction(), ui.path.read_bytes()
        label = ui.status.usage.label
        await opened(ui, "/compact --preview", "after /compact")
        shown = page_text(ui)
        assert f"{expected.compact_tokens:,} tokens" in shown
        for freed in expected.freed.values():
            assert f"frees {freed:,} tokens" in shown
        for part in (
            f"{ui.usage.used:,}",
            label,
            f"Would leave {expected.tokens_after:,} tokens; its target is 24,000 (40%)",
            "Never touch anything below vendor/.",
            "src/parser.py",
            "Files read (31)",
            "+26 more",
            "1 failed, 61 passed",
            "Write it up",
        ):
            assert part in shown
        assert "schema_5.py" not in shown
        await ui.pilot.press("escape")
        await ui.settle()
        assert len(ui.app.screen_stack) == 1
        assert ui.status.usage.label == label
        assert ui.path.read_bytes() == file


async def test_what_the_preview_says_is_what_comes_of_it(tmp_path: Path):
    async with at_work(tmp_path) as ui:
        expected = await ui.runtime.preview_compaction()
        assert max(expected.messages) == 2
        await ui.send("/compact --strategy tiered")
        (block,) = summaries(ui)
        assert block.tokens_before == expected.tokens_before
        assert block.tokens_after == expected.tokens_after == ui.usage.used


async def test_a_focus_beside_the_preview_is_left_out_with_a_word(tmp_path: Path):
    async with at_work(tmp_path) as ui:
        await opened(ui, "/compact --preview the api", "after /compact")
        assert ui.notices == ["--preview ignores the focus, which affects only the summary."]


async def test_the_preview_says_why_there_would_be_no_summary(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        said(ui.runtime, UserMessage(content="hello"))
        await opened(ui, "/compact --preview", "Nothing to compact: less than one")


async def test_a_page_says_what_kept_the_preview_from_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def failing() -> CompactionPreview:
        raise AgentTuiError("The session cannot be read.", "Look at its file.")

    async with at_work(tmp_path) as ui:
        monkeypatch.setattr(ui.runtime, "preview_compaction", failing)
        for line in ("/compact --preview", "/context"):
            await opened(ui, line, "The session cannot be read. Look at its file.")
            await ui.pilot.press("escape")
            await ui.settle()


async def test_the_menu_offers_the_preview(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.write("/compact --p")
        assert [item.label for item in ui.app.prompt.menu.items] == ["--preview"]
        await ui.pilot.press("tab")
        assert ui.text == "/compact --preview"


async def test_context_shows_the_map_and_what_could_go(tmp_path: Path):
    async with at_work(tmp_path) as ui:
        old_outputs = (await ui.runtime.preview_compaction()).freed[2]
        await opened(ui, "/context", f"{old_outputs:,}")
        shown = page_text(ui)
        assert "Your messages" in shown
        assert "automatic: old outputs are cut to a line" in shown
        assert "read src/generated/schema_" in shown
        await ui.pilot.press("escape")
        await ui.settle()
        assert not isinstance(ui.app.screen, ContextScreen)


async def test_uncompact_waits_for_the_end_of_a_turn(tmp_path: Path):
    async with at_work(tmp_path, held()) as ui:
        await ui.send("go")
        await ui.send("/uncompact")
        assert ui.notices == [
            "Cannot undo while the agent works. Stop it first with Esc or /abort."
        ]


async def test_uncompact_says_when_there_is_nothing_to_undo(tmp_path: Path):
    async with at_work(tmp_path) as ui:
        await ui.send("/uncompact")
        assert ui.notices == ["Nothing to undo: this conversation was not compacted."]


async def test_uncompact_in_place_says_how_large_the_context_is_again(tmp_path: Path):
    async with at_work(tmp_path) as ui:
        before, label = ui.usage.used, ui.status.usage.label
        await ui.send("/compact --strategy tiered")
        assert ui.status.usage.label != label
        await ui.send("/uncompact")
        assert ui.notices == [f"Compaction undone: the context is back to about {before:,} tokens."]
        assert ui.status.usage.label == label


async def test_uncompact_after_compact_shows_the_session_from_before(tmp_path: Path):
    async with at_work(tmp_path, Reply(text=SUMMARY)) as ui:
        path, before = ui.path, ui.usage.used
        await ui.send("/compact")
        said(ui.runtime, UserMessage(content="said since"), answer("An answer."))
        await ui.send("/uncompact")
        assert ui.path == path
        shown = [block.text for block in ui.blocks if isinstance(block, UserBlock)]
        assert shown[-2:] == ["yes, go with the table", "said since"]
        size = f"about {ui.usage.used:,} tokens"
        assert ui.notices == [f"Compaction undone: back in the session before /compact, {size}."]
        assert ui.usage.used > before, "what was said since came along"


def test_help_tells_of_the_preview_and_of_undoing():
    registry = load_commands()
    compact, uncompact = registry.find("compact"), registry.find("uncompact")
    assert compact is not None
    assert compact.argument_hint == "[focus] [--preview] [--force] [--strategy NAME]"
    assert uncompact is not None
    assert uncompact.description == "Undo the last compaction"


@pytest.mark.thorough
@pytest.mark.parametrize("answers", [("n",), ("escape",), ("y",)], ids=["no", "left", "yes"])
async def test_compact_that_frees_next_to_nothing_asks_before_a_new_session_begins(
    tmp_path: Path, answers: tuple[str, ...]
):
    async with little_said(tmp_path) as ui:
        path = ui.path
        await ui.submit("/compact")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        asked = "\n".join(str(widget.render()) for widget in ui.app.screen.query("Static"))
        assert "This would free only about" in asked
        let_pause(ui)
        await ui.pilot.press(*answers)
        await ui.settle()
        await ui.until(lambda: bool(summaries(ui)) == ("y" in answers))
        assert (ui.path != path) == ("y" in answers)


async def test_a_message_written_while_compact_asks_is_sent_and_no_answer(tmp_path: Path):
    async with little_said(tmp_path) as ui:
        path = ui.path
        await ui.submit("/compact")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        let_pause(ui)
        await ui.write("prefer sqlite, not that")
        let_pause(ui)
        await ui.pilot.press("enter")
        assert isinstance(ui.app.screen, ChoiceScreen)
        assert ui.queued == ("prefer sqlite, not that",)
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.queued == ()
        assert ui.path == path
        assert [m.text for m in ui.messages].count("prefer sqlite, not that") == 1


def let_pause(ui: Ui) -> None:
    """A question takes keys as if none had been pressed for long."""
    assert isinstance(ui.app.screen, ChoiceScreen)
    ui.app.screen._quiet_since_s = float("-inf")


async def test_compact_by_force_asks_nothing(tmp_path: Path):
    async with little_said(tmp_path) as ui:
        path = ui.path
        await ui.send("/compact --force the greeting")
        assert ui.path != path


@asynccontextmanager
async def little_said(root: Path) -> AsyncGenerator[Ui]:
    """The app over a conversation that a summary would hardly make shorter."""
    stage = Stage(root)
    runtime = stage.runtime([Reply(text="Fine."), Reply(text=GOOD_SUMMARY)], window=200_000)
    talk(runtime.conversation.log, 1)
    async with running_app(root, stage=stage, runtime=runtime) as ui:
        await ui.send("Hi.")
        yield ui


async def test_what_a_compaction_leaves_to_the_summary_is_dimmed_where_it_stands(tmp_path: Path):
    async with at_work(tmp_path, Reply(text=SUMMARY)) as ui:
        before = len(ui.blocks)
        await ui.send("/compact")
        past = [item.is_past for item in ui.chat._stack]
        assert len(past) == before + 1, "nothing goes from the screen"
        assert past == sorted(past, reverse=True)
        assert past[0]
        assert not past[-1]
