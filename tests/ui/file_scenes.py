"""States of the screen that come from files of the person and the project."""

from pathlib import Path

from agent_tui.agent.context_files import ContextFile
from tests.ui.fed_app import Ui

RULES = "# Rules\n\n" + "- Keep every line under 100 characters, also in the tests.\n" * 40


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


async def memory_page(ui: Ui) -> None:
    """Two files in force, one of them changed since, and settings that are not obeyed."""
    own, project = (
        ui.runtime.services.user_config_dir / "AGENTS.md",
        ui.runtime.conversation.cwd / "AGENTS.md",
    )
    _write(own, "- Answer briefly.\n")
    _write(project, RULES + "- And in the examples.\n")
    _write(ui.runtime.conversation.cwd / ".agent-tui" / "config.toml", 'theme = "nord"\n')
    ui.runtime.conversation.context_files = (
        ContextFile(own, "- Answer briefly.\n"),
        ContextFile(project, RULES),
    )
    ui.runtime.services.trust.trust_for_this_run(ui.runtime.conversation.cwd)
    ui.runtime.services.trust.decide(ui.runtime.conversation.cwd / ".agent-tui", "not trusted")
    conversation = ui.runtime.conversation
    conversation.withheld_files = ui.runtime.services.trust.withheld(conversation.cwd)
    await ui.send("/memory")
    await ui.until(lambda: ui.app.screen.query("#page-title"))
    await ui.settle()


async def menu_of_prompt_files(ui: Ui) -> None:
    """Commands from files of the person and of the project, beside the program's own."""
    own = ui.runtime.services.user_config_dir / "commands"
    theirs = ui.runtime.conversation.cwd / ".agent-tui" / "commands"
    ui.runtime.services.trust.trust_for_this_run(ui.runtime.conversation.cwd)
    _write(
        own / "review.md",
        "---\ndescription: Look closely at a path\nargument-hint: <path>\n---\nReview $1.",
    )
    _write(own / "refactor.md", "Make it simpler without changing what it does.")
    _write(theirs / "release" / "notes.md", "# Write the release notes\n\nFrom the log.")
    await ui.app.controller.refresh_commands()
    await ui.write("/re")
    await ui.settle()
