import os
from datetime import date
from pathlib import Path

import pytest

from agent_tui.agent.prompt.context_files import MAX_FILE_CHARS, load_context_files
from agent_tui.agent.prompt.fitted_prompt import full_prompt, short_prompt
from agent_tui.features.sandbox.home import own_program
from agent_tui.paths import find_manual
from agent_tui.tokens import ExactCounter
from agent_tui.tools.registry import default_toolbox
from tests.support.offered import offered

DAY = date(2026, 1, 2)
CWD = Path("/home/person/projects/some-project")
MANUAL = Path(
    "/home/person/.local/share/uv/tools/agent-tui-cli/lib/python3.13/site-packages/agent_tui/docs"
)


def trusting(_file: Path) -> bool:
    return True


@pytest.mark.parametrize("model_id", ["claude-sonnet-4-5", "gpt-5"])
def test_prompt_and_tools_together_stay_under_1500_tokens(model_id: str):
    counter = ExactCounter()
    prompt = full_prompt(CWD, DAY, manual=MANUAL)
    tools = offered(default_toolbox().specs, model_id)
    tokens = counter.count_text(prompt) + counter.count_tools(tools)
    assert tokens < 1_500


def test_the_short_prompt_says_where_and_when_in_under_150_tokens():
    prompt = short_prompt(CWD, DAY)
    assert str(CWD) in prompt
    assert "2026-01-02" in prompt
    assert ExactCounter().count_text(prompt) < 150


def test_the_prompt_says_where_the_manual_is_and_what_it_is_for():
    manual = find_manual()
    assert manual is not None
    assert (manual / "hooks.md").is_file()
    assert full_prompt(CWD, DAY, manual=manual).endswith(f"About agent-tui and its setup: {manual}")


def test_commands_in_the_sandbox_see_the_manual_so_reading_it_asks_nothing():
    manual = find_manual()
    assert manual is not None
    assert any(manual.resolve().is_relative_to(path.resolve()) for path in own_program())


def test_added_folders_are_told_behind_the_workspace():
    prompt = full_prompt(CWD, DAY, (Path("/lib/one"),))
    assert f"Folder: {CWD}\nAlso worked in: /lib/one\n" in prompt


def test_of_a_long_folder_the_short_prompt_names_the_end():
    prompt = short_prompt(Path("/" + "x" * 900 + "/project"), DAY)
    assert "x/project\n" in prompt
    assert len(prompt) < 800


def test_files_are_found_from_the_user_folder_and_the_repository_root_down(tmp_path):
    user, repo = tmp_path / "config", tmp_path / "outside" / "repo"
    inner = repo / "src" / "deep"
    inner.mkdir(parents=True)
    user.mkdir()
    (repo / ".git").mkdir()
    (user / "AGENTS.md").write_text("user")
    (tmp_path / "outside" / "AGENTS.md").write_text("not part of the repository")
    (repo / "AGENTS.md").write_text("repo")
    (repo / "CLAUDE.md").write_text("passed over: AGENTS.md is there")
    (repo / "src" / "CLAUDE.md").write_text("src")
    (inner / "AGENTS.md").write_text("deep")
    assert [f.text for f in load_context_files(user, inner, trusting)] == [
        "user",
        "repo",
        "src",
        "deep",
    ]


def test_without_a_repository_only_the_folder_itself_counts(tmp_path):
    (tmp_path / "AGENTS.md").write_text("above")
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "AGENTS.md").write_text("here")
    assert [f.text for f in load_context_files(tmp_path / "none", inner, trusting)] == ["here"]


def test_a_huge_file_is_cut_and_says_so(tmp_path):
    (tmp_path / "AGENTS.md").write_text("x" * (MAX_FILE_CHARS + 10))
    (file,) = load_context_files(tmp_path / "none", tmp_path, trusting)
    assert file.was_cut
    assert len(file.text) == MAX_FILE_CHARS


def test_a_pipe_or_a_folder_of_that_name_neither_waits_nor_hides_the_next_one(tmp_path):
    os.mkfifo(tmp_path / "AGENTS.md")
    (tmp_path / "CLAUDE.md").write_text("Use tabs.")
    user_dir = tmp_path / "user"
    (user_dir / "AGENTS.md").mkdir(parents=True)
    (file,) = load_context_files(user_dir, tmp_path, trusting)
    assert (file.path.name, file.text) == ("CLAUDE.md", "Use tabs.")
