"""The hook that the page about hooks begins with: ruff after every edit."""

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from agent_tui.config import Settings
from agent_tui.events import ToolFinished
from agent_tui.features.tour.scripted import Reply, call
from tests.support.runtime import Stage, collect, of_kind

PAGE = Path(__file__).parents[2] / "docs" / "pages" / "hooks.md"


def settings_on_the_page() -> list[Settings]:
    """What the page has people write into config.toml, block by block."""
    blocks = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [Settings.model_validate(tomllib.loads(block)) for block in blocks]


def test_every_block_of_settings_on_the_page_is_valid():
    assert [list(settings.hooks) for settings in settings_on_the_page()] == [
        ["PostToolUse"],
        ["PreCompact"],
    ]


@pytest.mark.thorough
async def test_what_ruff_finds_is_in_the_result_of_the_edit_and_gone_when_mended(tmp_path):
    stage = Stage(tmp_path)
    ruff = shutil.which("ruff", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert ruff is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ruff").symlink_to(ruff)
    calls = (
        call("c1", "write", path="a.py", content="import os\n\nprint(1)\n"),
        call("c2", "edit", path="a.py", edits=[{"old": "import os\n\n", "new": ""}]),
    )
    script = [*(Reply(tool_calls=(one,)) for one in calls), Reply(text="Done.")]
    runtime = stage.runtime(script, hooks=settings_on_the_page()[0].hooks)
    bad, mended = of_kind(await collect(runtime.submit("go")), ToolFinished)
    assert "a.py:1:8: F401" in bad.message.text
    assert "hook" not in mended.message.text
    assert not bad.message.is_error
