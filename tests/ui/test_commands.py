from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_tui.commands.core.registry import load_commands
from agent_tui.commands.sessions import age
from agent_tui.features.session_picker.screen import SessionPicker
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import UserMessage
from agent_tui.providers.base import ProviderError
from agent_tui.ui.screens.listing import ListingScreen, ModelPicker, ThemePicker
from agent_tui.ui.screens.modal import PageRow, PageScreen
from agent_tui.ui.screens.picker import PickerRow, RowList, search_rows
from agent_tui.ui.theme.themes import DARK, LIGHT
from agent_tui.ui.transcript.blocks import UserBlock, WelcomeBlock
from tests.support.models import LOCAL, MODEL, OTHER
from tests.support.rows import each_row
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, answer, asking, held, listed, running_app, said

COMMANDS = {entry.name for entry in load_commands().commands}


def test_every_command_of_the_program_is_there():
    assert {
        "plan",
        "status",
        "compact",
        "uncompact",
        "context",
        "abort",
        "queue",
        "retry",
        "model",
        "thinking",
        "permissions",
        "tools",
        "memory",
        "skills",
        "init",
        "loop",
        "goal",
        "why",
        "rules",
        "trust",
        "mcp",
        "jobs",
        "background",
        "vim",
        "hooks",
        "find",
        "cost",
        "account",
        "budget",
        "btw",
        "output",
        "new",
        "clear",
        "reload",
        "resume",
        "agents",
        "tree",
        "undo",
        "fork",
        "name",
        "export",
        "copy",
        "settings",
        "theme",
        "diff",
        "review",
        "comment",
        "tour",
        "mouse",
        "scrollback",
        "keys",
        "help",
        "exit",
    } == COMMANDS
    assert all(entry.description for entry in load_commands().commands)


async def test_abort_stops_the_turn(tmp_path: Path):
    async with running_app(tmp_path, held()) as ui:
        await ui.send("go")
        await ui.send("/abort")
        assert not ui.is_running
        await ui.send("/abort")
        assert ui.notices[-1] == "Nothing is running."


async def test_btw_is_answered_beside_a_turn_that_runs(tmp_path: Path):
    async with running_app(tmp_path, held("Half"), Reply("It is Rust.")) as ui:
        await ui.send("go")
        await ui.send("/btw which language?")
        await ui.until(lambda: ui.notices[-1:] == ["It is Rust."])
        assert ui.notices[-2] == "/btw which language?"
        assert ui.is_running
        assert not ui.queued


@pytest.mark.parametrize("beside_a_turn", [True, False])
async def test_esc_stops_a_side_question_and_says_so(tmp_path: Path, beside_a_turn: bool):
    replies = [held("Half")] if beside_a_turn else []
    async with running_app(tmp_path, *replies, held()) as ui:
        if beside_a_turn:
            await ui.send("go")
        await ui.write("/btw which language?")
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.app.controller.runtime.is_busy_beside)
        await ui.pilot.press("escape")
        told = "Stopped before this was answered: which language?"
        await ui.until(lambda: told in ui.notices)
        await ui.until(lambda: not ui.is_running)


async def test_queue_adds_to_the_running_turn_and_sends_without_one(tmp_path: Path):
    async with running_app(tmp_path, held()) as ui:
        await ui.send("/queue first")
        assert ui.sent == ["first"]
        await ui.send("/queue second")
        assert ui.queued == ("second",)


async def test_retry_goes_on(tmp_path: Path):
    broken = Reply(text="Half", error=ProviderError("bad_request", "It was not understood."))
    async with running_app(tmp_path, broken, Reply(text="Whole.")) as ui:
        await ui.send("/retry")
        assert ui.notices == ["Nothing to continue yet."]
        await ui.send("hello")
        assert ui.notices[-1] == "It was not understood. /retry continues."
        await ui.send("/retry")
        assert ui.sent == ["hello"]
        assert ui.answers[-1] == "Whole."


async def test_a_new_session_begins_empty_and_the_old_one_stays(tmp_path: Path):
    async with running_app(tmp_path, Reply(text="Hi."), Reply(text="Hi.")) as ui:
        for line in ("/new", "/clear"):
            await ui.send("hello")
            before = ui.path
            await ui.send(line)
            assert [type(block) for block in ui.blocks] == [WelcomeBlock], line
            assert ui.path != before
            assert before is not None
            assert before.is_file()


async def test_a_session_is_not_left_while_a_turn_runs(tmp_path: Path):
    async with running_app(tmp_path, held()) as ui:
        await ui.send("go")
        await ui.send("/new")
        assert (
            ui.notices[-1]
            == "Cannot leave this session while the agent works. Stop it first with Esc or /abort."
        )


async def test_a_model_chosen_during_a_turn_answers_the_next_message(tmp_path: Path):
    async with running_app(tmp_path, held("Half"), Reply("Whole.")) as ui:
        await ui.send("go")
        before = ui.model
        await ui.submit("/model gpt")
        await ui.until(lambda: ui.notices)
        assert ui.notices == [f"The model changes to {OTHER.name} when this turn ends."]
        assert ui.model == before
        await ui.finish()
        assert ui.model == OTHER
        await ui.send("next")
        assert [request.model for request in ui.stage.model.requests] == [before, OTHER]


