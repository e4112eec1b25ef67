from pathlib import Path

import pytest

from agent_tui.config.keys import join_key, key_lines, parse_key
from agent_tui.config.loading import DEFAULT, load_settings
from tests.support.rows import each_row


def test_each_value_says_who_set_it_and_who_was_overruled(tmp_path: Path):
    own, project = tmp_path / "own.toml", tmp_path / "project.toml"
    own.write_text('# mine\nmodel = "a"\ntheme = "nord"\n\n[compaction]\nauto = false\n')
    project.write_text('theme = "gruvbox"\n[permissions]\ndeny = ["read"]\n')
    environ = {"AGENT_TUI_COMPACTION__AUTO": "true"}
    loaded = load_settings(own, environ, {"permission_mode": "plan"}, [project])
    assert {join_key(key): [str(one) for one in said] for key, said in loaded.origins.items()} == {
        "model": [f"{own}:2"],
        "theme": [f"{own}:3", f"{project}:1"],
        "compaction.auto": [f"{own}:6", "AGENT_TUI_COMPACTION__AUTO"],
        "permissions.deny": [f"{project}:3"],
        "permission_mode": ["--permission-mode"],
    }
    assert loaded.origin(("mouse",)) == DEFAULT
    layers = [origin.layer for origin in loaded.origins_of(("theme",))]
    assert layers == ["own file", "project file"]


def test_what_was_left_out_is_nobodys(tmp_path: Path):
    own = tmp_path / "own.toml"
    own.write_text('thinking = "deep"\nmodle = "x"\n')
    loaded = load_settings(own, {"AGENT_TUI_MOUSE": "perhaps"})
    assert loaded.origins == {}
    assert len(loaded.problems) == 3


def test_a_table_of_one_models_own_values_is_found_by_its_quoted_name(tmp_path: Path):
    own = tmp_path / "own.toml"
    own.write_text("[models.'openai/qwen-3.5']\nwindow = 9000\n")
    loaded = load_settings(own, {})
    assert str(loaded.origin(("models", "openai/qwen-3.5", "window"))) == f"{own}:2"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("model", ("model",)),
        ("compaction.auto", ("compaction", "auto")),
        ('models."openai/x.y".window', ("models", "openai/x.y", "window")),
        ('models."a \\"b\\"".window', ("models", 'a "b"', "window")),
    ],
)
def test_a_key_is_read_as_toml_has_it_and_written_so_again(text: str, key: tuple[str, ...]):
    assert parse_key(text) == key
    assert join_key(key) == text


@each_row("text", ["", "a b", "a = 1\nb", "x = {a", "[a]", "a..b", 'a."b'])
def test_what_is_no_key_is_refused(text: str):
    with pytest.raises(ValueError, match="is not the name of a setting"):
        parse_key(text)


def test_lines_are_known_through_comments_quotes_and_dotted_keys():
    text = (
        '# a = 1\nmodel="x"\n [ compaction ] # c\n"auto" = true\n[models."a.b"]\nwindow=1\nq.r = 2'
    )
    assert key_lines(text) == {
        ("model",): 2,
        ("compaction",): 3,
        ("compaction", "auto"): 4,
        ("models", "a.b"): 5,
        ("models", "a.b", "window"): 6,
        ("models", "a.b", "q", "r"): 7,
    }
