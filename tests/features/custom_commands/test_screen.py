import asyncio
from pathlib import Path

import pytest

from agent_tui.features.custom_commands.library import FoundPrompts, PromptLibrary
from agent_tui.features.tour.scripted import Reply
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, held, running_app


def write(folder: Path, name: str, content: str = "Review $1.") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


@pytest.fixture
def user(tmp_path: Path) -> Path:
    return tmp_path / "config" / "commands"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "workspace" / ".agent-tui" / "commands"


def offered(ui: Ui) -> dict[str, str]:
    return {item.label: item.description for item in ui.app.prompt.menu.items}


async def test_a_prompt_file_is_offered_completed_and_sent(tmp_path, user, project):
    hinted = "---\ndescription: Look closely\nargument-hint: <path>\n---\nReview $1."
    write(user, "review.md", hinted)
    write(project, "git/commit.md", "Commit what is staged.")
    write(tmp_path / "workspace" / "src", "app.py")
    async with running_app(tmp_path, Reply(text="Sound."), held()) as ui:
        await ui.write("/rev")
        assert offered(ui) == {"/review": "user · Look closely"}
        await ui.pilot.press("tab")
        assert ui.text == "/review "
        await ui.until(lambda: "src/" in offered(ui))
        await ui.write("src")
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.answers == ["Sound."])
        assert ui.sent == ["Review src."]
        await ui.settle()
        await ui.write("/git:c")
        assert offered(ui) == {"/git:commit": "project · Commit what is staged."}
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.sent[1:] == ["Commit what is staged."])
        await ui.settle()
        await ui.send("/review it")
        assert ui.queued == ("Review it.",)


async def test_files_made_while_it_runs_are_seen_when_the_menu_opens(tmp_path, user):
    async with running_app(tmp_path) as ui:
        file = write(user, "tidy.md", "One.")
        await ui.write("/tid")
        await ui.until(lambda: offered(ui) == {"/tidy": "user · One."})
        ui.app.prompt.clear()
        file.write_text("Another.")
        await ui.write("/tid")
        await ui.until(lambda: offered(ui) == {"/tidy": "user · Another."})
        ui.app.prompt.clear()
        file.unlink()
        await ui.write("/tid")
        await ui.until(lambda: not ui.app.prompt.menu.is_open)


async def test_what_is_gone_or_no_longer_in_force_is_not_sent(tmp_path, user, project):
    file = write(user, "review.md")
    write(project, "ship.md")
    async with running_app(tmp_path) as ui:
        file.write_bytes(b"\0")
        await ui.send("/review")
        await ui.until(lambda: "review.md" in "".join(ui.notices))
        ui.stage.trust.decide(ui.workspace, "not trusted")
        await ui.send("/ship")
        await ui.until(lambda: "/ship no longer exists" in ui.notices[-1])
        assert ui.sent == []


async def test_what_cannot_be_used_is_told_once_and_named_by_help(tmp_path, user, project):
    for number in range(5):
        write(user, f"bad{number}.md", "\0")
    write(user, "help.md", "Mine.")
    write(user, "review.md", "[red]Look[/red] $1")
    write(project, "ship.md")
    async with running_app(tmp_path, stage=Stage(tmp_path, is_trusted=False)) as ui:
        await ui.until(lambda: len(ui.notices) == 4)
        assert ui.notices[0] == f"{user}/bad0.md is binary, not text."
        assert ui.notices[3].startswith("3 more prompt files cannot be used; /help")
        await ui.write("/rev")
        await ui.until(lambda: offered(ui) == {"/review": "user · [red]Look[/red] $1"})
        assert len(ui.notices) == 4
        *own, custom, left_out = ui.app.controller.front.help().commands
    assert all("/review [arguments]" not in dict(section.rows) for section in own)
    assert custom.rows == (("/review [arguments]", "user · [red]Look[/red] $1"),)
    assert len(left_out.rows) == 6
    assert (f"{user}/help.md", "is ignored: /help is a built-in command") in (left_out.rows)


async def test_a_session_that_begins_with_such_a_command_sends_what_it_makes(tmp_path, user):
    write(user, "review.md")
    async with running_app(tmp_path, Reply(text="Sound."), first_prompt="/review src") as ui:
        await ui.until(lambda: ui.sent == ["Review src."])
        await ui.until(lambda: ui.answers == ["Sound."])


async def test_the_menu_opens_late_for_what_is_found_late(tmp_path, user, monkeypatch):
    found, look = asyncio.Event(), PromptLibrary.find
    async with running_app(tmp_path) as ui:
        write(user, "zebra.md")
        loop = asyncio.get_running_loop()

        def slow_look(library: PromptLibrary, cwd: Path) -> FoundPrompts:
            asyncio.run_coroutine_threadsafe(found.wait(), loop).result()
            return look(library, cwd)

        monkeypatch.setattr(PromptLibrary, "find", slow_look)
        await ui.write("/zeb")
        assert not ui.app.prompt.menu.is_open
        found.set()
        await ui.until(lambda: list(offered(ui)) == ["/zebra"])
