"""A plain conversation, from the first notice to the hint for resuming it."""

import os
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO, TypeVar

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.between_turns import BetweenTurns
from agent_tui.commands.core.demo import own_demo
from agent_tui.commands.core.forms import form_filler, question_filler
from agent_tui.commands.core.found_commands import CommandFinders
from agent_tui.commands.core.front import CommandServices, has_model
from agent_tui.commands.core.known_models import first_steps, trial_note
from agent_tui.commands.core.registry import CalledCommand, UnknownCommand, load_commands
from agent_tui.commands.core.short_words import count_text
from agent_tui.commands.sessions import continue_wait, open_session
from agent_tui.commands.trust import ask_about_started, ask_about_workspace
from agent_tui.drafts.draft import Draft
from agent_tui.drafts.history import PromptHistory
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent
from agent_tui.feature import demo_option
from agent_tui.features.plain.agent_thread import AgentThread
from agent_tui.features.plain.front import PlainFront
from agent_tui.features.plain.keyboard import (
    Interrupts,
    Keyboard,
    TerminalInput,
    TypedMessage,
    Woken,
    keep_typed_lines,
    terminal_lines,
)
from agent_tui.features.plain.narrator import Narrator
from agent_tui.features.plain.questions import Asker
from agent_tui.features.plain.voice import LineWriter, Progress
from agent_tui.safe_text import printable_line

ValueT = TypeVar("ValueT")

_WAYS_TO_A_MODEL = (
    "No model chosen yet. Ways to get one:",
    "/model lists the models available now, and takes any model name.",
    "Set an API key before you start, such as ANTHROPIC_API_KEY or OPENAI_API_KEY.",
    "agent-tui --plain --base-url URL -m NAME connects to your own server.",
    "agent-tui --plain --local downloads a small model to run on this machine.",
)
_LEAVE_HINT = "Press Control C again to quit, or keep typing."


@dataclass(frozen=True, slots=True)
class PlainOptions:
    """Everything a plain conversation needs.

    Args:
        runtime: The conversation; closed at the end.
        services: The other services for commands.
        warm: Prepares the provider and the present model in the background.
        close: Stops the provider, once the conversation is closed.
        history_file: The file of sent messages, for the up key.
        notices: Lines to write at the start.
        first_prompt: Sent at once, as if it had been typed.
        resume: A session to open at the start, by path, id or name.
        keeps_model: Keep the runtime's model instead of the opened session's.
        lists_sessions: Begin with the list of sessions (``-r`` without an id).
        typed_before: What earlier questions held, as typed; sent first.
    """

    runtime: AgentRuntime
    services: CommandServices
    warm: Callable[[], Awaitable[None]]
    close: Callable[[], Awaitable[None]]
    history_file: Path
    notices: tuple[str, ...] = ()
    first_prompt: str = ""
    resume: str = ""
    keeps_model: bool = False
    lists_sessions: bool = False
    typed_before: tuple[str, ...] = ()


def run_plain(options: PlainOptions, stdin: TextIO = sys.stdin, stdout: TextIO = sys.stdout) -> int:
    """Run the conversation until the user leaves; returns the exit code."""
    lines = LineWriter(stdout, lambda: options.runtime.conversation.services.secrets)
    with AgentThread() as agent:
        front: PlainFront

        def stop() -> None:
            if not front.interrupt():
                agent.stop_waiting()

        history = PromptHistory(options.history_file)
        history.load()
        source = terminal_lines(history.single_lines, os.environ, stdin, stdout)
        interrupts = Interrupts(stop, source.is_begun)
        front = PlainFront(
            runtime=options.runtime,
            services=options.services,
            registry=load_commands(options.services.plugins),
            agent=agent,
            lines=lines,
            narrator=Narrator(lines, Progress(time.monotonic)),
            asker=Asker(
                lines,
                Keyboard(source, interrupts.reading, TerminalInput(stdin), [*options.typed_before]),
            ),
            warm=partial(_warm, agent, options),
        )
        with interrupts.handle_signals(), keep_typed_lines(stdin):
            try:
                PlainSession(front, options, history, interrupts.wake).run()
            finally:
                left = agent.wait(options.runtime.aclose())
                lines.lines(notice.text for notice in left)
                agent.wait(options.close())
    return 0


def _warm(agent: AgentThread, options: PlainOptions) -> Future[None]:
    async def work() -> None:
        await options.warm()

    return agent.begin(work())


