from pathlib import Path

import pytest

from agent_tui.agent.prompt.mentions import attach
from agent_tui.attachments import without_attachments
from agent_tui.features.memory.command import init_prompt, init_target


@pytest.fixture
def proj(tmp_path: Path) -> Path:
    made = tmp_path / "proj"
    (made / "src").mkdir(parents=True)
    (made / ".git").mkdir()
    return made


def test_the_first_instructions_belong_at_the_root(proj: Path):
    (proj / "CLAUDE.md").write_text("Theirs.")
    assert init_target(proj / "src") == proj / "AGENTS.md"
    prompt = init_prompt(proj / "src")
    assert prompt.startswith(f"Write {proj / 'AGENTS.md'}: ")
    assert "is there already" not in prompt


def test_those_that_are_there_are_to_be_improved(proj: Path):
    (proj / "AGENTS.md").write_text("Mine.")
    prompt = init_prompt(proj, "how releases are made")
    assert prompt.startswith("Write AGENTS.md: ")
    assert "AGENTS.md already exists, so improve it" in prompt
    assert without_attachments(prompt).endswith("\n\nIn particular: how releases are made")
    (proj / "src" / "AGENTS.md").write_text("Near.")
    assert init_target(proj / "src") == proj / "src" / "AGENTS.md"


def test_the_request_is_short_enough_for_small_windows(proj: Path):
    (proj / "AGENTS.md").write_text("Mine.")
    assert len(init_prompt(proj)) < 2_400, "about 500 tokens"


def test_a_file_named_to_be_stressed_goes_along(proj: Path):
    (proj / "steps.md").write_text("Tag it.")
    attached = attach(init_prompt(proj, "see @steps.md"), proj).text
    assert "Tag it." in attached
    assert without_attachments(attached).endswith("\n\nIn particular: see @steps.md")
