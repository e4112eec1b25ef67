"""``/skills``: what there is, what is in use, and taking one out."""

from pathlib import Path

import pytest
from textual import events

from agent_tui.features.context.screen import ContextScreen
from agent_tui.features.tour.scripted import Reply
from agent_tui.ui.screens.modal import PageScreen
from tests.support.runtime import Stage
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
        await ui.write("/rele")
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


async def test_a_skill_of_a_folder_that_is_not_trusted_is_named_as_such(tmp_path: Path):
    skill(tmp_path, "haiku", "Write one")
    stage = Stage(tmp_path, is_trusted=False)
    runtime = stage.runtime([Reply(text="Hm.")])
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.send("Write one with /haiku")
        file = ".agents/skills/haiku/SKILL.md"
        said = f"/haiku was not used: this folder is not trusted ({file}). /trust changes that."
        assert said in ui.notices
        await ui.submit("/skills")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        await ui.settle()
        page = "\n".join(str(widget.render()) for widget in ui.app.screen.query("#page *"))
        assert "Not in force: this folder is not trusted (/trust)" in page
        assert file in page


@pytest.mark.thorough
async def test_a_skill_is_completed_within_a_message_and_paths_stay_as_they_are(tmp_path: Path):
    skill(tmp_path, "release", "Make a release")
    async with running_app(tmp_path, Reply(text="Released.")) as ui:
        prompt = ui.app.prompt
        await ui.write("see /r")
        await ui.until(lambda: prompt.menu.is_open)
        assert [item.label for item in prompt.menu.items] == ["/release"]
        await ui.write("un/x")
        await ui.until(lambda: not prompt.menu.is_open)
        await ui.write(" then $r")
        await ui.until(lambda: prompt.menu.is_open)
        await ui.pilot.press("tab")
        assert prompt.area.text == "see /run/x then $release "
        await ui.write("and $rel")
        await ui.until(lambda: prompt.menu.is_open)
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.answers == ["Released."])
        assert ui.sent == ["see /run/x then $release and $rel"]
        assert ui.notices[0].startswith("Skill release in use: ")


@pytest.mark.thorough
async def test_a_pasted_log_loads_no_skill_also_behind_a_command(tmp_path: Path):
    skill(tmp_path, "release", "Make a release")
    skill(tmp_path, "review", "Look at a change")
    async with running_app(tmp_path, Reply(text="Well."), Reply(text="Good.")) as ui:
        log = "POST /release 500\n+ cd $release\n"
        for typed in ("What is this? ", "/review "):
            await ui.write(typed)
            ui.app.post_message(events.Paste(log))
            await ui.settle()
            await ui.pilot.press("enter")
            await ui.settle()
        await ui.until(lambda: ui.answers == ["Well.", "Good."])
        assert ui.sent == [f"What is this? {log.strip()}", f"/review {log.strip()}"]
        assert [message.typed for message in ui.user_messages] == [("What is this?",), ("/review",)]
        assert [notice for notice in ui.notices if "release in use" in notice] == []
        assert any("review in use" in notice for notice in ui.notices)


async def test_a_skill_is_a_command_as_soon_as_its_folder_is_trusted(tmp_path: Path):
    skill(tmp_path, "haiku", "Write one")
    stage = Stage(tmp_path, is_trusted=False)
    runtime = stage.runtime([Reply(text="Leaves fall.")])
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.send("/haiku about cats")
        file = ".agents/skills/haiku/SKILL.md"
        said = f"{file} is ignored: the folder is not trusted. /trust changes that."
        await ui.until(lambda: ui.toasts == [said])
        assert ui.text == "/haiku about cats"
        stage.trust.decide(ui.workspace, "trusted")
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.answers == ["Leaves fall."])
        assert ui.sent == ["/haiku about cats"]
        assert ui.text == ""
