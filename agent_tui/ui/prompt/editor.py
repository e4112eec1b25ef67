"""Writing the prompt in the person's own editor."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TypeVar

from textual.app import App, SuspendNotSupported

from agent_tui.ui.prompt.pastes import Draft
from agent_tui.ui.prompt.prompt import Prompt

ReturnT = TypeVar("ReturnT")


def edit_outside(app: App[ReturnT], prompt: Prompt) -> None:
    """Suspend the screen, let ``$VISUAL`` or ``$EDITOR`` (or vi) change the draft, take it back.

    Pastes are written out in full, so they can be looked at and changed.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        command = shlex.split(editor) or ["vi"]
    except ValueError as error:
        app.notify(f"{editor} is no command: {error}. Set $EDITOR.", severity="error", markup=False)
        return
    with tempfile.TemporaryDirectory(prefix="agent-tui-") as folder:
        file = Path(folder) / "prompt.md"
        file.write_text(prompt.draft.full_text, encoding="utf-8")
        try:
            with app.suspend():
                done = subprocess.run([*command, str(file)], check=False)
        except SuspendNotSupported:
            app.notify("This terminal cannot be handed to an editor.", severity="warning")
            return
        except OSError as error:
            app.notify(
                f"{command[0]} cannot be started: {error.strerror}. Set $EDITOR.",
                severity="error",
                markup=False,
            )
            return
        if done.returncode == 0:
            prompt.load(Draft(file.read_text(encoding="utf-8", errors="replace").rstrip("\n")))
        app.refresh()
