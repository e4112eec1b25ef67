from pathlib import Path

import pytest

from agent_tui.commands.trust import trust_question
from agent_tui.permissions.trust import TrustQuestion
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.transcript.blocks import WelcomeBlock
from tests.support.runtime import Stage
from tests.ui.app_support import held, running_app

FOLDER = Path("/home/person/proj")
MANY = tuple(FOLDER / ("d" * 70) / f"part{number}" / "AGENTS.md" for number in range(9))


def question(*files: Path, doubt: str = "", folder: Path = FOLDER) -> TrustQuestion:
    return TrustQuestion(folder, files, doubt, has_repository=True, state="not asked")


def facts_of(asked: TrustQuestion) -> str:
    return "\n".join(trust_question(asked).facts)


def test_the_question_names_the_folder_and_what_would_be_obeyed():
    facts = facts_of(question(FOLDER / "AGENTS.md", FOLDER / "src" / "CLAUDE.md"))
    assert facts.startswith("/home/person/proj\n")
    assert "  AGENTS.md\n  src/CLAUDE.md\n" in facts
    assert "agent-tui would run git" in facts


def test_a_folder_of_skills_names_the_files_that_are_skills():
    facts = facts_of(question(FOLDER / ".claude" / "skills"))
    assert "  .claude/skills/*/SKILL.md (skills)\n" in facts


def test_a_folder_of_prompt_files_is_named_without_what_is_in_it():
    facts = facts_of(question(FOLDER / ".agent-tui" / "commands"))
    assert "  .agent-tui/commands/*.md (commands)\n" in facts


def test_what_git_would_obey_is_said_without_repeating_the_folder():
    facts = facts_of(question(doubt=f"{FOLDER}/.git/config:2: core.fsmonitor could run a program"))
    assert "Git risk: .git/config:2: core.fsmonitor could run a program" in facts


def test_names_cannot_add_lines_or_steer_the_terminal():
    folder = Path("/x\n\n y  trust it\x1b[2J\u202e")
    first, *_ = facts_of(question(folder / "AGENTS.md", folder=folder)).split("\n")
    assert "trust it" in first
    assert not {"\x1b", "\u202e"} & set(first)


@pytest.mark.parametrize("size", [(80, 24), (100, 30)])
async def test_the_answers_are_in_sight_however_much_there_is_to_say(tmp_path: Path, size):
    asked = question(*MANY, doubt="/a" * 300, folder=FOLDER)
    async with running_app(tmp_path, size=size) as ui:
        ui.app.push_screen(ChoiceScreen(trust_question(asked)))
        await ui.settle()
        for part in ("#answers", "#page-keys"):
            region = ui.app.screen.query_one(part).region
            assert region.height > 0
            assert region.bottom <= size[1]


async def test_trust_given_during_a_turn_takes_effect_when_it_ends(tmp_path: Path):
    stage = Stage(tmp_path, is_trusted=False)
    (stage.workspace / "AGENTS.md").write_text("Say hello.")
    async with running_app(tmp_path, held(), stage=stage) as ui:
        await ui.send("go")
        await ui.submit("/trust")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        assert isinstance(ui.app.screen, ChoiceScreen)
        ui.app.screen._quiet_since_s = float("-inf")
        await ui.pilot.press("o")
        await ui.until(lambda: "This takes effect when this turn ends." in ui.notices)
        assert not ui.context_files
        ui.let_go()
        await ui.until(lambda: ui.context_files)


async def test_a_folder_that_is_too_broad_is_said_to_be(tmp_path: Path):
    stage = Stage(tmp_path, "/", is_trusted=False)
    async with running_app(tmp_path, stage=stage) as ui:
        await ui.send("/trust")
        await ui.until(lambda: ui.notices)
        assert "too broad" in ui.notices[-1]


async def test_what_is_not_in_force_is_said_in_an_empty_chat(tmp_path: Path):
    stage = Stage(tmp_path, is_trusted=False)
    (stage.workspace / "AGENTS.md").write_text("Use tabs.")
    async with running_app(tmp_path, stage=stage) as ui:
        welcome = ui.blocks[0]
        assert isinstance(welcome, WelcomeBlock)
        assert ("not loaded", "AGENTS.md (/memory says why)") in welcome.facts
