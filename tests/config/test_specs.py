import tomllib
from pathlib import Path

from pydantic import JsonValue

from agent_tui.config import Settings
from agent_tui.config.keys import parse_key
from agent_tui.config.loading import load_settings
from agent_tui.config.specs import setting_specs, setting_variables, spec_of, value_at
from agent_tui.features.settings.config_file import template_text, toml_text


def test_every_setting_says_in_one_line_what_it_is():
    for spec in setting_specs(Settings.model_validate({"models": {"m": {}}})):
        assert spec.description, spec.name
        assert "\n" not in spec.description
        assert len(spec.description) <= 150, spec.name
        assert not spec.description.endswith("."), spec.name


def test_kinds_choices_and_limits_come_from_the_types():
    found = {spec.name: spec for spec in setting_specs(Settings())}
    assert found["mouse"].allowed == "true or false"
    assert found["thinking"].allowed == "auto, off, low, medium, high, xhigh, max"
    assert found["compaction.warn_at"].allowed == "a number above 0, below 1"
    assert found["compaction.max_output_tokens"].limits == "at least 600"
    assert found["permissions.allow"].kind == "list"
    window = spec_of(("models", "any/model", "window"))
    assert window is not None
    assert (window.kind, window.limits, window.default) == ("number", "above 0", None)


def test_only_values_that_always_exist_have_a_variable():
    names = set(setting_variables().values())
    assert {"model", "compaction.auto", "local.threads"} <= names
    assert not [name for name in names if name.startswith("models.")]


def test_what_is_no_setting_has_no_description():
    for key in [(), ("nothing",), ("compaction",), ("models", "x"), ("model", "x"), ("x", "y")]:
        assert spec_of(key) is None


def test_the_settings_of_named_models_are_listed():
    settings = Settings.model_validate({"models": {"a/b.c": {"window": 9}}})
    found = {spec.name: value_at(settings, spec.key) for spec in setting_specs(settings)}
    assert found['models."a/b.c".window'] == 9
    assert found['models."a/b.c".base_url'] is None


def test_the_commented_file_changes_nothing_and_is_right_once_its_comments_are_taken_away(
    tmp_path: Path,
):
    file = tmp_path / "config.toml"
    file.write_text(template_text())
    assert load_settings(file, {}).settings == Settings()
    lines = template_text().split("\n")
    bare = [
        line[1:] if line.startswith("#") and not line.startswith(("# ", "#:")) else line
        for line in lines
    ]
    file.write_text("\n".join(bare))
    loaded = load_settings(file, {})
    assert loaded.problems == ()
    assert (
        loaded.settings.model_copy(update={"models": {}, "hooks": {}, "plugin": {}}) == Settings()
    )
    named = {parse_key(spec.name) for spec in setting_specs(Settings())}
    assert named <= set(loaded.origins) | {("permissions",)}


def test_values_are_written_as_toml_reads_them():
    values: list[JsonValue] = [True, 7, 0.25, "", 'a"b\\c\n\x1b\u202e', ["x", 'y"'], {"a b": 1}]
    for value in values:
        assert tomllib.loads(f"x = {toml_text(value)}")["x"] == value
    assert "\x1b" not in toml_text("\x1b")


def test_hooks_that_are_set_are_listed_and_what_they_cannot_say_is_explained(tmp_path: Path):
    settings = Settings.model_validate({"hooks": {"Stop": [{"command": "a"}]}})
    found = {spec.name: value_at(settings, spec.key) for spec in setting_specs(settings)}
    assert found["hooks.Stop"] == [{"matcher": "", "command": "a", "timeout_s": 60.0}]
    file = tmp_path / "config.toml"
    file.write_text('[[hooks.Stop]]\ncomand = "a"\n[[hooks.OnStop]]\ncommand = "a"\n')
    problems = [problem.problem for problem in load_settings(file, {}).problems]
    assert "no such setting; did you mean command?" in problems
    assert any("'SessionStart', 'UserPromptSubmit'" in problem for problem in problems)
