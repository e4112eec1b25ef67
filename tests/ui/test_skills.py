"""``/skills``: what there is, what is in use, and taking one out."""

from pathlib import Path

import pytest

from agent_tui.providers.scripted.provider import Reply
from agent_tui.ui.screens.context import ContextScreen
from agent_tui.ui.screens.modal import PageScreen
from tests.ui.app_support import running_app


def skill(folder: Path, name: str, text: str) -> None:
    path = folder / "workspace/.agents/skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\ndescription: {text}\n---\nThe whole of {name}.", "utf-8")


@pytest.mark.thorough
async def test_skills_are_listed_called_and_dropped(tmp_path: Path):
    skill(tmp_path, "release", "Make a release")
    skill(tmp_path, "review", "Look at a change")
    async with running_app(tmp_path, Reply(text="Released."), Reply(text="Well.")) as ui:
        await ui.write("/rel")
        assert [item.description for item in ui.app.prompt.menu.items] == [
            "project skill · Make a release"
        ]
        await ui.pilot.press("tab")
        await ui.write("1.2")
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.answers == ["Released."])
        assert ui.sent == ["/release 1.2"]
        assert ui.notices[0].startswith("Skill release in use: ")
        await ui.settle()
        await ui.submit("/skills")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        await ui.settle()
        page = "\n".join(str(widget.render()) for widget in ui.app.screen.query("#page *"))
        assert "In use" in page
        assert "Look at a change (this project's)" in page
        await ui.pilot.press("escape")
        await ui.submit("/context")
        await ui.until(lambda: isinstance(ui.app.screen, ContextScreen))
        await ui.settle()
        shown = "\n".join(str(widget.render()) for widget in ui.app.screen.query("*"))
        assert "Pinned skills and instructions" in shown
        await ui.pilot.press("escape")
        await ui.send("/skills drop review")
        await ui.until(lambda: ui.notices[-1] == "Skill review is not in use. In use: release.")
        await ui.send("/skills drop release")
        await ui.until(lambda: ui.notices[-1] == "Skill release removed from the context.")
        await ui.send("Go on")
        await ui.until(lambda: ui.answers[-1] == "Well.")
