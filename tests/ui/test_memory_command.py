from pathlib import Path

import pytest

from agent_tui.agent.context_files import ContextFile, load_context_files
from agent_tui.agent.memory import FileInForce
from agent_tui.events import AgentEvent, TurnFinished
from agent_tui.permissions.trust import WithheldFile
from agent_tui.ui.memory_page import memory_page
from agent_tui.ui.screens.page import PageScreen
from agent_tui.ui.screens.trust import TrustScreen
from tests.support.fake_runtime import FakeRuntime
from tests.ui.fed_app import Ui, running_app

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
        ("/proj/AGENTS.md", "about 1,200 tokens, 2 lines, cut: it is too long"),
        ("AGENTS.md", "about 800 tokens, 1 line"),
        ("together", "about 2,000 tokens, 20.0% of the window"),
    )
    assert fitting.rows == (("", "To fit this window: cut."),)
    assert changed.rows == (("AGENTS.md", "changed since it was read"),)
    assert withheld.rows == (("CLAUDE.md", "the folder is not trusted"),)
    assert "counts from the next message on" in how.rows[-1][1]


def test_an_empty_page_says_how_to_begin():
    page = memory_page((), (), (), CWD, window=0, fit_note="")
    assert "/init" in page.sections[0].rows[0][1]


class Reading(FakeRuntime):
    """Loads context files as the real one does: at the beginning and when it is told to."""

    def __init__(self, root: Path, *, trusted: bool = True) -> None:
        super().__init__(root)
        if trusted:
            self.trust.trust_for_this_run(root)
        self._load()

    def _load(self) -> None:
        may_obey = self.trust.may_obey
        self.context_files = load_context_files(self.user_config_dir, self.cwd, may_obey)

    async def apply_trust(self) -> tuple[AgentEvent, ...]:
        self._load()
        return await super().apply_trust()

    @property
    def told(self) -> list[str]:
        return [file.text for file in self.context_files]


def edit_with(monkeypatch: pytest.MonkeyPatch, content: str | None) -> list[Path]:
    """An editor that writes `content`; returns what it was given."""
    opened: list[Path] = []

    def edit(_app: object, path: Path) -> bool:
        opened.append(path)
        if content is not None:
            path.write_text(content)
        return content is not None

    monkeypatch.setattr("agent_tui.ui.prompt.editor.edit_file", edit)
    return opened


async def test_a_line_is_added_to_the_project_s_file_or_the_person_s(tmp_path: Path):
    (tmp_path / "AGENTS.md").write_text("# Rules\n\n- One.\n")
    runtime = Reading(tmp_path)
    async with running_app(tmp_path, runtime=runtime) as ui:
        await ui.send("/memory add Two.")
        await ui.until(lambda: ui.notices)
        assert ui.notices[-1] == "Added to AGENTS.md, in force from the next message on: Two."
        await ui.send("/memory add --user  Be brief.")
        await ui.until(lambda: "Be brief." in ui.notices[-1])
        assert ui.notices[-1].startswith("Made config/AGENTS.md, in force")
        assert runtime.told == ["- Be brief.\n", "# Rules\n\n- One.\n- Two.\n"]
        await ui.send("/memory add --user")
        assert ui.notices[-1].startswith("What should be remembered?")


async def test_a_first_file_of_a_folder_that_was_never_asked_about_asks(tmp_path: Path):
    runtime = Reading(tmp_path, trusted=False)
    async with running_app(tmp_path, runtime=runtime) as ui:
        await ui.send("/memory add Use tabs.")
        await ui.until(lambda: isinstance(ui.app.screen, TrustScreen))
        await ui.pilot.press("escape")
        await ui.until(lambda: ui.notices)
        assert ui.notices[-1] == "Made AGENTS.md, not in force (/memory says why): Use tabs."
        await ui.send("/memory add More.")
        await ui.until(lambda: len(ui.notices) > 1)
        assert "is not obeyed: the folder is not trusted. Use /trust" in ui.notices[-1]
        assert (tmp_path / "AGENTS.md").read_text() == "- Use tabs.\n"


async def test_while_a_turn_runs_a_line_is_kept_and_counts_later(tmp_path: Path):
    runtime = Reading(tmp_path)
    async with running_app(tmp_path, runtime=runtime) as ui:
        await ui.send("go")
        await ui.send("/memory add Use tabs.")
        await ui.until(lambda: ui.notices)
        assert "/memory reload when the turn is done" in ui.notices[-1]
        await ui.send("/memory edit")
        assert ui.notices[-1].startswith("Cannot open an editor while responding")
        await ui.send("/memory reload")
        assert ui.notices[-1].startswith("Cannot read them again while responding")
        assert runtime.told == []
        runtime.finish(TurnFinished("done"))
        await ui.settle()
        await ui.send("/memory reload")
        assert ui.notices[-1] == "In force from the next message on: AGENTS.md."
        assert runtime.told == ["- Use tabs.\n"]
        await ui.send("/memory reload")
        assert ui.notices[-1] == "Read again, nothing changed: AGENTS.md."


async def test_files_are_opened_in_the_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "CLAUDE.md").write_text("One.")
    runtime = Reading(tmp_path)
    async with running_app(tmp_path, runtime=runtime) as ui:
        opened = edit_with(monkeypatch, "Two.")
        await ui.send("/memory edit")
        await ui.until(lambda: ui.notices)
        assert ui.notices[-1] == "Changed CLAUDE.md, in force from the next message on."
        await ui.send("/memory edit ../" + tmp_path.name + "/CLAUDE.md")
        await ui.until(lambda: ui.notices[-1] == "CLAUDE.md is as it was.")
        await ui.send("/memory edit --user")
        await ui.until(lambda: len(opened) == 3)
        await ui.settle()
        assert opened[1:] == [tmp_path / "CLAUDE.md", tmp_path / "config" / "AGENTS.md"]
        assert runtime.told == ["Two.", "Two."]
        await ui.send("/memory edit ~nobody-here/notes.txt")
        assert "neither AGENTS.md nor CLAUDE.md" in ui.notices[-1]
        edit_with(monkeypatch, None)
        told = len(ui.notices)
        await ui.send("/memory edit")
        assert len(ui.notices) == told
        await ui.write("/memory e")
        assert "edit config/AGENTS.md" in [item.label for item in ui.app.prompt.menu.items]


async def shown(ui: Ui) -> list[str]:
    await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
    return [str(each.render()) for each in ui.app.screen.query("Static")]


async def test_the_page_compares_with_what_is_on_the_disk(tmp_path: Path):
    (tmp_path / "AGENTS.md").write_text("One \x1b[2J.")
    runtime = Reading(tmp_path)
    async with running_app(tmp_path, runtime=runtime) as ui:
        (tmp_path / "AGENTS.md").write_text("Two.")
        await ui.send("/memory")
        rows = await shown(ui)
        assert "changed since it was read" in rows
        await ui.pilot.press("escape")
        await ui.send("/memory forget it")
        assert ui.notices[-1] == "/memory takes add, edit or reload, not forget."
