"""Compaction as a person sees it: commands, pages, lines in the chat, the bar."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.commands.core.discovery import built_in_commands
from agent_tui.errors import AgentTuiError
from agent_tui.events import (
    AgentEvent,
    CompactionFailed,
    CompactionFinished,
    CompactionProgress,
    CompactionStarted,
    ContextChanged,
    ReplyFinished,
    ReplyStarted,
    SessionChanged,
    TextDelta,
)
from agent_tui.messages import AssistantMessage, UserMessage
from agent_tui.tokens import ContextUsage
from agent_tui.ui.screens.context import ContextScreen
from agent_tui.ui.screens.preview import PreviewScreen
from agent_tui.ui.transcript import SummaryBlock, UserBlock
from tests.support.fake_runtime import PREVIEW, FakeRuntime
from tests.ui.fed_app import Ui, running_app

BY_EDITS = CompactionFinished(
    "e9", "threshold", "", 150_000, 62_000, "", False, freed={0: 60_000}, messages={0: 12}
)


def summaries(ui: Ui) -> list[SummaryBlock]:
    return [
        block for block in ui.app.view.widgets.transcript.blocks if isinstance(block, SummaryBlock)
    ]


def page_text(ui: Ui) -> str:
    """All that is written on the page on top."""
    return "\n".join(str(widget.render()) for widget in ui.app.screen.query("#page *"))


async def opened(ui: Ui, line: str, mark: str) -> None:
    """Send `line` and wait until the page on top shows `mark`."""
    await ui.send(line)
    await ui.until(lambda: len(ui.app.screen_stack) > 1 and mark in page_text(ui))


async def test_compact_summarises_and_keeps_the_chat(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/compact the api")
        assert ui.runtime.compactions == ["the api"]
        ui.runtime.feed(CompactionStarted("manual", "the api", 150_000))
        ui.runtime.feed(CompactionProgress("summarising 1/2", 400))
        await ui.settle()
        assert ui.app.view.widgets.activity.state is not None
        assert ui.app.view.widgets.activity.state.label == "Compacting: summarising 1/2"
        ui.runtime.finish(ui.runtime.compacted("## Goal"))
        await ui.settle()
        assert summaries(ui) == [SummaryBlock("## Goal", 150_000, 9_000)]


async def test_compact_waits_for_the_end_of_a_turn_but_its_preview_does_not(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("go")
        await ui.send("/compact")
        assert ui.runtime.compactions == []
        assert ui.notices[-1] == "Cannot compact while responding. Use /abort first."
        await opened(ui, "/compact --preview", "88,300")
        ui.runtime.feed(ReplyStarted("m"), TextDelta("still"))
        ui.runtime.finish()
        await ui.settle()
        assert isinstance(ui.app.screen, PreviewScreen)
        assert len(ui.notices) == 1


async def test_an_unknown_option_compacts_nothing(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/compact --preveiw")
        assert ui.runtime.compactions == []
        assert ui.notices == ["/compact has no option --preveiw, only --preview and --strategy."]


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("--strategy hybrid", "hybrid: "),
        ("--strategy hybrid the api", "hybrid: the api"),
        ("the api --strategy=tiered", "tiered: the api"),
    ],
)
async def test_a_strategy_that_is_named_works_in_this_session(
    tmp_path: Path, typed: str, asked: str
):
    async with running_app(tmp_path) as ui:
        await ui.send(f"/compact {typed}")
        assert ui.runtime.compactions == [asked]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("--strategy magic", "'magic' is not a strategy; there are tiered, hybrid, agent."),
        ("--strategy", "--strategy needs a name; there are tiered, hybrid, agent."),
    ],
)
async def test_a_strategy_that_there_is_not_compacts_nothing(tmp_path: Path, typed: str, said: str):
    async with running_app(tmp_path) as ui:
        await ui.send(f"/compact {typed}")
        assert ui.runtime.compactions == []
        assert ui.notices == [said]


async def test_escape_cancels_a_compaction_and_gives_back_what_was_typed(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        cancelled = CompactionFailed("Compaction cancelled; nothing was changed.")
        ui.runtime.on_abort = (cancelled,)
        await ui.send("/compact")
        await ui.send("and then this")
        assert ui.runtime.submitted == []
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.notices == [cancelled.message]
        assert not ui.app.controller.turns.is_running
        assert ui.text == "and then this"


async def test_what_is_typed_during_a_compaction_is_sent_after_it(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/compact")
        await ui.send("go on with the parser")
        ui.runtime.finish(ui.runtime.compacted("## Goal"))
        await ui.until(lambda: ui.runtime.submitted == ["go on with the parser"])
        assert isinstance(ui.app.view.widgets.transcript.blocks[-1], UserBlock)


async def test_an_automatic_compaction_is_one_line_in_the_turn_that_goes_on(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("work")
        before = ContextUsage(150_000, 200_000, is_estimate=False)
        ui.runtime.conversation.usage = before
        ui.runtime.feed(ContextChanged(before), CompactionStarted("threshold", "", 150_000))
        await ui.settle()
        assert ui.status.usage.label == "[ctx: 75%]"
        after = ContextUsage(62_000, 200_000, is_estimate=True)
        ui.runtime.conversation.usage = after
        ui.runtime.feed(BY_EDITS, ContextChanged(after))
        await ui.settle()
        assert ui.status.usage.label == "[ctx: ~31%]"
        assert ui.app.controller.turns.is_running
        (block,) = summaries(ui)
        assert "12 messages: thinking, and output that came again later" in block.summary
        counted = ContextUsage(61_000, 200_000, is_estimate=False)
        ui.runtime.conversation.usage = counted
        ui.runtime.finish(
            ReplyStarted("m"), ReplyFinished("e", AssistantMessage()), ContextChanged(counted)
        )
        await ui.settle()
        assert ui.status.usage.label == "[ctx: 30%]"


async def test_ctrl_o_unfolds_what_a_compaction_did(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("work")
        ui.runtime.feed(BY_EDITS)
        await ui.settle()
        chat = ui.app.view.widgets.transcript

        def shown() -> str:
            lines = (chat.render_line(row).text for row in range(chat.size.height))
            return "\n".join(lines)

        assert "context compacted (150k -> 62k tokens)" in shown()
        assert "12 messages" not in shown()
        await ui.pilot.press("ctrl+o")
        await ui.settle()
        assert "12 messages: thinking, and output" in shown()


async def test_the_preview_shows_tiers_and_facts_and_writes_nothing(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        ui.runtime.write(UserMessage(content="a question"))
        entries = ui.runtime.conversation.log.entries
        ui.runtime.conversation.usage = ContextUsage(144_000, 200_000, is_estimate=False)
        await opened(ui, "/compact --preview", "88,300")
        shown = page_text(ui)
        for part in (
            "144,000",
            "[ctx: 72%]",
            "31,200",
            "[ctx: ~56%]",
            "its target is 80,000 (40%)",
            "Never touch anything below vendor/.",
            "src/parser.py",
            "Read files (31)",
            "+26 more",
            "1 failed, 61 passed",
            "Write it up",
            "A table or a list?",
        ):
            assert part in shown
        assert "schema_5.py" not in shown
        assert ui.runtime.compactions == []
        assert ui.runtime.conversation.log.entries == entries
        await ui.pilot.press("escape")
        await ui.settle()
        assert len(ui.app.screen_stack) == 1
        assert ui.status.usage.label == "[ctx: 72%]"


async def test_a_focus_beside_the_preview_is_left_out_with_a_word(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await opened(ui, "/compact --preview the api", "88,300")
        assert ui.notices == ["A focus changes the summary alone, so --preview leaves it out."]


async def test_the_preview_says_why_there_would_be_no_summary(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        ui.runtime.preview = replace(
            PREVIEW, tiers=PREVIEW.tiers[:3], problem="Nothing to compact: one exchange only."
        )
        await opened(ui, "/compact --preview", "Nothing to compact: one exchange only.")


@pytest.mark.parametrize("line", ["/compact --preview", "/context"])
async def test_a_page_says_what_kept_the_preview_from_being_made(tmp_path: Path, line: str):
    async with running_app(tmp_path) as ui:
        ui.runtime.preview = AgentTuiError("The session cannot be read.", "Look at its file.")
        await opened(ui, line, "The session cannot be read. Look at its file.")


async def test_the_menu_offers_the_preview(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.write("/compact --p")
        assert [item.label for item in ui.app.prompt.menu.items] == ["--preview"]
        await ui.pilot.press("tab")
        assert ui.text == "/compact --preview"


async def test_context_shows_the_map_and_what_could_go(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        ui.runtime.write(UserMessage(content="a question of some words"))
        await opened(ui, "/context", "26,400")
        shown = page_text(ui)
        assert "Your messages" in shown
        assert "▸ 2  old outputs" in shown
        assert "you: a question of some words" in shown
        await ui.pilot.press("escape")
        await ui.settle()
        assert not isinstance(ui.app.screen, ContextScreen)


async def test_uncompact_waits_for_the_end_of_a_turn(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("go")
        await ui.send("/uncompact")
        assert ui.notices == ["Cannot undo while responding. Use /abort first."]


async def test_uncompact_says_when_there_is_nothing_to_undo(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        ui.runtime.undone = AgentTuiError("Nothing to undo.", "This session was never compacted.")
        await ui.send("/uncompact")
        assert ui.notices == ["Nothing to undo. This session was never compacted."]


def undo(runtime: FakeRuntime, *events: AgentEvent) -> None:
    """What `/uncompact` does next: the context is large again."""
    runtime.conversation.usage = usage = ContextUsage(150_000, 200_000, is_estimate=True)
    runtime.undone = (*events, ContextChanged(usage))


async def test_uncompact_in_place_says_how_large_the_context_is_again(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        undo(ui.runtime)
        await ui.send("/uncompact")
        assert ui.notices == [
            "Undone: the context is as it was before, about 150,000 tokens again."
        ]
        assert ui.status.usage.label == "[ctx: ~75%]"


async def test_uncompact_after_compact_shows_the_session_from_before(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/compact")
        ui.runtime.finish(ui.runtime.compacted("## Goal"))
        await ui.settle()
        ui.runtime.write(UserMessage(content="from before"), UserMessage(content="said since"))
        log = ui.runtime.conversation.log
        undo(ui.runtime, SessionChanged(log.header.id, log.path, log.name, "resumed"))
        await ui.send("/uncompact")
        assert ui.app.view.widgets.transcript.blocks[:2] == (
            UserBlock("from before"),
            UserBlock("said since"),
        )
        assert ui.notices == [
            "Undone: back in the session from before /compact, about 150,000 tokens."
        ]


def test_help_tells_of_the_preview_and_of_undoing():
    registry = built_in_commands()
    compact, uncompact = registry.find("compact"), registry.find("uncompact")
    assert compact is not None
    assert compact.argument_hint == "[focus] [--preview] [--strategy NAME]"
    assert uncompact is not None
    assert uncompact.description == "Undo the last compaction"
