"""Keeps what is written and not sent, so that a kill loses at most its last second."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from textual.timer import Timer

from agent_tui.drafts.draft import Draft, join_drafts
from agent_tui.drafts.kept_drafts import KeptDraft, draft_file, take_left_draft
from agent_tui.ui.lines_field import LinesField
from agent_tui.ui.prompt.prompt import Prompt

SAVE_S = 1.0
"""Seconds from a change to its write; changes in between are written together."""

RESTORED = "Your unsent draft is back in the prompt."


class DraftKeeper:
    """Writes the draft beside the session while it changes, and restores one that was left.

    Args:
        prompt: Where the draft is.
        waiting: Returns the messages that the session does not have yet; they are kept with the
            draft.
        session: Returns the file of the present session; None keeps nothing.
        say: Tells the user.
    """

    def __init__(
        self,
        prompt: Prompt,
        waiting: Callable[[], Sequence[Draft]],
        session: Callable[[], Path | None],
        say: Callable[[str], None],
    ) -> None:
        self._prompt = prompt
        self._waiting = waiting
        self._fields: dict[LinesField, None] = {}
        self._held: dict[object, Sequence[Draft]] = {}
        self._session = session
        self._say = say
        self._kept = KeptDraft()
        self._timer: Timer | None = None
        self._saving = asyncio.Lock()
        self._is_fault_told = False

    def note_answer(self, field: LinesField) -> None:
        """Save within `SAVE_S` what is written in the field of a question, too."""
        self._fields[field] = None
        self.note_change()

    def hold(self, owner: object, drafts: Sequence[Draft]) -> None:
        """Keep answers that were given and have not arrived, in place of others of `owner`."""
        self._held[owner] = drafts
        self.note_change(at_once=True)

    def give_back(self, owner: object) -> None:
        """Put what is held for `owner` into the prompt: it did not arrive."""
        if drafts := self._held.pop(owner, ()):
            self._prompt.put_before((join_drafts(drafts),))
        self.note_change(at_once=True)

    def _answers(self) -> list[Draft]:
        """What was given or written as the answer to a question, and has not arrived."""
        written = {field: draft for field in self._fields if not (draft := field.unsent).is_empty}
        self._fields = dict.fromkeys(written)
        given = (draft for drafts in self._held.values() for draft in drafts)
        return [*given, *written.values()]

    def note_change(self, *, at_once: bool = False) -> None:
        """Save the draft within `SAVE_S`, or at once if it was sent or cleared.

        Args:
            at_once: Save at once in any case.
        """
        is_empty = not (self._prompt.area.text or self._answers())
        if is_empty and not self._kept.is_there and not self._waiting():
            return
        if at_once or is_empty:
            self._stop_timer()
            self._prompt.run_worker(self.save(), group="draft")
        elif self._timer is None:
            self._timer = self._prompt.set_timer(SAVE_S, self.save)

    async def save(self) -> None:
        """Write what is unsent now, or remove what was kept if there is nothing."""
        self._stop_timer()
        async with self._saving:
            session, present = self._session(), self._prompt.draft
            others = (*self._waiting(), *self._answers())
            draft = join_drafts((*others, present)) if others else present
            try:
                if session is None or draft.is_empty:
                    await asyncio.to_thread(self._kept.remove)
                else:
                    await asyncio.to_thread(self._kept.write, draft, session)
            except OSError as error:
                if not self._is_fault_told:
                    self._is_fault_told = True
                    self._say(f"Cannot keep the unsent draft on disk: {error.strerror}.")

    async def restore(self, *, of_folder: bool = False) -> None:
        """Put a draft that a program left back into the prompt, above what is there.

        Args:
            of_folder: Whether to take the newest draft of any session in its folder, instead of
                that of the present session.
        """
        session = self._session()
        if session is None:
            return
        left = await asyncio.to_thread(take_left_draft, session, of_folder=of_folder)
        if left is None:
            return
        draft, path = left
        self._prompt.put_before((draft,))
        await self.save()
        if path != draft_file(session):
            await asyncio.to_thread(path.unlink, missing_ok=True)
        self._say(RESTORED)

    async def aclose(self) -> None:
        """Save the draft as it is; the next start finds it."""
        await self.save()
        self._kept.release()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
