import pytest

from agent_tui.cli.arguments import parse_arguments
from agent_tui.cli.early_settings import FirstPaint, first_paint, is_switched_on


@pytest.mark.parametrize(
    ("flags", "variable", "settings", "wanted"),
    [
        ([], None, None, False),
        (["--plain"], "false", "plain = false", True),
        ([], "1", None, True),
        ([], "false", "plain = true", False),
        ([], None, "plain = true", True),
        ([], None, 'plain = "yes"', False),
        ([], None, "plain = tr", False),
    ],
)
def test_who_wants_lines(monkeypatch, tmp_path, flags, variable, settings, wanted):
    monkeypatch.setenv("AGENT_TUI_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("AGENT_TUI_PLAIN", raising=False)
    if variable is not None:
        monkeypatch.setenv("AGENT_TUI_PLAIN", variable)
    if settings is not None:
        (tmp_path / "config.toml").write_text(settings)
    assert is_switched_on("plain", parse_arguments(flags)) is wanted


@pytest.mark.parametrize(
    ("config", "variable", "expected"),
    [
        ("", None, FirstPaint("", mouse=True)),
        ('theme = "nord"\nmouse = false\n', None, FirstPaint("nord", mouse=False)),
        ('theme = "nord"\n', "agent-light", FirstPaint("agent-light", mouse=True)),
        ("theme = 3\nmouse = 0\n", None, FirstPaint("", mouse=True)),
        ("theme = [broken", None, FirstPaint("", mouse=True)),
    ],
)
def test_the_first_paint_has_the_theme_and_mouse_of_the_settings(
    tmp_path, monkeypatch, config, variable, expected
):
    monkeypatch.setenv("AGENT_TUI_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("AGENT_TUI_THEME", raising=False)
    if variable is not None:
        monkeypatch.setenv("AGENT_TUI_THEME", variable)
    (tmp_path / "config.toml").write_text(config)
    assert first_paint() == expected
