import stat
from pathlib import Path

import pytest

from agent_tui.config.loading import load_settings
from agent_tui.config.user_file import UserConfigFile, setting_named
from agent_tui.errors import ConfigError
from agent_tui.features.local.settings import LocalSection
from agent_tui.features.settings.config_file import template_text


@pytest.fixture
def file(tmp_path: Path) -> UserConfigFile:
    return UserConfigFile(tmp_path / "below" / "config.toml")


def write(file: UserConfigFile, name: str, *words: str) -> None:
    spec = setting_named(name)
    file.set(spec, file.convert(spec, words))


def given(file: UserConfigFile, text: str) -> UserConfigFile:
    file.path.parent.mkdir(exist_ok=True)
    file.path.write_text(text)
    return file


def test_the_first_value_makes_the_file_for_its_owner_alone(file: UserConfigFile):
    write(file, "compaction.auto", "false")
    assert file.path.read_text() == "[compaction]\nauto = false\n"
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert [one.name for one in file.path.parent.iterdir()] == ["config.toml"]


def test_comments_order_and_all_other_values_stay(file: UserConfigFile):
    text = '# mine\nmodel = "a"   # for now\n\n[local]\nthreads = 2\n\n[compaction]\nauto = true\n'
    given(file, text)
    write(file, "compaction.auto", "off")
    write(file, "theme", "nord")
    write(file, "model", "b")
    expected = text.replace("auto = true", "auto = false").replace('"a"', '"b"')
    assert file.path.read_text() == expected.replace("now\n", 'now\ntheme = "nord"\n', 1)


def test_a_line_that_was_commented_out_is_taken_for_its_value(file: UserConfigFile):
    given(file, template_text())
    write(file, "local.model", "x")
    write(file, "compaction.warn_at", "0.5")
    before, after = template_text().split("\n"), file.path.read_text().split("\n")
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [("#warn_at = 0.7", "warn_at = 0.5"), ('#model = ""', 'model = "x"')]
    assert load_settings(file.path, {}).settings.of(LocalSection).local.model == "x"


def test_names_of_models_are_quoted(file: UserConfigFile):
    write(file, 'models."openai/qwen-3.5".window', "32768")
    assert file.path.read_text() == '[models."openai/qwen-3.5"]\nwindow = 32768\n'


def test_a_list_is_given_by_words_or_written_out(file: UserConfigFile):
    write(file, "permissions.allow", "bash(pytest *)", 'write("a,b")')
    assert load_settings(file.path, {}).settings.permissions.allow == (
        "bash(pytest *)",
        'write("a,b")',
    )
    write(file, "permissions.allow", '["read"]')
    assert file.path.read_text() == '[permissions]\nallow = ["read"]\n'


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("thinking", ["deep"], "off, low, medium, high"),
        ("compaction.warn_at", ["7"], "a number above 0, below 1"),
        ("mouse", ["perhaps"], "true or false"),
        ("compaction.protected_messages", ["many"], "a number at least 1"),
        ("permissions.allow", ["[3"], "a list of strings"),
        ("api_key_env", ["sk-proj-abcdefgh0123456789"], "Keys do not belong"),
    ],
)
def test_nothing_is_written_that_would_be_refused(file: UserConfigFile, name, words, said):
    with pytest.raises(ConfigError, match=said):
        write(file, name, *words)
    assert not file.path.exists()


def test_a_name_that_is_none_is_answered_with_what_was_meant():
    with pytest.raises(ConfigError, match="did you mean trigger_at"):
        setting_named("compaction.triger_at")
    with pytest.raises(ConfigError, match="is not the name of a setting"):
        setting_named("a b")


def test_a_broken_file_is_left_as_it_is(file: UserConfigFile):
    given(file, "model = \n")
    for change in (lambda: write(file, "theme", "x"), lambda: file.unset(setting_named("model"))):
        with pytest.raises(ConfigError, match="not valid TOML"):
            change()
    assert file.path.read_text() == "model = \n"


def test_a_value_where_a_section_should_be_is_named(file: UserConfigFile):
    given(file, "compaction = 3\n")
    with pytest.raises(ConfigError, match="compaction is not a table"):
        write(file, "compaction.auto", "true")
    assert file.path.read_text() == "compaction = 3\n"


def test_a_link_stays_a_link(file: UserConfigFile, tmp_path: Path):
    kept = tmp_path / "dotfiles.toml"
    kept.write_text('theme = "a"\n')
    file.path.parent.mkdir()
    file.path.symlink_to(kept)
    write(file, "theme", "b")
    assert file.path.is_symlink()
    assert kept.read_text() == 'theme = "b"\n'


def test_a_value_is_taken_out_again(file: UserConfigFile):
    given(file, 'model = "a"\n[compaction]\nauto = false\nwarn_at = 0.5\n')
    assert file.unset(setting_named("compaction.auto"))
    assert not file.unset(setting_named("compaction.auto"))
    assert not file.unset(setting_named('models."x".window'))
    assert file.path.read_text() == 'model = "a"\n[compaction]\nwarn_at = 0.5\n'


def test_what_the_rest_needs_is_not_taken_out(file: UserConfigFile):
    text = '[mcp.servers.x]\ncommand = "x"\n'
    given(file, text)
    with pytest.raises(ConfigError, match="give command or url"):
        file.unset(setting_named("mcp.servers.x.command"))
    write(file, "mcp.servers.x.enabled", "off")
    assert file.path.read_text() == f"{text}enabled = false\n"


def test_inline_tables_and_dotted_keys_are_changed_where_they_stand(file: UserConfigFile):
    given(file, "compaction = { auto = true }\nlocal.threads = 2\n")
    write(file, "compaction.warn_at", "0.5")
    write(file, "local.threads", "3")
    settings = load_settings(file.path, {}).settings
    assert (settings.compaction.warn_at, settings.of(LocalSection).local.threads) == (0.5, 3)
    assert settings.compaction.auto


def test_a_folder_in_place_of_the_file_is_said(file: UserConfigFile):
    file.path.mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot be read"):
        write(file, "theme", "x")
