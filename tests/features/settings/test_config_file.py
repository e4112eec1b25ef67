"""The schema by which editors check ``config.toml`` says what the program says."""

import re
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from agent_tui.cli.main import run
from agent_tui.config import Settings
from agent_tui.config.loading import load_settings
from agent_tui.features.settings.config_file import SCHEMA_URL, settings_schema, template_text
from agent_tui.key_actions import KEY_ACTIONS

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/pages").rglob("*.md"))]
EXAMPLES = [
    pytest.param(text, id=f"{page.name}-{number}")
    for page in PAGES
    for number, text in enumerate(re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.M | re.S))
]
WRONG = [
    'modle = "x"',
    "theme = 3",
    'thinking = "a lot"',
    "[compaction]\nauto = 'perhaps'",
    "[compaction]\nwarn_at = 1.5",
    "[compaction]\nwarm_at = 0.5",
    '[permissions]\nallow = "bash(ls)"',
    "[keys]\nsubmit = 1",
    '[keys]\nsbumit = "enter"',
    '[models."x"]\nwindow = 0',
    "[mcp.servers.x]\ncommand = 3",
    '[[hooks.Stop]]\nmatcher = "x"',
    '[[hooks.Sleep]]\ncommand = "x"',
]


def complaints(text: str) -> list[str]:
    checker = Draft7Validator(settings_schema())
    return [error.message for error in checker.iter_errors(tomllib.loads(text))]


def problems(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return [str(problem) for problem in load_settings(file, {}).problems]


def test_it_is_a_schema_without_references():
    schema = settings_schema()
    Draft7Validator.check_schema(schema)
    assert "$ref" not in str(schema)


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_of_the_docs_is_valid(text: str, tmp_path: Path):
    assert complaints(text) == []
    assert problems(tmp_path, text) == []


def test_the_new_file_is_valid_with_every_line_taken_in():
    text = re.sub(r"(?m)^#(?=\S+ = |\[\[?)", "", template_text())
    assert len(tomllib.loads(text)) > 20
    assert complaints(text) == []


@pytest.mark.parametrize("text", WRONG)
def test_what_the_program_refuses_is_invalid(text: str, tmp_path: Path):
    assert complaints(text)
    assert problems(tmp_path, text)


@pytest.mark.parametrize("value", ['"ctrl+e"', '["ctrl+e", "f2"]', '""', "[]"])
def test_a_key_is_a_text_or_a_list(value: str, tmp_path: Path):
    text = f"[keys]\nexternal_editor = {value}\n"
    assert "external_editor" in KEY_ACTIONS
    assert complaints(text) == []
    assert problems(tmp_path, text) == []


def test_the_address_of_the_schema_is_no_setting(tmp_path: Path):
    text = f'"$schema" = "{SCHEMA_URL}"\ntheme = "nord"\n'
    assert complaints(text) == []
    file = tmp_path / "config.toml"
    file.write_text(text)
    loaded = load_settings(file, {})
    assert loaded.problems == ()
    assert loaded.settings == Settings(theme="nord")


def test_a_new_file_names_it_first():
    assert template_text().startswith(f"#:schema {SCHEMA_URL}\n")


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]):
    assert run(["config", "schema"]) == 0
    assert f'"$id": "{SCHEMA_URL}"' in capsys.readouterr().out