async def test_a_change_that_waits_for_a_turn_is_dropped_when_the_program_ends(tmp_path: Path):
    async with running_app(tmp_path, held("Half")) as ui:
        await ui.send("go")
        before = ui.model
        await ui.submit("/model gpt")
        await ui.until(lambda: ui.notices)
    assert ui.model in (before, OTHER)


async def test_model_by_name(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/model gpt")
        assert ui.model == OTHER
        assert ui.status.model == OTHER.name
        await ui.send("/model nonsense")
        assert ui.notices[-1].startswith("No model is called nonsense.")
        assert ui.model == OTHER


async def test_the_model_picker_searches_and_chooses(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/model")
        await ui.until(lambda: isinstance(ui.app.screen, ModelPicker))
        await ui.settle()
        await ui.write("small")
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.model == LOCAL


async def test_the_model_picker_can_be_left(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/model")
        await ui.until(lambda: isinstance(ui.app.screen, ModelPicker))
        await ui.pilot.press("down", "escape")
        await ui.settle()
        assert ui.model == MODEL


async def seeded(tmp_path: Path) -> Stage:
    """Two earlier sessions of this project and one of another."""
    for folder, text in (
        ("workspace", "first question"),
        ("workspace", "about parsers"),
        ("elsewhere", "other project"),
    ):
        earlier = asking(Stage(tmp_path, folder))
        await said(earlier, UserMessage(content=text), answer("Answer.")).aclose()
    return Stage(tmp_path)


@pytest.mark.thorough
async def test_resume_opens_the_session_that_was_searched_for(tmp_path: Path):
    async with running_app(tmp_path, stage=await seeded(tmp_path)) as ui:
        await ui.send("/resume")
        await ui.until(lambda: isinstance(ui.app.screen, SessionPicker))
        await ui.until(lambda: ui.app.screen.query_one(RowList).count == 3)
        await ui.write("parsers")
        await ui.pilot.press("enter")
        await ui.until(lambda: UserBlock("about parsers") in ui.blocks)


async def test_sessions_is_another_name_for_resume(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/sessions")
        await ui.until(lambda: isinstance(ui.app.screen, SessionPicker))


async def test_resume_by_id_says_when_there_is_no_such_session(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/resume nothing-like-it")
        await ui.until(lambda: ui.notices)
        assert "nothing-like-it" in ui.notices[-1]


async def test_name_is_shown_in_the_status_bar(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/name parser work")
        assert ui.status.name == "parser work"


@pytest.mark.thorough
async def test_export_writes_a_file_of_each_kind(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        said(ui.runtime, UserMessage(content="the question"))
        for argument, suffix in (("", ".md"), ("html", ".html"), ("jsonl", ".jsonl")):
            await ui.send(f"/export {argument}")
            (written,) = ui.workspace.glob(f"session-*{suffix}")
            assert "the question" in written.read_text(encoding="utf-8")


async def test_export_never_overwrites(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        (ui.workspace / "out.md").write_text("mine", encoding="utf-8")
        said(ui.runtime, UserMessage(content="the question"))
        await ui.send("/export out.md")
        assert "already exists" in ui.notices[-1]
        assert (ui.workspace / "out.md").read_text(encoding="utf-8") == "mine"


async def test_copy_says_which_way_it_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SSH_TTY", "/dev/pts/1")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("TMUX", "STY", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    async with running_app(tmp_path, Reply(text="the answer")) as ui:
        await ui.send("/copy")
        assert ui.notices[-1] == "No reply to copy yet."
        await ui.send("hi")
        await ui.send("/copy")
        assert ui.notices[-1].startswith("Sent 10 characters to the terminal (OSC 52)")
        assert ui.app.clipboard == "the answer"


async def test_a_block_of_code_is_copied(tmp_path: Path):
    one = Reply(text="Run this:\n\n```sh\nmake all\n```\n")
    two = Reply(text="Or:\n\n```\none\n```\n\n```\ntwo\n2\n```")
    async with running_app(tmp_path, Reply(text="no code"), one, two) as ui:
        await ui.send("hi")
        await ui.send("/copy code")
        assert ui.notices[-1] == "The last reply has no block of code."
        await ui.send("hi")
        await ui.send("/copy code")
        assert ui.app.clipboard == "make all\n"
        await ui.send("hi")
        await ui.send("/copy code")
        await ui.until(lambda: isinstance(ui.app.screen, ListingScreen))
        assert [row.strip() for row in listed(ui.app.screen)] == ["one", "two"]
        await ui.pilot.press("down", "enter")
        await ui.settle()
        assert ui.app.clipboard == "two\n2\n"


async def test_thinking_sets_the_level(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/thinking high")
        assert ui.thinking == "high"
        await ui.send("/thinking enormous")
        levels = "auto, off, low, medium, high, xhigh, max"
        assert ui.notices[-1] == f"Unknown level enormous. Use one of {levels}, show, hide."


async def test_permissions_shows_the_rules_or_sets_the_mode(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/permissions plan")
        assert ui.status.mode == "plan"
        assert ui.app.prompt.has_class("-plan")
        await ui.send("/permissions")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))


async def test_permissions_removes_a_rule_made_by_an_answer(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        ui.runtime.conversation.permissions.book.add_session_rule("bash(make all)")
        await ui.send("/permissions remove bash(make)")
        assert "You can remove: bash(make all)" in ui.notices[-1]
        await ui.send("/permissions remove bash(make all)")
        assert ui.notices[-1] == "Removed: bash(make all)"
        assert ui.rules == ()


async def test_a_page_opens_and_escape_closes_it(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        for line in ("/tools", "/memory", "/keys", "/help"):
            await ui.send(line)
            await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
            await ui.pilot.press("down", "escape")
            await ui.settle()
            assert len(ui.app.screen_stack) == 1, line
            await ui.write("x")
            assert ui.text == "x"
            await ui.pilot.press("backspace")


async def test_plan_sets_the_mode(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/plan")
        assert ui.status.mode == "plan"


async def test_status_is_one_page(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/status")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        shown = shown_words(ui)
        assert ui.runtime.conversation.log.header.id in shown
        assert "automatically" in shown


@pytest.mark.parametrize(
    ("name", "means"),
    [("usage", "cost"), ("rename", "name"), ("rewind", "tree"), ("config", "settings")],
)
def test_names_known_from_elsewhere_are_understood(name: str, means: str):
    registry = load_commands()
    assert registry.find(name) is registry.find(means) is not None


@pytest.mark.thorough
async def test_help_is_searched_by_words_and_opened_by_a_question_mark(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.pilot.press("question_mark")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        assert {"/compact", "ctrl+t"} <= set(shown_words(ui))
        await ui.pilot.press(*"thinking")
        assert "ctrl+t" in shown_words(ui)
        assert "/compact" not in shown_words(ui)
        await ui.pilot.press(*"zzz")
        assert ui.app.screen.query_one("#page-nothing").display
        await ui.pilot.press("escape")
        assert "/compact" in shown_words(ui), "it cleared the search"
        await ui.pilot.press("escape")
        assert not isinstance(ui.app.screen, PageScreen)


async def test_a_question_mark_behind_other_letters_is_written(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.pilot.press(*"why", "question_mark")
        assert ui.text == "why?"


def shown_words(ui: Ui) -> list[str]:
    """The words of the rows of a page that are not hidden."""
    rows = [row for row in ui.app.screen.query(PageRow) if row.display]
    return [word for row in rows for word in row.words.split()]


async def test_cost_says_what_the_session_took(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/cost")
        assert ui.notices[-1] == "This session: 0 tokens in, 0 out, $0.0000, 0 requests."


async def test_theme_by_name(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        assert ui.app.theme == DARK
        await ui.send(f"/theme {LIGHT}")
        assert ui.app.theme == LIGHT
        await ui.send("/theme mauve")
        assert ui.notices[-1].startswith("Unknown theme mauve.")


@pytest.mark.thorough
async def test_the_theme_picker_tries_on_and_takes_back(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/theme")
        await ui.until(lambda: isinstance(ui.app.screen, ThemePicker))
        await ui.settle()
        await ui.pilot.press("down")
        await ui.settle()
        assert ui.app.theme == LIGHT
        await ui.pilot.press("escape")
        await ui.settle()
        assert ui.app.theme == DARK


@pytest.mark.parametrize("line", ["/exit", "/quit"])
async def test_exit_leaves(tmp_path: Path, line: str):
    async with running_app(tmp_path) as ui:
        await ui.send(line)
        await ui.until(lambda: ui.app.return_value is not None)
    assert ui.is_closed


async def test_an_unknown_command_says_the_nearest_and_keeps_the_text(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/thme dark")
        assert ui.text == "/thme dark"
        assert ui.toasts == ["Unknown command /thme. Did you mean /theme?"]


NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


@each_row(
    ("then", "text"),
    [
        (datetime(2026, 3, 4, 11, 59, 30, tzinfo=UTC), "now"),
        (datetime(2026, 3, 4, 11, 55, tzinfo=UTC), "5m"),
        (datetime(2026, 3, 4, 9, 0, tzinfo=UTC), "3h"),
        (datetime(2026, 3, 1, 12, 0, tzinfo=UTC), "3d"),
        (datetime(2026, 1, 1, 12, 0, tzinfo=UTC), "2026-01-01"),
        (datetime(2026, 3, 5, 12, 0, tzinfo=UTC), "now"),
    ],
)
def test_ages_are_short(then: datetime, text: str):
    assert age(then, NOW) == text


def test_searching_keeps_the_order_and_wants_every_word():
    rows = [PickerRow(n, title) for n, title in enumerate(("fix parser", "parser fix", "docs"))]
    assert [row.value for row in search_rows(rows, "fix pars")] == [0, 1]
    assert {row.value for row in search_rows(rows, "parsre")} == {0, 1}
    assert search_rows(rows, "zzz") == []
