from pathlib import Path

import pytest

from agent_tui.config import CompactionSettings, Settings
from agent_tui.config.loading import LoadedSettings, load_settings
from agent_tui.config.specs import setting_variables
from agent_tui.features.sandbox.settings import SANDBOX_CACHES, SandboxSettings


def load(tmp_path: Path, text: str = "", **environ: str) -> LoadedSettings:
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode())
    return load_settings(file, environ)


def problems(loaded: LoadedSettings) -> list[str]:
    return [
        str(problem).rpartition("config.toml")[2] or str(problem) for problem in loaded.problems
    ]


def test_without_a_file_the_defaults_are_in_force(tmp_path: Path):
    assert load_settings(tmp_path / "none.toml", {}) == LoadedSettings(Settings(), ())


def test_the_file_is_read_with_its_sections(tmp_path: Path):
    loaded = load(
        tmp_path,
        'model = "openai/gpt"\n[compaction]\nwarn_at = 0.5\n[permissions]\nallow = ["bash(ls)"]\n'
        '[models."local/x.y"]\nwindow = 8192\n',
    )
    assert loaded.problems == ()
    assert loaded.settings.model == "openai/gpt"
    assert loaded.settings.compaction.warn_at == 0.5
    assert loaded.settings.compaction.trigger_at == 0.8
    assert loaded.settings.permissions.allow == ("bash(ls)",)
    assert loaded.settings.models["local/x.y"].window == 8192


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path):
    file = tmp_path / "config.toml"
    file.write_text('model = "a"\ntheme = "a"\nsession_dir = "a"\n')
    environ = {"AGENT_TUI_MODEL": "b", "AGENT_TUI_THEME": "b"}
    settings = load_settings(file, environ, {"model": "c", "theme": None}).settings
    assert (settings.model, settings.theme, settings.session_dir) == ("c", "b", "a")


def test_variables_reach_into_sections_and_are_read_by_type(tmp_path: Path):
    loaded = load(
        tmp_path,
        "[compaction]\nwarn_at = 0.5\n",
        AGENT_TUI_COMPACTION__AUTO="false",
        AGENT_TUI_BASH_TIMEOUT_S="7.5",
    )
    assert loaded.settings.compaction.auto is False
    assert loaded.settings.compaction.warn_at == 0.5
    assert loaded.settings.bash_timeout_s == 7.5


def test_a_wrong_value_is_left_out_and_named_with_its_line(tmp_path: Path):
    loaded = load(tmp_path, 'model = "m"\n\n[compaction]\nauto = true\nwarn_at = 7\n')
    assert loaded.settings.model == "m"
    assert loaded.settings.compaction == CompactionSettings()
    (problem,) = problems(loaded)
    assert problem.startswith(":5: compaction.warn_at: ")
    assert "less than 1" in problem


def test_a_mistyped_key_is_named_with_what_was_meant(tmp_path: Path):
    loaded = load(tmp_path, "modle = 'x'\n[compaction]\ntriger_at = 0.5\n")
    assert sorted(problems(loaded)) == [
        ":1: modle: no such setting; did you mean model?",
        ":3: compaction.triger_at: no such setting; did you mean trigger_at?",
    ]


def test_a_key_unlike_any_other_is_answered_with_the_allowed_ones(tmp_path: Path):
    (problem,) = problems(load(tmp_path, "[permissions]\nxyzzy = 1\n"))
    allowed = "allow, ask, deny, pass_environment"
    assert problem == f":2: permissions.xyzzy: no such setting; allowed: {allowed}"


@pytest.mark.parametrize(
    ("written", "key", "meant"),
    [
        ('allow = ["tool(weather)"]', "allow", "permissions.allow"),
        ("[permissions]\ntheme = 'x'", "permissions.theme", "theme"),
    ],
)
def test_a_key_of_another_section_is_named_with_it(
    tmp_path: Path, written: str, key: str, meant: str
):
    (problem,) = problems(load(tmp_path, written))
    assert problem.endswith(f" {key}: no such setting; did you mean {meant}?")


def test_everything_wrong_is_reported_and_everything_right_is_kept(tmp_path: Path):
    loaded = load(
        tmp_path,
        'thinking = "deep"\nmouse = "perhaps"\ntheme = "dark"\ncompaction = 3\n'
        '[permissions]\nallow = ["a", 3]\n[models."a.b"]\nwindow = -1\nmax_output = 5\n',
    )
    assert loaded.settings.theme == "dark"
    assert loaded.settings.models["a.b"].max_output == 5
    keys = {problem.key: problem.line for problem in loaded.problems}
    assert keys == {
        "thinking": 1,
        "mouse": 2,
        "compaction": 4,
        "permissions.allow.1": 6,
        "models.a.b.window": 8,
    }


@pytest.mark.parametrize("text", ["model = \n", "\n[compaction\n", "a = 1\na = 2\n"])
def test_a_file_that_is_no_toml_is_reported_with_its_line(tmp_path: Path, text: str):
    loaded = load(tmp_path, text)
    assert loaded.settings == Settings()
    (problem,) = loaded.problems
    assert problem.line > 0
    assert "not valid TOML" in problem.problem


