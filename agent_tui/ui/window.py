"""What is there from the first paint on: screens, tasks, the terminal, and the user's editor."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from textual.app import App, SuspendNotSupported
from textual.events import Paste
from textual.screen import Screen

from agent_tui import text_editor
from agent_tui.drafts.draft import Draft
from agent_tui.errors import AgentTuiError
from agent_tui.key_actions import KeyMap
from agent_tui.text_editor import editor_command, run_editor
from agent_tui.ui.prompt.prompt import Prompt
from agent_tui.ui.terminal.outcome import UiOutcome
from agent_tui.ui.terminal.state import TerminalState
from agent_tui.ui.theme.themes import size_classes

ResultT = TypeVar("ResultT")
_TICK_S, _FIELD_OPENS_TICKS = 0.01, 20
_WAITS_BELOW = "The model has a question. Close this page to answer."
_TOLD_S = 10.0


@dataclass(frozen=True, slots=True)
class Window:
    """Shows screens, runs tasks, reaches the terminal.

    Attributes:
        app: Textual's side: themes, suspending, the clipboard.
        prompt: Where the user writes.
        terminal: The terminal's title and mouse.
        use_keys: Applies another key map to the chat and the prompt.
        note_left: Called when the user leaves a screen without a result, as with Esc.
    """

    app: App[UiOutcome]
    prompt: Prompt
    terminal: TerminalState
    use_keys: Callable[[KeyMap], None]
    note_left: Callable[[], object] = bool

    async def ask(self, screen: Screen[ResultT]) -> ResultT | None:
        """Show a screen and wait for its result; None if it was left without one.

        A task that is cancelled takes its screen along; what was written there goes into the
        prompt.
        """
        screen.add_class(*size_classes(self.app.size))
        answer: asyncio.Future[ResultT | None] = asyncio.get_running_loop().create_future()

        def take(result: ResultT | None) -> None:
            if result is None:
                self.note_left()
            if not answer.done():
                answer.set_result(result)

        self.app.push_screen(screen, take)
        try:
            return await answer
        except asyncio.CancelledError:
            self._keep_unsent(screen)
            if screen.is_current and len(self.app.screen_stack) > 1:  # else the program ends
                self.app.pop_screen()
            raise

    async def wait_for_chat(self, quiet_s: float) -> None:
        """Wait until no screen covers the chat and nothing was typed in the prompt for `quiet_s`.

        What comes next would take keys that are meant for them. A user who reads a page is told.
        """
        from agent_tui.ui.screens.modal import show_waiting

        is_told = False
        app, prompt = self.app, self.prompt
        try:
            while len(app.screen_stack) > 1 or time.monotonic() - prompt.changed_at < quiet_s:
                if len(app.screen_stack) > 1 and not is_told:
                    is_told = True
                    app.notify(_WAITS_BELOW, severity="warning", timeout=_TOLD_S)
                show_waiting(app, _WAITS_BELOW)
                await asyncio.sleep(_TICK_S)
        finally:
            show_waiting(app, "")

    def _keep_unsent(self, screen: Screen[ResultT]) -> None:
        from agent_tui.ui.lines_field import LinesField

        for field in screen.query(LinesField):
            if not (draft := field.unsent).is_empty:
                self.prompt.put_before((draft,))
                field.load(Draft())

    async def place_paste(self, text: str) -> None:
        """Paste `text` into the field that an answer is opening, else into the prompt.

        Say so if a question is above the prompt.
        """
        from agent_tui.ui.lines_field import LinesField

        area = self.prompt.area
        for _ in range(_FIELD_OPENS_TICKS if area.may_field_open else 0):
            if isinstance(self.app.focused, LinesField):
                break
            await asyncio.sleep(_TICK_S)
        field = self.app.focused if isinstance(self.app.focused, LinesField) else area
        field.post_message(Paste(text))
        if field is area and len(self.app.screen_stack) > 1:
            self.app.notify("What you pasted is in the prompt.")

    def start_work(self, work: Coroutine[None, None, None], *, group: str = "work") -> None:
        """Run a coroutine in a task of the app's, which ends with it."""
        self.app.run_worker(work, group=group)

    def leave(self, outcome: UiOutcome) -> None:
        """End the program."""
        self.app.exit(outcome)


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


def edit_file(app: App[ReturnT], file: Path, line: int = 0) -> bool:
    """Suspend the screen and open `file` in the user's editor, at `line`: see `editor_command`.

    Returns:
        Whether the editor succeeded; reports if it did not.
    """
    try:
        command = editor_command(os.environ)
        with app.suspend():
            exit_code = run_editor(command, file, line)
    except SuspendNotSupported:
        app.notify("This terminal cannot run an editor.", severity="warning")
        return False
    except AgentTuiError as error:
        app.notify(str(error), severity="error", markup=False)
        return False
    app.refresh()
    if exit_code:
        app.notify(f"The editor ended with exit code {exit_code}.", severity="warning")
    return exit_code == 0
