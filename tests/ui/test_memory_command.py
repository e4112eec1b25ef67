from pathlib import Path

import pytest

from agent_tui.agent.prompt.context_files import ContextFile
from agent_tui.features.memory.changes import FileInForce
from agent_tui.features.memory.command import memory_page
from agent_tui.messages import Pin
from agent_tui.permissions.trust import WithheldFile
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.screens.modal import PageScreen
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, held, running_app

CWD = Path("/proj/src")


def test_the_page_shows_what_is_in_force_what_is_not_and_why():
    files = (
        FileInForce(ContextFile(Path("/proj/AGENTS.md"), "one\ntwo", was_cut=True), 1_200),
        FileInForce(ContextFile(CWD / "AGENTS.md", "three"), 800),
    )
    page = memory_page(
        files,
        [(CWD / "AGENTS.md", "changed")],
        [WithheldFile(CWD / "CLAUDE.md", "the folder is not trusted")],
        CWD,
        window=10_000,
        fit_note="To fit this window: cut.",
    )
    in_force, fitting, changed, withheld, how = page.sections
    assert in_force.rows == (
        ("/proj/AGENTS.md", "about 1,200 tokens, 2 lines, cut: too long"),
        ("AGENTS.md", "about 800 tokens, 1 line"),
        ("total", "about 2,000 tokens, 20.0% of the window"),
    )
    assert fitting.rows == (("", "To fit this window: cut."),)
    assert changed.rows == (("AGENTS.md", "changed since it was read"),)
    assert withheld.rows == (("CLAUDE.md", "the folder is not trusted"),)
    assert "applies from your next message" in how.rows[-1][1]


def test_the_page_names_what_is_not_taken_along_and_what_counts_below():
    file = ContextFile(CWD / "AGENTS.md", "@.env", not_imported=(CWD / ".env",))
    pin = Pin(kind="instructions", name="web", path=str(CWD / "web/AGENTS.md"))
    page = memory_page((FileInForce(file, 2),), (), (), CWD, window=0, fit_note="", below=[pin])
    assert [section.rows for section in page.sections[1:3]] == [
        ((".env", "outside the trusted folder, or may hold keys"),),
        (("web/", str(CWD / "web/AGENTS.md")),),
    ]


def test_an_empty_page_says_how_to_begin():
    page = memory_page((), (), (), CWD, window=0, fit_note="")
    assert "/init" in page.sections[0].rows[0][1]


def told(ui: Ui) -> list[str]:
    """What is in force, as far as the model is really told of it."""
    texts = [file.text for file in ui.context_files]
    assert all(text.strip() in ui.system_prompt for text in texts)
    return texts


def edit_with(monkeypatch: pytest.MonkeyPatch, content: str | None) -> list[Path]:
    """An editor that writes `content`; returns what it was given."""
    opened: list[Path] = []

    def edit(_app: object, path: Path) -> bool:
        opened.append(path)
        if content is not None:
            path.write_text(content)
        return content is not None

    monkeypatch.setattr("agent_tui.ui.window.edit_file", edit)
    return opened


async def test_a_line_is_added_to_the_project_s_file_or_the_person_s(tmp_path: Path):
    stage = Stage(tmp_path)
    (stage.workspace / "AGENTS.md").write_text("# Rules\n\n- One.\n")
    async with running_app(tmp_path, stage=stage) as ui:
        await ui.send("/memory add Two.")
        await ui.until(lambda: ui.notices)
        assert ui.notices[-1] == "Added to AGENTS.md, in effect from your next message: Two."
        await ui.send("/memory add --user  Be brief.")
        await ui.until(lambda: "Be brief." in ui.notices[-1])
        assert ui.notices[-1].startswith(f"Created {stage.config}/AGENTS.md, in effect")
        assert told(ui) == ["- Be brief.\n", "# Rules\n\n- One.\n- Two.\n"]
        await ui.send("/memory add --user")
        assert ui.notices[-1].startswith("Add the text to remember")


async def test_a_first_file_of_a_folder_that_was_never_asked_about_asks(tmp_path: Path):
    async with running_app(tmp_path, stage=Stage(tmp_path, is_trusted=False)) as ui:
        await ui.send("/memory add Use tabs.")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        await ui.pilot.press("escape")
        await ui.until(lambda: ui.notices)
        assert ui.notices[-1] == "Created AGENTS.md, not in effect (/memory says why): Use tabs."
        await ui.send("/memory add More.")
        await ui.until(lambda: len(ui.notices) > 1)
        assert "is not in effect: the folder is not trusted. Use /trust" in ui.notices[-1]
        assert (ui.workspace / "AGENTS.md").read_text() == "- Use tabs.\n"


async def test_while_a_turn_runs_a_line_is_kept_and_counts_later(tmp_path: Path):
    async with running_app(tmp_path, held()) as ui:
        await ui.send("go")
        await ui.send("/memory add Use tabs.")
        await ui.until(lambda: ui.notices)
        assert "/memory reload once the turn ends" in ui.notices[-1]
        await ui.send("/memory edit")
        assert ui.notices[-1].startswith("Cannot open an editor while the agent works")
        await ui.send("/memory reload")
        assert ui.notices[-1].startswith("Cannot read the files again while the agent works")
        assert told(ui) == []
        await ui.finish()
        await ui.send("/memory reload")
        assert ui.notices[-1] == "In effect from your next message: AGENTS.md."
        assert told(ui) == ["- Use tabs.\n"]
        await ui.send("/memory reload")
        assert ui.notices[-1] == "Read again, no changes: AGENTS.md."


async def test_files_are_opened_in_the_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stage = Stage(tmp_path)
    (stage.workspace / "CLAUDE.md").write_text("One.")
    async with running_app(tmp_path, stage=stage) as ui:
        opened = edit_with(monkeypatch, "Two.")
        await ui.send("/memory edit")
        await ui.until(lambda: ui.notices)
        assert ui.notices[-1] == "Changed CLAUDE.md, in effect from your next message."
        await ui.send("/memory edit ../workspace/CLAUDE.md")
        await ui.until(lambda: ui.notices[-1] == "CLAUDE.md is unchanged.")
        await ui.send("/memory edit --user")
        await ui.until(lambda: len(opened) == 3)
        await ui.settle()
        assert opened[1:] == [stage.workspace / "CLAUDE.md", stage.config / "AGENTS.md"]
        assert told(ui) == ["Two.", "Two."]
        await ui.send("/memory edit ~nobody-here/notes.txt")
        assert "is not one of AGENTS.override.md, AGENTS.md," in ui.notices[-1]
        edit_with(monkeypatch, None)
        count = len(ui.notices)
        await ui.send("/memory edit")
        assert len(ui.notices) == count
        await ui.write("/memory e")
        assert f"edit {stage.config}/AGENTS.md" in [item.label for item in ui.app.prompt.menu.items]


async def shown(ui: Ui) -> list[str]:
    await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
    return [str(each.render()) for each in ui.app.screen.query("Static")]


async def test_the_page_compares_with_what_is_on_the_disk(tmp_path: Path):
    stage = Stage(tmp_path)
    (stage.workspace / "AGENTS.md").write_text("One \x1b[2J.")
    async with running_app(tmp_path, stage=stage) as ui:
        (stage.workspace / "AGENTS.md").write_text("Two.")
        await ui.send("/memory")
        rows = await shown(ui)
        assert "changed since it was read" in rows
        await ui.pilot.press("escape")
        await ui.send("/memory forget it")
        assert ui.notices[-1] == "/memory takes add, edit or reload, not forget."
