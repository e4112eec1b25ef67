from pathlib import Path

import pytest

from agent_tui.cli.tool_services import sandbox_news
from agent_tui.config import load_settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('sandbox = "off"', 'sandbox = "off" in your settings'),
        ('[permissions]\nallow = ["bash(make *)"]', "Your allow rules decide"),
        ('[permissions]\nallow = ["read(docs/**)"]', ""),
        ("", ""),
    ],
)
def test_who_has_older_settings_is_told_once_what_they_mean_in_the_sandbox(
    settings: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_TUI_DATA_DIR", str(tmp_path / "data"))
    file = tmp_path / "config.toml"
    file.write_text(settings)
    loaded = load_settings(file, {})
    news = sandbox_news(loaded)
    assert said in news
    assert bool(said) == bool(news)
    assert not sandbox_news(loaded)
