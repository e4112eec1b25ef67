"""Plain lines as a `Front`: how commands show and ask."""

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.attachments import without_attachments
from agent_tui.commands.core.front import (
    CommandServices,
    FrontHelp,
    HeldAnswers,
    Level,
    PageSection,
    Pickable,
    Question,
    Row,
    Showable,
    TextQuestion,
    page_lines,
)
from agent_tui.commands.core.registry import CommandRegistry
from agent_tui.commands.core.short_words import count_text
from agent_tui.commands.program import command_sections
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent, ApprovalRequest, ApprovalRequested, SessionChanged
from agent_tui.features.plain.agent_thread import AgentThread
from agent_tui.features.plain.narrator import ME, Narrator
from agent_tui.features.plain.questions import Asker
from agent_tui.features.plain.voice import LineWriter
from agent_tui.messages import AssistantMessage, UserMessage
from agent_tui.safe_text import printable_line
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.text_editor import editor_command, run_editor

AnswerT = TypeVar("AnswerT")

KEYS: tuple[Row, ...] = tuple(
    ("", sentence)
    for sentence in (
        "Type a message and press Enter to send it.",
        "End a line with a backslash to continue on the next one. Lines between two lines of "
        "three double quotes are one message.",
        "@ and a path attach a file. ! and a command run it and add it to the conversation; with "
        "!! it stays out.",
        "Answer a question with the letter or number of a choice, then Enter.",
        "Control C stops what is running and keeps the partial output; twice at the prompt, it "
        "quits. Control D quits.",
    )
)


@dataclass(slots=True)
class PlainFront:
    """The conversation and the means to show and ask.

    Commands run on the event loop of `agent`; reading and writing happen in the main thread. Set
    `leaves` to end the program.
    """

    runtime: AgentRuntime
    services: CommandServices
    registry: CommandRegistry
    agent: AgentThread
    lines: LineWriter
    narrator: Narrator
    asker: Asker
    warm: Callable[[], "Future[None] | None"]
    leaves: bool = False
    name: str = field(default="--plain", init=False)
    screen: None = field(default=None, init=False)
    can_ask: bool = field(default=True, init=False)
    can_pick: bool = field(default=True, init=False)
    is_working: bool = field(default=False, init=False)
    _warming: "Future[None] | None" = field(default=None, init=False)

    def help(self) -> FrontHelp:
        """How to type, and the commands that work here."""
        return FrontHelp((PageSection("Keys", KEYS),), command_sections(self.registry, self))

    # Telling

    def say(self, text: str, level: Level = "info") -> None:
        """Write a line, or several."""
        self.agent.in_main(partial(self.lines.line, f"Error: {text}" if level == "error" else text))

    def show_events(self, events: Iterable[AgentEvent]) -> None:
        """Show the events that a quick change of the runtime returned."""
        for event in events:
            self.agent.in_main(partial(self.narrator.tell, event))
            if isinstance(event, SessionChanged) and event.reason == "resumed":
                log = self.runtime.conversation.log
                opened = _resume_lines(log.name, self.runtime.conversation.log.path_entries())
                self.agent.in_main(partial(self.lines.lines, opened))

    def show_thinking(self, is_shown: bool) -> None:
        """Show what the model thinks, or only that it thinks."""
        self.narrator.shows_thinking = is_shown
        self.say("Thinking is shown." if is_shown else "Thinking is hidden.")

    async def show(self, shown: Showable) -> None:
        """Write a page, a line for each row."""
        written = [line for line in page_lines(await shown.page()) if line.strip()]
        self.agent.in_main(partial(self.lines.lines, written))

    # Asking

    async def ask(self, question: Question[AnswerT]) -> AnswerT | None:
        """Ask for a letter."""
        return await self.agent.call_in_main(partial(self.asker.question, question))

    async def ask_text(self, question: TextQuestion) -> str | None:
        """Ask for a line."""
        return await self.agent.call_in_main(partial(self.asker.text, question))

    def hold_answers(self) -> AbstractContextManager[HeldAnswers]:
        """The terminal shows what was answered; there is no prompt to return it to."""
        return nullcontext(HeldAnswers())

    async def pick(self, wanted: Pickable[AnswerT]) -> AnswerT | str | None:
        """Ask for a number, or a name."""
        listing = await wanted.listing()
        return await self.agent.call_in_main(partial(self.asker.pick, listing))

    async def edit_file(self, path: Path) -> bool:
        """Open a file in the user's editor."""
        edit = partial(run_editor, editor_command(os.environ), path)
        return await self.agent.call_in_main(edit) == 0

    async def set_up_model(self) -> bool:
        """There is none but ``/model``."""
        return False

    # Working

    async def run(self, events: AsyncGenerator[AgentEvent, None]) -> None:
        """Run an activity to its end, show its events and ask its questions."""
        await self._run(events)

    async def send(self, text: str) -> None:
        """Send a message and run the turn to its end."""
        await self._run(self.runtime.submit(text))

    async def send_read(self, text: str, *, is_shown: bool, is_pasted: bool) -> None:
        """Send what was read from the terminal, and whether it shows it already."""
        typed = () if is_pasted else None
        await self._run(self.runtime.submit(text, typed=typed), typed=text if is_shown else "")

    async def _run(self, events: AsyncGenerator[AgentEvent, None], typed: str = "") -> None:
        self.agent.in_main(partial(self.narrator.begin, typed))
        try:
            async with aclosing(events) as stream:
                async for event in stream:
                    self.agent.in_main(partial(self._tell, event))
        finally:
            self.agent.in_main(self.narrator.end)

    def _tell(self, event: AgentEvent) -> None:
        self.narrator.tell(event)
        self.narrator.tick()
        if isinstance(event, ApprovalRequested):
            self._ask_for_approval(event.request)

    def interrupt(self) -> bool:
        """Stop the running activity. Signal handlers may use it."""
        if self.runtime.is_busy:
            self.agent.soon(self.runtime.abort)
            return True
        return False

    def leave(self) -> None:
        """End the program after the typed input is processed."""
        self.leaves = True

    def warm_up(self) -> None:
        """Prepare the present model in the background."""
        self._warming = self.warm()

    def tell_of_warming(self) -> None:
        """Report an error of that preparation, once."""
        if self._warming is None or not self._warming.done():
            return
        failed, self._warming = self._warming.exception(), None
        if isinstance(failed, AgentTuiError):
            self.say(str(failed), "error")
        elif failed is not None:
            raise failed

    def _ask_for_approval(self, request: ApprovalRequest) -> None:
        try:
            answer = self.asker.approval(request)
        except KeyboardInterrupt:
            self.lines.line()
            self.interrupt()
            return
        self.narrator.note_input()
        self.agent.soon(lambda: self.runtime.pending_approvals.answer(request.id, answer))


def _resume_lines(name: str, entries: Sequence[Entry]) -> list[str]:
    """The session that was opened, and its last messages."""
    messages = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
    called = f" {printable_line(name)}" if name else ""
    lines = [f"Session{called} opened, {count_text(len(messages), 'message')}. The last ones:"]
    asked = next((m.text for m in reversed(messages) if isinstance(m, UserMessage)), "")
    replies = (m.text for m in reversed(messages) if isinstance(m, AssistantMessage) and m.text)
    if asked:
        lines.append(f"You: {without_attachments(asked)}")
    if reply := next(replies, ""):
        lines.append(f"{ME} {reply}")
    return lines