def test_bytes_that_are_no_text_are_reported(tmp_path: Path):
    file = tmp_path / "config.toml"
    file.write_bytes(b"model = '\xff'")
    (problem,) = load_settings(file, {}).problems
    assert "not valid TOML" in problem.problem


def test_a_folder_in_place_of_the_file_is_reported(tmp_path: Path):
    (problem,) = load_settings(tmp_path, {}).problems
    assert "cannot be read" in problem.problem


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path):
    loaded = load(tmp_path, '\ufeffmodel = "a"\r\nthinking = "deep"\r\n')
    assert loaded.settings.model == "a"
    assert [problem.line for problem in loaded.problems] == [2]


def test_a_wrong_variable_is_reported_without_a_line(tmp_path: Path):
    (problem,) = load(tmp_path, AGENT_TUI_THINKING="deep").problems
    assert str(problem).startswith("environment: thinking: ")


@pytest.mark.parametrize(
    ("window", "setting", "kept"),
    [(8_000, 0, 1_600), (200_000, 0, 20_000), (2_000_000, 0, 20_000), (8_000, 5_000, 5_000)],
)
def test_what_stays_after_a_compaction_depends_on_the_window(window: int, setting: int, kept: int):
    assert CompactionSettings(keep_recent_tokens=setting).keep_recent(window) == kept


def test_every_variable_that_is_named_sets_its_setting(tmp_path: Path):
    names = setting_variables()
    assert names["AGENT_TUI_COMPACTION__AUTO"] == "compaction.auto"
    for variable, setting in names.items():
        (problem,) = load(tmp_path, **{variable: "\0"}).problems or (None,)
        assert problem is None or f"{problem.key}.".startswith(f"{setting}.")


@pytest.mark.parametrize("target", ["0", "0.2", "1000", "20000"])
def test_a_target_is_a_fraction_or_a_number_of_tokens(tmp_path: Path, target: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[compaction]\ntarget = {target}\n")
    assert load_settings(file, {}).settings.compaction.target == float(target)


@pytest.mark.parametrize("target", ["-0.1", "1.5", "20", "20000.5", "nan", "inf"])
def test_a_target_that_is_neither_is_refused(tmp_path: Path, target: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[compaction]\ntarget = {target}\n")
    (problem,) = load_settings(file, {}).problems
    assert problem.key == "compaction.target"


def test_a_strategy_brings_its_own_thresholds_unless_others_are_given(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[compaction]\nstrategy = "hybrid"\n')
    hybrid = load_settings(file, {}).settings.compaction
    assert (hybrid.warn_at, hybrid.trigger_at, hybrid.target) == (0.60, 0.70, 0)
    given = load_settings(file, {"AGENT_TUI_COMPACTION__TRIGGER_AT": "0.9"}).settings.compaction
    assert given.trigger_at == 0.9
    (problem,) = load_settings(file, {"AGENT_TUI_COMPACTION__STRATEGY": "my own"}).problems
    assert "tiered, hybrid, agent, or a plugin's" in problem.problem


def test_a_strategy_of_a_plugin_is_a_value_before_any_plugin_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[compaction]\nstrategy = "abridge"\n')
    loaded = load_settings(file, {})
    assert (loaded.settings.compaction.strategy, loaded.problems) == ("abridge", ())


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("read(secrets/**)", ("read(secrets/**)",)),
        ("bash(a, b), read(x) ,", ("bash(a, b)", "read(x)")),
        ('["bash(rm *)", "fetch"]', ("bash(rm *)", "fetch")),
        ("", ()),
    ],
)
def test_a_variable_holds_a_list_and_takes_no_rule_away(
    tmp_path: Path, text: str, rules: tuple[str, ...]
):
    file = tmp_path / "config.toml"
    file.write_text('[permissions]\ndeny = ["write(own)"]\n')
    loaded = load_settings(file, {"AGENT_TUI_PERMISSIONS__DENY": text})
    assert loaded.problems == ()
    assert loaded.settings.permissions.deny == ("write(own)", *rules)


@pytest.mark.parametrize("text", ["[1, 2", '{"a": 1}', "[1]"])
def test_a_list_that_is_none_is_told_or_is_text(tmp_path: Path, text: str):
    loaded = load_settings(tmp_path / "c", {"AGENT_TUI_PERMISSIONS__DENY": text})
    assert loaded.problems or all(isinstance(r, str) for r in loaded.settings.permissions.deny)


def test_a_variable_of_ours_that_means_nothing_is_told(tmp_path: Path):
    environ = {"AGENT_TUI_MODLE": "x", "AGENT_TUI_HOME": "/x", "AGENT_TUI_PLAIN": "1", "A": "b"}
    (problem,) = load_settings(tmp_path / "c", environ).problems
    assert problem.notice == (
        "Setting ignored: environment: AGENT_TUI_MODLE: did you mean AGENT_TUI_MODEL?"
    )


@pytest.mark.parametrize("name", ["", ".", "/etc", "../x", "~/x", "a/../../b"])
def test_a_cache_for_the_sandbox_lies_below_the_home_folder(tmp_path: Path, name: str):
    file = tmp_path / "config.toml"
    file.write_text(f'sandbox_caches = ["{name}"]')
    loaded = load_settings(file, {})
    assert loaded.settings.of(SandboxSettings).sandbox_caches == SANDBOX_CACHES
    assert "below the home folder" in loaded.problems[0].problem
