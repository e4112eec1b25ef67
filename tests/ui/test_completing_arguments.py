"""Arguments of real commands completed in the real app."""

from pathlib import Path

import pytest

from agent_tui.messages import UserMessage
from agent_tui.ui.prompt.completion import MenuItem
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, asking, running_app, said


async def offered(ui: Ui, text: str) -> tuple[MenuItem, ...]:
    """The menu once it answers `text`."""
    ui.app.prompt.clear()
    ui.app.prompt.area.insert(text)
    await ui.settle()
    await ui.until(lambda: not ui.app.prompt.is_behind)
    return ui.app.prompt.menu.items


async def test_models_themes_files_and_words_are_offered(tmp_path: Path):
    stage = Stage(tmp_path)
    (stage.workspace / "docs").mkdir()
    (stage.workspace / "docs" / "a b.md").touch()
    async with running_app(tmp_path, stage=stage) as ui:
        (first, *_) = await offered(ui, "/model ")
        assert (first.label, first.description) == (
            "anthropic/claude-sonnet",
            "in use · window 200k · $ 3.00/15.00 · ANTHROPIC_API_KEY",
        )
        (large,) = await offered(ui, "/model gptl")
        assert large.insert == "openai/gpt-large"
        by_label = {item.label: item for item in await offered(ui, "/theme agent")}
        assert by_label[ui.app.theme].description == "in use"
        assert [item.insert for item in await offered(ui, "/export md docs/")][
            -1
        ] == "md docs/a b.md"
        assert next(item.label for item in await offered(ui, "/export h")) == "html"
        (hybrid,) = await offered(ui, "/compact the parser --strategy h")
        assert hybrid.insert == "the parser --strategy hybrid"
        assert next(item.label for item in await offered(ui, "/thinking hi")) == "high"
        assert next(item.label for item in await offered(ui, "/permissions pl")) == "plan"
        assert [item.insert for item in await offered(ui, "/loop ov")] == ["over "]


async def test_a_session_is_found_by_its_name_and_opens_by_its_id(tmp_path: Path):
    stage = Stage(tmp_path)
    for prompt, name in (("fix the parser", ""), ("hello", "date formats")):
        earlier = said(asking(stage), UserMessage(content=prompt))
        if name:
            earlier.sessions.rename(name)
        await earlier.aclose()
    async with running_app(tmp_path, stage=stage) as ui:
        labels = {item.label for item in await offered(ui, "/resume ")}
        assert {"fix the parser", "date formats"} <= labels
        (found, *_) = await offered(ui, "/resume date")
        assert found.description.startswith("now · ")
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.runtime.conversation.log.name == "date formats")


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_esc_closes_the_menu_until_something_else_is_typed(
    tmp_path: Path, size: tuple[int, int]
):
    async with running_app(tmp_path, size=size) as ui:
        await ui.write("/co")
        menu = ui.app.prompt.menu
        assert menu.is_open
        assert menu.region.bottom == ui.app.prompt.region.y
        await ui.pilot.press("escape")
        assert not menu.is_open
        await ui.pilot.press("m")
        assert not menu.is_open
        await ui.pilot.press("ctrl+u")
        await ui.write("/cl")
        assert next(item.label for item in menu.items) == "/clear"
