"""A conversation by lines, from the first notice to the way back."""

import os
import shlex
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TextIO

from agent_tui.agent.prompt_shelf import PromptShelf
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.errors import AgentTuiError
from agent_tui.plain.agent_thread import AgentThread
from agent_tui.plain.command_table import find_command, split_command, unknown_command
from agent_tui.plain.commands import all_commands
from agent_tui.plain.counted import counted
from agent_tui.plain.history import add_line, earlier_lines
from agent_tui.plain.host import PlainHost
from agent_tui.plain.interrupts import Interrupts
from agent_tui.plain.keyboard import Keyboard, TerminalInput, TypedMessage, terminal_lines
from agent_tui.plain.lines import LineWriter
from agent_tui.plain.narrator import Narrator
from agent_tui.plain.options import PlainOptions
from agent_tui.plain.progress import Progress
from agent_tui.plain.questions import Asker
from agent_tui.plain.session_commands import open_session
from agent_tui.plain.talk_commands import offer_models
from agent_tui.sessions.listing.summary import one_line

_WAYS_TO_A_MODEL = (
    "No model is chosen yet. The ways to one:",
    "/model lists those that can be used at once, and takes the name of any.",
    "Set a key before the start, such as ANTHROPIC_API_KEY or OPENAI_API_KEY.",
    "agent-tui --plain --base-url URL -m NAME talks to a server of your own.",
    "agent-tui --plain --local fetches a small model for this machine.",
    "agent-tui --plain --demo is a tour without any model.",
)
_LEAVE_HINT = "Press Control C again to leave, or go on typing."


def run_plain(options: PlainOptions, stdin: TextIO = sys.stdin, stdout: TextIO = sys.stdout) -> int:
    """Talk until the person leaves; returns the exit code."""
    lines = LineWriter(stdout, lambda: options.runtime.conversation.services.secrets)
    with AgentThread() as agent:
        host: PlainHost
        interrupts = Interrupts(lambda: host.interrupt())
        earlier = earlier_lines(options.history_file)
        source = terminal_lines(earlier, os.environ, stdin, stdout)
        host = PlainHost(
            runtime=options.runtime,
            models=options.models,
            agent=agent,
            lines=lines,
            narrator=Narrator(
                lines, Progress(time.monotonic), partial(_compacts_alone, options.runtime)
            ),
            asker=Asker(lines, Keyboard(source, interrupts.reading, TerminalInput(stdin))),
            warm=partial(_warm, agent, options),
        )
        with interrupts.caught():
            try:
                Conversation(host, options).run()
            finally:
                agent.wait(options.runtime.aclose())
                agent.wait(options.close())
    return 0


def _warm(agent: AgentThread, options: PlainOptions) -> Future[None]:
    async def work() -> None:
        await options.warm()

    return agent.begin(work())


def _compacts_alone(runtime: AgentRuntime) -> bool:
    """Whether room is made without being asked for."""
    conversation = runtime.conversation
    return conversation.settings.auto and not conversation.breaker.is_open


class Conversation:
    """Reads what the person types and does it, one after the other."""

    def __init__(self, host: PlainHost, options: PlainOptions) -> None:
        self._host = host
        self._runtime = host.runtime
        self._options = options
        self._commands = all_commands()
        taken = {name for each in self._commands for name in (each.name, *each.aliases)}
        self._shelf = PromptShelf(
            self._runtime.services.user_config_dir, self._runtime.services.trust, taken
        )
        self._is_leaving = False

    def run(self) -> None:
        """From the greeting to the way back."""
        host, options = self._host, self._options
        self._greet()
        self._guarded(self._open)
        if options.first_prompt:
            self._guarded(partial(self._send, options.first_prompt))
        while not host.leaves:
            self._guarded(self._turn)
        host.lines.lines(self._way_back())

    def _greet(self) -> None:
        host, runtime = self._host, self._runtime
        conversation = runtime.conversation
        model = conversation.model.name or "none yet"
        host.say(f"agent-tui in {conversation.cwd}. Model: {model}.")
        host.lines.lines(self._options.notices)
        if not runtime.conversation.model.name:
            host.lines.lines(_WAYS_TO_A_MODEL)
        host.say("Type a message, or /help. Control D leaves.")
        host.begin_warming()

    def _open(self) -> None:
        host, options = self._host, self._options
        if options.resume:
            open_session(host, options.resume, keep_model=options.keeps_model)
        elif options.lists_sessions:
            self._command("resume", "")
        elif not self._runtime.conversation.model.name:
            offer_models(host)
        host.refresh_usage()

    def _turn(self) -> None:
        host = self._host
        host.tell_of_warming()
        try:
            typed = host.asker.keyboard.message(f"{host.runtime.conversation.usage.label} > ")
        except EOFError:
            host.lines.line()
            host.leaves = True
            return
        except KeyboardInterrupt:
            host.lines.line()
            host.leaves, self._is_leaving = self._is_leaving, True
            if not host.leaves:
                host.say(_LEAVE_HINT)
            return
        self._is_leaving = False
        if typed.is_pasted:
            more = counted(typed.text.count("\n"), "more line")
            host.say(f"Pasted, with {more}: sent as one message.")
        if typed.text:
            self._remember(typed.text)
            self._take(typed)

    def _take(self, typed: TypedMessage) -> None:
        text = typed.text
        name, argument = split_command(text)
        if typed.is_pasted:
            self._send(text, typed=text)
        elif name:
            self._command(name, argument)
        elif text.startswith("!"):
            command = text.lstrip("!").strip()
            in_context = not text.startswith("!!")
            if not command:
                self._host.say("Write a command after the exclamation mark.")
                return
            self._host.run(partial(self._runtime.run_bash, command, in_context=in_context))
        else:
            self._send(text, typed=text)

    def _command(self, name: str, argument: str) -> None:
        found = find_command(name, self._commands)
        if found is not None:
            found.run(self._host, argument)
        elif (
            made := self._shelf.message(name, argument, self._runtime.conversation.cwd)
        ) is not None:
            self._send(made)
        else:
            self._host.say(unknown_command(name, self._commands))

    def _send(self, text: str, *, typed: str = "") -> None:
        """Send a message; `typed` is what of it stands on the terminal already."""
        if self._host.has_model():
            self._host.run(partial(self._runtime.submit, text), typed=typed)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do `work`; what goes wrong in it is one line, and the talk goes on."""
        try:
            work()
        except AgentTuiError as error:
            self._host.say(f"Error: {error}")
        except KeyboardInterrupt:
            self._host.say("Stopped.")

    def _remember(self, text: str) -> None:
        try:
            add_line(self._options.history_file, text)
        except OSError as error:
            self._host.say(f"{self._options.history_file} cannot be written: {error.strerror}.")

    def _way_back(self) -> list[str]:
        log = self._runtime.conversation.log
        if log.path is None or not log.entries:
            return []
        is_found_by_id = log.path.is_relative_to(self._runtime.services.store.root)
        short_id = log.header.id[:8]
        ref = short_id if is_found_by_id else shlex.quote(str(log.path))
        name = f" {one_line(log.name)}" if log.name else ""
        return [f"Session {short_id}{name} is kept. Go on with: agent-tui --plain -r {ref}"]
