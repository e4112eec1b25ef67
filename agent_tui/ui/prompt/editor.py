"""Writing the prompt, or a file, in the person's own editor."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TypeVar

from textual.app import App, SuspendNotSupported

from agent_tui.ui.prompt.prompt import Prompt

ReturnT = TypeVar("ReturnT")


def edit_outside(app: App[ReturnT], prompt: Prompt) -> None:
    """Let the person's editor change the draft, and take it back.

    Pastes are written out in full, so they can be looked at and changed.
    """
    draft = prompt.draft
    with tempfile.TemporaryDirectory(prefix="agent-tui-") as folder:
        file = Path(folder) / "prompt.md"
        written = draft.full_text and draft.full_text + "\n"  # editors want an end of line
        file.write_text(written, encoding="utf-8", errors="replace")
        if edit_file(app, file):
            written = file.read_text(encoding="utf-8", errors="replace")
            prompt.load(draft.folded(written.removesuffix("\n")))


def edit_file(app: App[ReturnT], file: Path) -> bool:
    """Suspend the screen and open `file` in ``$VISUAL`` or ``$EDITOR`` (or vi).

    Returns:
        Whether the editor ended well; where it could not be started, that was said.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        command = shlex.split(editor) or ["vi"]
    except ValueError as error:
        app.notify(f"{editor} is no command: {error}. Set $EDITOR.", severity="error", markup=False)
        return False
    try:
        with app.suspend():
            done = subprocess.run([*command, str(file)], check=False)
    except SuspendNotSupported:
        app.notify("This terminal cannot be handed to an editor.", severity="warning")
        return False
    except OSError as error:
        app.notify(
            f"{command[0]} cannot be started: {error.strerror}. Set $EDITOR.",
            severity="error",
            markup=False,
        )
        return False
    app.refresh()
    return done.returncode == 0
