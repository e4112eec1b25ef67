"""States of the screen that come from files of the person and the project."""

from pathlib import Path

from tests.ui.app_support import Ui

RULES = "# Rules\n\n" + "- Keep every line under 100 characters, also in the tests.\n" * 40


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


async def memory_page(ui: Ui) -> None:
    """Two files in force, one of them changed since, and settings that are not obeyed."""
    project = ui.workspace / "AGENTS.md"
    _write(ui.stage.config / "AGENTS.md", "- Answer briefly.\n")
    _write(project, RULES)
    _write(ui.workspace / ".agent-tui" / "config.toml", 'theme = "nord"\n')
    ui.stage.trust.trust_for_this_run(ui.workspace)
    ui.stage.trust.decide(ui.workspace / ".agent-tui", "not trusted")
    await ui.runtime.sessions.apply_trust()
    _write(project, RULES + "- And in the examples.\n")
    await ui.send("/memory")
    await ui.until(lambda: ui.app.screen.query("#page-title"))
    await ui.settle()


async def menu_of_prompt_files(ui: Ui) -> None:
    """Commands from files of the person and of the project, beside the program's own."""
    own = ui.stage.config / "commands"
    theirs = ui.workspace / ".agent-tui" / "commands"
    ui.stage.trust.trust_for_this_run(ui.workspace)
    _write(
        own / "review.md",
        "---\ndescription: Look closely at a path\nargument-hint: <path>\n---\nReview $1.",
    )
    _write(own / "refactor.md", "Make it simpler without changing what it does.")
    _write(theirs / "release" / "notes.md", "# Write the release notes\n\nFrom the log.")
    await ui.write("/re")
    await ui.until(lambda: "/release:notes" in {item.label for item in ui.app.prompt.menu.items})
    await ui.settle()