class PlainSession:
    """Reads what the user types and handles it in order.

    Args:
        front: The conversation, and the means to show and ask.
        options: Everything it needs.
        history: The messages that were sent.
        wake: Interrupts the reading of a message with `Woken`.
    """

    def __init__(
        self,
        front: PlainFront,
        options: PlainOptions,
        history: PromptHistory,
        wake: Callable[[], object] = lambda: None,
    ) -> None:
        self._front = front
        self._wake = wake
        self._runtime = front.runtime
        self._options = options
        self._history = history
        self._finders = CommandFinders(front.registry, front.runtime, front.services, front.say)
        self._is_leaving = False
        self._found: Future[tuple[AgentEvent, ...]] | None = None

    def run(self) -> None:
        """Run from the greeting to the hint for resuming."""
        front, options = self._front, self._options
        self._greet()
        self._guard(self._open)
        if options.first_prompt:
            self._guard(
                partial(self._take, TypedMessage(options.first_prompt), is_on_terminal=False)
            )
        while not front.leaves:
            self._guard(self._turn)
        front.lines.lines(self._way_back())

    def _greet(self) -> None:
        front, runtime = self._front, self._runtime
        conversation = runtime.conversation
        model = conversation.model.name or "none yet"
        front.say(f"agent-tui in {conversation.cwd}. Model: {model}.")
        front.lines.lines(self._options.notices)
        if not runtime.conversation.model.name:
            front.lines.lines(_WAYS_TO_A_MODEL)
            front.lines.lines(f"{way}: {about}" for way, about in _demos())
        if note := trial_note(conversation.model_info):
            front.lines.lines((note, "Try:"))
            steps = first_steps(conversation.model_info, _demos())
            front.lines.lines(f"{step}: {about}" for step, about in steps)
        front.say("Type a message, or /help. Control D quits.")
        front.warm_up()

    def _open(self) -> None:
        front, options = self._front, self._options
        self._runtime.listen_to_jobs(self._see_job, can_wake=True)
        if options.resume:
            self._wait(self._resume(options.resume))
        elif options.lists_sessions:
            self._take(TypedMessage("/resume"))
        elif not self._runtime.conversation.model.name:
            front.say("Looking for available models.")
            if front.agent.wait(front.services.models.list_models()):
                self._take(TypedMessage("/model"))
            else:
                front.say("None found: no API key is set and no local model server responds.")
        front.show_events(front.agent.wait(self._runtime.refresh_usage()))
        self._wait(self._begin_servers())
        if options.resume and not options.first_prompt:
            self._wait(continue_wait(front))
        self._found = front.agent.begin(BetweenTurns(front).look())

    async def _begin_servers(self) -> None:
        """Start the allowed servers, pass on their messages, and ask about the others."""
        servers = self._front.services.servers
        servers.listen(self._front.say)
        servers.let_answer(form_filler(self._front))
        self._runtime.let_answer(question_filler(self._front))
        await ask_about_started(self._front)

    async def _resume(self, ref: str) -> None:
        if await open_session(self._front, ref, keep_model=self._options.keeps_model):
            await ask_about_workspace(self._front)

    def _see_job(self, event: AgentEvent) -> None:
        self._front.show_events((event,))
        self._wake()

    async def _tell_news(self) -> None:
        """Run the turns that the model wants for news."""
        while (turn := self._runtime.turn_for_news()) is not None:
            await self._front.run(turn)

    def _turn(self) -> None:
        front = self._front
        front.tell_of_warming()
        self._tell_found()
        self._wait(self._tell_news())
        if price := self._runtime.cold_price():
            front.say(price.sentence)
        try:
            typed = front.asker.keyboard.next_message(
                f"{front.runtime.conversation.usage.label} > "
            )
        except Woken:
            front.lines.line()
            return
        except EOFError:
            front.lines.line()
            front.leaves = True
            return
        except KeyboardInterrupt:
            front.lines.line()
            front.leaves, self._is_leaving = self._is_leaving, True
            if not front.leaves:
                front.say(_LEAVE_HINT)
            return
        self._is_leaving = False
        if typed.is_pasted and typed.is_held:
            more = count_text(typed.text.count("\n"), "more line")
            front.say(f"Pasted, with {more}: sent as one message.")
        if typed.text:
            self._remember(typed.text)
            self._take(typed, is_on_terminal=not typed.is_held)

    def _tell_found(self) -> None:
        """Say once what features found, at the first prompt after that."""
        if (found := self._found) is not None and found.done():
            self._found = None
            if not (found.cancelled() or found.exception()):
                self._front.show_events(found.result())

    def _take(self, typed: TypedMessage, *, is_on_terminal: bool = True) -> None:
        text, front = typed.text, self._front
        called = None if typed.is_pasted else self._wait(self._read_command(text))
        if isinstance(called, CalledCommand):
            self._wait(called.run(front))
        elif isinstance(called, UnknownCommand):
            front.say(called.why)
        elif text.startswith("!") and not typed.is_pasted:
            command = text.lstrip("!").strip()
            if not command:
                front.say("Type a command after the exclamation mark.")
                return
            in_context = not text.startswith("!!")
            self._wait(front.run(self._runtime.run_bash(command, in_context=in_context)))
        elif self._wait(has_model(front)):
            is_pasted = typed.is_pasted
            self._wait(front.send_read(text, is_shown=is_on_terminal, is_pasted=is_pasted))

    async def _read_command(self, text: str) -> CalledCommand | UnknownCommand | None:
        if text.startswith("/"):
            await self._finders.refresh()
        return self._front.registry.read(text)

    def _wait(self, work: Coroutine[None, None, ValueT]) -> ValueT:
        """Run `work`, and report on it meanwhile if it takes long."""
        return self._front.agent.wait(work, self._front.narrator.tick)

    def _guard(self, work: Callable[[], None]) -> None:
        """Run `work`; an error becomes one line, and the conversation continues."""
        try:
            work()
        except AgentTuiError as error:
            self._front.say(str(error), "error")
        except KeyboardInterrupt:
            self._front.say("Stopped.")

    def _remember(self, text: str) -> None:
        try:
            self._history.add(Draft(text))
        except OSError as error:
            self._front.say(f"Cannot write {self._options.history_file}: {error.strerror}.")

    def _way_back(self) -> list[str]:
        log = self._runtime.conversation.log
        if log.path is None or not log.entries:
            return []
        is_found_by_id = log.path.is_relative_to(self._runtime.services.store.root)
        short_id = log.header.id[:8]
        ref = short_id if is_found_by_id else shlex.quote(str(log.path))
        name = f" {printable_line(log.name)}" if log.name else ""
        return [f"Session {short_id}{name} is saved. Resume it with: agent-tui --plain -r {ref}"]


def _demos() -> tuple[tuple[str, str], ...]:
    """How a demo is started line by line, and what it shows."""
    option, demo = demo_option(), own_demo()
    return ((f"agent-tui --plain --{option.name}", demo.about),) if option and demo else ()
