"""``/rules``: the line above the prompt, the question, the file, and what is remembered."""

import io
from pathlib import Path

import pytest

from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.config import Settings
from agent_tui.config.loading import LoadedSettings
from agent_tui.features.print.printer import print_command
from agent_tui.features.rules.command import proposed_line, quote_row
from agent_tui.features.rules.events import RuleOffered
from agent_tui.features.rules.review import answer_file
from agent_tui.features.settings.screen import act_on, acts_at_once
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.sessions.entries import Header
from agent_tui.ui.chat.lines_above_prompt import FeatureLines
from agent_tui.ui.front import ScreenFront
from agent_tui.ui.screens.choice import ChoiceScreen, LineInputScreen
from agent_tui.ui.screens.modal import PageRow, PageScreen
from tests.features.rules.said import BACKGROUND, project, say, session
from tests.support.models import ListedModels
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, held, running_app

UV = ("use uv, not pip", "Please use uv instead of pip.")
MAIN = ("Never push to main.", "never push to main, open a pull request")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A workspace with ``AGENTS.md``, in which `UV` was said in two sessions, and `MAIN` before."""
    stage = Stage(tmp_path)
    (stage.workspace / "AGENTS.md").write_bytes(b"# Rules\r\n\r\n- One.\r\n")
    store = stage.runtime([]).services.store
    for entries in (
        map(say, BACKGROUND * 5),
        session(MAIN[0], day=1),
        session(MAIN[1], day=2),
        session(UV[0], day=3),
        session(UV[1], day=4),
    ):
        with store.create(Header(cwd=str(stage.workspace))) as log:
            for entry in entries:
                log.append(entry)
    return stage


def line(ui: Ui) -> str:
    shown = ui.app.query_one(FeatureLines)
    return str(shown.render()) if shown.display else ""


def asked(ui: Ui) -> str:
    """The question on the screen."""
    assert isinstance(ui.app.screen, ChoiceScreen)
    question = ui.app.screen.question
    return "\n".join((question.title, *question.facts))


async def ask(ui: Ui) -> str:
    await ui.submit("/rules")
    await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
    return asked(ui)


async def press(ui: Ui, key: str) -> None:
    """Give the answer of a key, which counts only after a pause."""
    before = ui.app.screen
    assert isinstance(before, ChoiceScreen)
    values = {choice.key: choice.value for choice in before.question.choices}
    before.dismiss(values.get(key))
    await ui.until(lambda: ui.app.screen is not before)
    await ui.settle()


def agents(ui: Ui) -> bytes:
    return (ui.workspace / "AGENTS.md").read_bytes()


async def test_one_line_offers_the_newest_while_nothing_runs(stage: Stage, tmp_path: Path):
    async with running_app(tmp_path, held("Hm."), stage=stage, size=(120, 30)) as ui:
        assert line(ui) == (
            "You said it more than once: “use uv, not pip” and 1 more rule. "
            "/rules adds it to AGENTS.md."
        )
        assert ui.app.focused is ui.app.prompt.area, "it does not take the prompt"
        await ui.send("go")
        assert line(ui) == ""
        await ui.finish()
        assert line(ui).startswith("You said it more than once")
        assert agents(ui) == b"# Rules\r\n\r\n- One.\r\n"


async def test_a_yes_adds_the_line_shown_and_no_is_remembered(stage: Stage, tmp_path: Path):
    async with running_app(tmp_path, stage=stage, size=(120, 40)) as ui:
        shown = await ask(ui)
        assert shown.startswith("Add this line to AGENTS.md?\nAGENTS.md\n")
        assert "  3   - One.\n  4 + - use uv, not pip\n" in shown
        assert "  2026-01-03  “use uv, not pip” · Write it\n" in f"{shown}\n"
        assert "  2026-01-04  “Please use uv instead of pip.” · Write it\n" in f"{shown}\n"
        assert agents(ui) == b"# Rules\r\n\r\n- One.\r\n", "nothing is written before the yes"
        await press(ui, "y")
        assert agents(ui) == b"# Rules\r\n\r\n- One.\r\n- use uv, not pip\r\n"
        assert "use uv, not pip" in ui.system_prompt
        assert "+ - Never push to main." in asked(ui)
        await press(ui, "n")
        assert line(ui) == ""
        assert agents(ui) == b"# Rules\r\n\r\n- One.\r\n- use uv, not pip\r\n"
    answers = answer_file(stage.workspace).read().answers
    assert [(one.answer, one.line) for one in answers] == [
        ("yes", "use uv, not pip"),
        ("no", "Never push to main."),
    ]
    async with running_app(tmp_path, stage=stage) as ui:
        assert line(ui) == ""
        await ui.submit("/rules")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        await ui.until(lambda: ui.app.screen.query(PageRow))
        rows = "\n".join(row.words for row in ui.app.screen.query(PageRow))
        assert "yes, in agents.md" in rows
        assert "never push to main." in rows


async def test_an_edited_line_is_shown_before_it_is_written(stage: Stage, tmp_path: Path):
    async with running_app(tmp_path, stage=stage, size=(120, 40)) as ui:
        await ask(ui)
        await press(ui, "e")
        assert isinstance(ui.app.screen, LineInputScreen)
        await ui.pilot.press(*"!", "enter")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        assert "+ - use uv, not pip!" in asked(ui)
        assert agents(ui) == b"# Rules\r\n\r\n- One.\r\n"
        await press(ui, "y")
        assert agents(ui).endswith(b"- use uv, not pip!\r\n")


async def test_escape_leaves_it_open(stage: Stage, tmp_path: Path):
    async with running_app(tmp_path, stage=stage, size=(120, 40)) as ui:
        await ask(ui)
        await press(ui, "escape")
        assert line(ui).startswith("You said it more than once")
        assert "use uv" in await ask(ui)
    assert not answer_file(stage.workspace).read().answers


async def test_never_ends_it_for_the_project_until_it_is_switched_on(stage: Stage, tmp_path: Path):
    async with running_app(tmp_path, stage=stage, size=(120, 40)) as ui:
        await ask(ui)
        await press(ui, "v")
        assert "no longer offered in this project" in ui.notices[-1]
        assert line(ui) == ""
    async with running_app(tmp_path, stage=stage) as ui:
        assert line(ui) == ""
        await ui.send("/rules on")
        assert ui.notices[-1] == "Rules are offered in this project again."
        await ui.send("/rules off")
        assert answer_file(stage.workspace).read().is_off
        await ui.send("/rules maybe")
        assert ui.notices[-1] == "/rules takes list, on or off, not maybe."
    assert (stage.workspace / "AGENTS.md").read_bytes() == b"# Rules\r\n\r\n- One.\r\n"


async def test_the_setting_turns_the_line_off(stage: Stage, tmp_path: Path):
    runtime = stage.runtime([])
    runtime.use_settings(Settings.model_validate({"offer_rules": False}))
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        assert line(ui) == ""
        assert "use uv" in await ask(ui)


async def test_a_change_of_the_setting_takes_effect_at_once(stage: Stage, tmp_path: Path):
    async with running_app(tmp_path, stage=stage) as ui:
        await ui.until(lambda: line(ui))
        for is_on in (False, True):
            loaded = LoadedSettings(Settings.model_validate({"offer_rules": is_on}), ())
            front = ui.app.controller.front
            assert isinstance(front, ScreenFront)
            await act_on(front, ("offer_rules",), loaded)
            assert bool(line(ui)) is is_on
    assert acts_at_once(("offer_rules",))
    assert not acts_at_once(("plugins",))


async def test_a_second_correction_is_offered_when_the_turn_ends(tmp_path: Path):
    stage = Stage(tmp_path)
    store = stage.runtime([]).services.store
    for entries in (map(say, BACKGROUND * 5), session(UV[0])):
        with store.create(Header(cwd=str(stage.workspace))) as log:
            for entry in entries:
                log.append(entry)
    write = Reply(tool_calls=(call("w", "write", path="a.txt", content="pip\n"),))
    runtime = stage.runtime([write, Reply("Done."), Reply("Sorry.")])
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(120, 30)) as ui:
        assert line(ui) == ""
        await ui.send("Write it.")
        assert line(ui) == ""
        await ui.send("uv, not pip please")
        await ui.until(lambda: line(ui))
        assert "use uv, not pip" in line(ui) or "uv, not pip please" in line(ui)


async def test_without_a_file_one_is_created_and_the_question_says_so(stage: Stage, tmp_path: Path):
    (stage.workspace / "AGENTS.md").unlink()
    async with running_app(tmp_path, stage=stage, size=(120, 40)) as ui:
        assert "AGENTS.md (new file)\n  1 + - use uv, not pip\n" in await ask(ui)
        await press(ui, "y")
        assert agents(ui) == b"- use uv, not pip\n"
        assert any(one.startswith("Created AGENTS.md") for one in ui.notices)


async def test_a_file_that_cannot_be_changed_is_an_error_and_the_offer_stays(
    stage: Stage, tmp_path: Path
):
    (stage.workspace / "AGENTS.md").write_bytes(b"\xff\xfe")
    async with running_app(tmp_path, stage=stage, size=(120, 40)) as ui:
        await ask(ui)
        await press(ui, "y")
        await ui.until(lambda: any("not UTF-8" in one for one in ui.notices))
    assert not answer_file(stage.workspace).read().answers


async def test_a_script_gets_the_list(stage: Stage):
    out = io.StringIO()
    services = CommandServices(ListedModels(), KnownModels())
    await print_command(stage.runtime([]), services, "/rules", "text", out=out)
    lines = [row.strip() for row in out.getvalue().splitlines()]
    assert "Offered: use uv, not pip" in lines
    assert "2026-01-03: “use uv, not pip” · Write it" in lines


async def test_no_offer_leaves_an_empty_line(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        assert line(ui) == ""
        ui.show_events(RuleOffered("use uv\x1b[2J, not pip\n", 1))
        assert (
            line(ui)
            == "You said it more than once: “use uv, not pip”. /rules adds it to AGENTS.md."
        )
        ui.show_events(RuleOffered("", 0))
        assert line(ui) == ""


def test_a_line_includes_no_file_and_keeps_to_one_row():
    assert proposed_line("see @docs/a.md,\nnot @b. a@b.c") == "see `docs/a.md`, not `b`. a@b.c"
    assert "\x1b" not in proposed_line("use \x1b[2Juv")


def test_a_quote_names_where_it_came_from():
    (quote,) = project([session("use uv, not pip")]).quotes
    assert quote_row(quote) == ("2026-01-01", "“use uv, not pip” · Session 0")
