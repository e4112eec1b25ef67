"""Edit the prompt, or a file, in the user's own editor."""

import os
from pathlib import Path
from typing import TypeVar

from textual.app import App, SuspendNotSupported

from agent_tui import text_editor
from agent_tui.errors import AgentTuiError
from agent_tui.text_editor import editor_command, run_editor
from agent_tui.ui.prompt.prompt import Prompt

ReturnT = TypeVar("ReturnT")


def edit_outside(app: App[ReturnT], prompt: Prompt) -> None:
    """Let the user's editor change the draft, and take it back.

    Pastes are written out in full, so they can be looked at and changed.
    """
    draft = prompt.draft
    written = edit_text(app, draft.full_text)
    if written is not None:
        prompt.load(draft.fold(written))


def edit_text(app: App[ReturnT], text: str) -> str | None:
    """`text` after the user edited it; None if the editor failed."""
    return text_editor.edit_text(text, lambda file: edit_file(app, file))


def edit_file(app: App[ReturnT], file: Path) -> bool:
    """Suspend the screen and open `file` in the user's editor: see `editor_command`.

    Returns:
        Whether the editor succeeded; reports if it could not be started.
    """
    try:
        command = editor_command(os.environ)
        with app.suspend():
            exit_code = run_editor(command, file)
    except SuspendNotSupported:
        app.notify("This terminal cannot run an editor.", severity="warning")
        return False
    except AgentTuiError as error:
        app.notify(str(error), severity="error", markup=False)
        return False
    app.refresh()
    return exit_code == 0
