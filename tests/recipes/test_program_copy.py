import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.recipes.program_copy import ROOT, ProgramCopy, named_paths, recipe, recipes
from tests.support.rows import each_row


def test_a_recipe_is_found_by_its_title_and_ends_where_the_next_begins():
    text = recipe("New setting")
    assert "config/schema.py" in text
    assert text.count("**New") == 1
    with pytest.raises(LookupError, match="New moon"):
        recipe("New moon")


def test_paths_are_told_from_slash_commands_and_variables():
    text = "a field in `config/schema.py`; `AGENT_TUI_X`, `/settings`, `config show`, `README.md`"
    assert named_paths(text) == ("agent_tui/config/schema.py",)
    assert named_paths("a row in `tests/faults/table.py`") == ("tests/faults/table.py",)


@each_row("title", recipes())
def test_what_a_recipe_names_is_there(title):
    files_to_make = ("x.py", "x.md", "NAME.py")
    named = [path for path in named_paths(recipe(title)) if Path(path).name not in files_to_make]
    assert [path for path in named if not (ROOT / path).exists()] == []


@each_row("file", Path(__file__).parent.glob("test_new_*.py"), ids=lambda f: f.stem)
def test_what_the_files_to_add_import_is_there(file):
    imported = re.findall(r"^from (agent_tui[\w.]*) import", file.read_text("utf-8"), re.MULTILINE)
    assert [module for module in imported if find_spec(module) is None] == []


def test_a_file_that_the_recipe_does_not_name_cannot_be_changed(tmp_path):
    copy = ProgramCopy(tmp_path, "New setting")
    with pytest.raises(AssertionError, match=r"not agent_tui/cli/main\.py"):
        copy.insert_before("agent_tui/cli/main.py", "def run(", "")


@pytest.mark.thorough
def test_the_copy_is_what_runs(tmp_path):
    copy = ProgramCopy(tmp_path, "New setting")
    copy.insert_before("agent_tui/config/schema.py", "@_add_brought", "raise SystemExit(7)\n\n\n")
    assert copy.run("config", "show").returncode == 7
