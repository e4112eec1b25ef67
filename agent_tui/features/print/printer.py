"""One prompt or command without a screen: text, one JSON object, or JSON lines as events happen."""

import json
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from shutil import get_terminal_size
from time import monotonic
from typing import Literal, Protocol, TextIO, TypeAlias

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.session.spending import known_cost_usd
from agent_tui.agent.turn.command_network import NETWORK
from agent_tui.commands.command_output import (
    command_output,
    excerpt,
    excerpt_lines,
    result_text,
)
from agent_tui.commands.core.found_commands import CommandFinders
from agent_tui.commands.core.front import CommandServices, FrontHelp, Level, UnansweredFront
from agent_tui.commands.core.registry import (
    CalledCommand,
    CommandRegistry,
    UnknownCommand,
    load_commands,
)
from agent_tui.commands.event_lines import RetryLines, event_line, plan_steps, retry_line
from agent_tui.commands.program import command_sections
from agent_tui.errors import AgentTuiError, UsageError
from agent_tui.events import (
    AgentEvent,
    BashFinished,
    BashStarted,
    BranchSummaryProgress,
    CompactionFailed,
    CompactionFinished,
    CompactionProgress,
    CompactionStarted,
    CutReplyDropped,
    FeatureEvent,
    JobEnded,
    LimitWaitEnded,
    LimitWaitStarted,
    Notice,
    PlanHandedOver,
    ReplyAwaited,
    ReplyFinished,
    RetryScheduled,
    ScopeProgress,
    TextPinned,
    TodosChanged,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnRecorded,
)
from agent_tui.features.print.answer_schema import (
    MOST_REPAIRS,
    NO_TERMS,
    AnswerMisfit,
    AnswerSchema,
    RunTerms,
)
from agent_tui.features.print.result import (
    ContextResult,
    RefusedCall,
    RunOutcome,
    RunResult,
    TokensResult,
)
from agent_tui.messages import ImageContent, Job, JsonObject, Todo, ToolResultMessage
from agent_tui.safe_text import printable_line, safe_json, strip_control_characters
from agent_tui.secret_text import mask_values
from agent_tui.tools.processes.shell import extract_printed

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]


class ExitCode(IntEnum):
    """The exit codes of the program."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    LIMIT = 3
    REFUSED = 4
    TIMEOUT = 124
    INTERRUPTED = 130


def join_piped(written: str, piped: str) -> tuple[str, tuple[str, ...] | None]:
    """A message with the piped input behind it, and its typed parts as `submit` takes them."""
    parts = tuple(filter(None, (written, piped)))
    return "\n\n".join(parts), parts[: bool(written)] if piped else None


async def print_turn(
    runtime: AgentRuntime,
    prompt: str | None,
    output_format: OutputFormat,
    images: tuple[ImageContent, ...] = (),
    out: TextIO = sys.stdout,
    err: TextIO = sys.stderr,
    *,
    typed: tuple[str, ...] | None = None,
    terms: RunTerms = NO_TERMS,
) -> ExitCode:
    """Run one turn and print it; with a schema, also the turns that correct its answer.

    Without a prompt, the last turn is continued. `typed` is as for `AgentRuntime.submit`.

    ``text``: the last reply's text on `out`, errors and actions on `err`.
    ``json``: one object at the end. ``stream-json``: one object per event, as it happens.
    Background commands are stopped then, unless the conversation continues.

    Returns:
        `ExitCode.DONE` if the model finished, `ExitCode.LIMIT` or `ExitCode.TIMEOUT` if it reached
        a limit, `ExitCode.REFUSED` if a call was refused and the terms ask for that,
        `ExitCode.FAILED` otherwise.
    """
    schema = terms.schema
    watcher = _WATCHERS[output_format](runtime, out, err, terms)
    runtime.listen_to_jobs(watcher.see)
    asked = schema.ask(prompt) if schema and prompt is not None else prompt
    await _run(runtime, asked, images, watcher, typed)
    if schema is not None:
        await _mend_answer(runtime, schema, watcher)
    if not terms.goes_on:
        watcher.stopped = await runtime.end_jobs()
    return watcher.close()


async def _run(
    runtime: AgentRuntime,
    prompt: str | None,
    images: tuple[ImageContent, ...],
    watcher: "_Watcher",
    typed: tuple[str, ...] | None = None,
) -> None:
    turn = runtime.continue_turn() if prompt is None else runtime.submit(prompt, images, typed)
    async with aclosing(turn) as events:
        async for event in events:
            watcher.see(event)


async def _mend_answer(runtime: AgentRuntime, schema: AnswerSchema, watcher: "_Watcher") -> None:
    """Let the model correct an answer that does not match `schema`; the value is the result."""
    for repairs in range(MOST_REPAIRS + 1):
        if watcher.finished.outcome != "done":
            return
        try:
            value = schema.value(watcher.text)
        except AnswerMisfit as misfit:
            if repairs == MOST_REPAIRS:
                why = f"The answer does not match --json-schema: {misfit}"
                watcher.finished = TurnFinished("error", why)
            else:
                await _run(runtime, schema.repair(misfit), (), watcher)
        else:
            watcher.structured = value
            watcher.text = json.dumps(value, ensure_ascii=False)
            return


async def print_command(
    runtime: AgentRuntime,
    services: CommandServices,
    line: str,
    output_format: OutputFormat,
    *,
    attached: str = "",
    out: TextIO = sys.stdout,
    err: TextIO = sys.stderr,
    terms: RunTerms = NO_TERMS,
) -> ExitCode:
    """Run the slash command in `line` and print its output, or run `line` as a message.

    Args:
        runtime: The conversation.
        services: The other services for commands.
        line: The text after ``-p``.
        output_format: As for `print_turn`.
        attached: Piped input; added to the message.
        out: Receives the result.
        err: Receives everything else.
        terms: As for `print_turn`.

    Returns:
        `ExitCode.USAGE` for an unknown command, or one that needs a user or a screen; else as
        `print_turn`. A command that was aborted is interrupted, whatever it reports.
    """
    aborts = runtime.aborts
    registry = load_commands(services.plugins)
    if ":" in line.partition(" ")[0]:  # it may be a server's prompt
        await services.servers.take_up(runtime.conversation.cwd, lambda _line: None)
    await CommandFinders(registry, runtime, services).refresh()
    called = registry.read(line)
    if called is None:
        text, typed = join_piped(line, attached)
        return await print_turn(
            runtime, text, output_format, out=out, err=err, typed=typed, terms=terms
        )
    watcher = _WATCHERS[output_format](runtime, out, err, terms)
    watcher.finished = TurnFinished("done")
    runtime.listen_to_jobs(watcher.see)
    front = HeadlessFront(runtime, services, registry, watcher, attached)
    why = called.why if isinstance(called, UnknownCommand) else called.refusal(front)
    if why:
        front.say(why, "error")
    else:
        assert isinstance(called, CalledCommand)
        try:
            await called.run(front)
        except UsageError as error:
            why = str(error)
            front.say(why, "error")
        except AgentTuiError as error:
            front.say(str(error), "error")
    if front.attached and not front.problem:
        watcher.tell(_PIPED, "warning")
    if front.problem and watcher.finished.outcome == "done":
        ended = "aborted" if runtime.aborts > aborts else "error"
        watcher.finished = TurnFinished(ended, front.problem)
    if not terms.goes_on:
        watcher.stopped = await runtime.end_jobs()
    watcher.is_misused = bool(why)
    return watcher.close()


def event_json(event: AgentEvent) -> JsonObject:
    """An event as JSON: ``type`` is its class name, fields as in `agent_tui.events`."""
    fields: JsonObject = to_jsonable_python(event, by_alias=True, exclude_none=True)
    return {"type": type(event).__name__, **fields}


def print_event(event: AgentEvent, secrets: Sequence[str], out: TextIO) -> None:
    """Print an event on one line, as ``stream-json`` does."""
    _print_json(event_json(event), secrets, out)


def _print_json(value: JsonObject, secrets: Sequence[str], out: TextIO) -> None:
    """Print `value` on one line, with keys masked and nothing that steers a terminal."""
    line = safe_json(json.dumps(value, ensure_ascii=False))
    print(mask_values(line, secrets), file=out, flush=True)


_PIPED = "Piped input not used: this command takes none. Put it into a file and name the file."
_GONE_ON_FROM = ("length", "error")
"""Stop reasons after which the next reply continues the same text."""

_PROGRESS_EVERY_S = 60.0
_SHOWN_REFUSALS = 3


def _describe_refusals(refused: Sequence[RefusedCall]) -> str:
    """The refused calls and the reasons, as the last line beside the result."""
    shown = [
        f"{printable_line(call.title)} ({printable_line(call.reason)})"
        for call in refused[:_SHOWN_REFUSALS]
    ]
    if len(refused) > _SHOWN_REFUSALS:
        shown.append(f"and {len(refused) - _SHOWN_REFUSALS} more")
    many = "1 tool call" if len(refused) == 1 else f"{len(refused)} tool calls"
    options = "--allow, --allow-net and --permission-mode"
    return f"agent-tui: {many} refused: {'; '.join(shown)}. See {options}."


class _Watcher:
    """Handles every event of the turn; `close` prints the rest and returns the exit code."""

    def __init__(
        self,
        runtime: AgentRuntime,
        out: TextIO,
        err: TextIO,
        terms: RunTerms,
    ) -> None:
        self.runtime = runtime
        self.out = out
        self.err = err
        self.terms = terms
        self.refused: list[RefusedCall] = []
        self._titles: dict[str, str] = {}
        self._quiet_since = monotonic()
        self.finished = TurnFinished("error", "The turn ended without a result.")
        self.text = ""
        self.is_misused = False
        self.stopped: Sequence[Job] = ()
        self.structured: JsonValue = None
        self._parts: list[tuple[str, str]] = []

    @property
    def secrets(self) -> Sequence[str]:
        """The keys that must not appear in any output."""
        return self.runtime.conversation.services.secrets

    def see(self, event: AgentEvent) -> None:
        """Note the facts that decide the outcome."""
        match event:
            case TurnFinished():
                self.finished = event
            case ReplyFinished() if event.message.text:
                self._add_reply(event)
            case CutReplyDropped(entry_ids):
                self._parts = [part for part in self._parts if part[0] not in entry_ids]
            case PlanHandedOver(plan=plan):
                self.text = plan
            case ToolStarted(call_id, title=title):
                self._titles[call_id] = title
            case ToolFinished():
                self._note_refusal(event)
            case ReplyAwaited():
                self.say(event_line(event))
            case CompactionStarted():
                self._quiet_since = monotonic()
            case CompactionProgress(phase) | ScopeProgress(phase) | BranchSummaryProgress(phase):
                self._tell_progress(phase)
            case _:
                pass

    def _add_reply(self, event: ReplyFinished) -> None:
        self._parts.append((event.entry_id, event.message.text))
        self.text = "".join(text for _, text in self._parts)
        if event.message.stop_reason not in _GONE_ON_FROM:
            self._parts.clear()

    def _note_refusal(self, event: ToolFinished) -> None:
        title = self._titles.get(event.call_id, event.message.tool_name)
        if reason := event.message.tool_details.refusal:
            self.refused.append(RefusedCall(event.message.tool_name, title, reason))
        for host, why in event.message.tool_details.refused_hosts.items():
            self.refused.append(RefusedCall(NETWORK, f"connect to {host}", why))

    def _tell_progress(self, phase: str) -> None:
        """Report once a minute that a summary is being written."""
        if monotonic() - self._quiet_since >= _PROGRESS_EVERY_S:
            self._quiet_since = monotonic()
            self.say(f"Compacting: {phase}.")

    def say(self, text: str) -> None:
        """Print a text beside the result."""
        print(self.harmless(text), file=self.err, flush=True)

    def harmless(self, text: str) -> str:
        """`text` without what steers a terminal and without keys: others may read this output."""
        return mask_values(strip_control_characters(text), self.secrets)

    def tell(self, text: str, level: Level) -> None:
        """Note a command's text for the result."""
        if level == "info":
            self.text = "\n".join(filter(None, (self.text, text)))

    @property
    def outcome(self) -> RunOutcome:
        """How the run ended; an aborted run may have reached its time limit."""
        outcome = self.finished.outcome
        return "timeout" if outcome == "aborted" and self.terms.is_out_of_time else outcome

    @property
    def error(self) -> str:
        """Why the run is not done."""
        limit = self.terms.time_limit
        return limit.words if limit and self.outcome == "timeout" else self.finished.error

    def close(self) -> ExitCode:
        """Print the end; returns the exit code."""
        if self.refused:
            self.say(_describe_refusals(self.refused))
        if self.is_misused:
            return ExitCode.USAGE
        match self.outcome:
            case "done" if self.refused and self.terms.fails_on_refusal:
                return ExitCode.REFUSED
            case "done":
                return ExitCode.DONE
            case "timeout":
                return ExitCode.TIMEOUT
            case "aborted":
                return ExitCode.INTERRUPTED
            case "limit":
                return ExitCode.LIMIT
            case "error" | "length":
                return ExitCode.FAILED


class _TextWatcher(_Watcher):
    """Prints for people: texts of models and tools cannot steer the terminal."""

    def __init__(self, runtime: AgentRuntime, out: TextIO, err: TextIO, terms: RunTerms) -> None:
        super().__init__(runtime, out, err, terms)
        self._told = ""
        self._plan: tuple[Todo, ...] = ()
        self._newest_call = ""
        self._retries = RetryLines()
        self._passing = ""

    def see(self, event: AgentEvent) -> None:
        super().see(event)
        match event:
            case ToolStarted(call_id, title=title):
                self._newest_call = call_id
                self.say(f"* {printable_line(title)}")
            case ToolFinished(call_id=call_id, message=message):
                self._tell_result(call_id, message)
            case BashStarted() | BashFinished():
                self._tell_check(event)
            case TodosChanged(todos):
                if [todo.text for todo in todos] != [todo.text for todo in self._plan]:
                    self._tell_lines(plan_steps(todos))
                self._plan = todos
            case CompactionFailed(message):
                self._told = message
                self.say(message)
            case RetryScheduled():
                self._tell_passing(event)
            case Notice() | LimitWaitStarted() | LimitWaitEnded():
                self.say(event_line(event))
            case FeatureEvent() | TextPinned() | JobEnded() | CompactionFinished() | TurnRecorded():
                self._tell_step(event)
            case _:
                pass

    def _tell_result(self, call_id: str, message: ToolResultMessage) -> None:
        """Print the output of a command, and the error of a call.

        Calls that run at the same time are each named again.
        """
        title = printable_line(self._titles.pop(call_id, ""))
        name = "" if call_id == self._newest_call else f"{title}: "
        mark = "  ! " if message.is_error else "  "
        if (printed := command_output(message)) is not None:
            found = excerpt(printed.text, lines=printed.lines, has_failed=message.is_error)
            if message.is_error or found.hidden or name:
                self.say(f"{mark}{name}{printed.result}")
            self._tell_lines(excerpt_lines(found))
            self._newest_call = ""
        elif message.is_error:
            first_line, _, _ = result_text(message).partition("\n")
            self.say(f"{mark}{name}{printable_line(first_line)}")
            self._newest_call = ""

    def _tell_step(self, event: AgentEvent) -> None:
        if line := event_line(event):
            self.say(f"- {line}")

    def _tell_check(self, event: BashStarted | BashFinished) -> None:
        """Print a check of the goal and, if it failed, its exit code and the end of its output."""
        if isinstance(event, BashStarted):
            self.say(f"* {printable_line(event.command)}")
            return
        message, code = event.message, event.message.exit_code
        if code == 0:
            return
        self.say("  ! no exit code" if code is None else f"  ! exit code {code}")
        text = extract_printed(message.output, f"exit code {code}]")
        found = excerpt(text, lines=message.printed_lines or 0, has_failed=True)
        self._tell_lines(excerpt_lines(found))

    def _tell_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(f"    {line}")

    def tell(self, text: str, level: Level) -> None:
        if level == "info":
            print(self.harmless(text), file=self.out, flush=True)
        else:
            self._told = text
            self.say(f"agent-tui: {text}")

    def close(self) -> ExitCode:
        self._clear_passing()
        if self.text:
            print(self.harmless(self.text), file=self.out, flush=True)
        for job in self.stopped:
            self.say(f"Stopped when the run ended: {printable_line(job.shown)}")
        if self.outcome == "length":
            self.say("The reply was cut off by the model's output limit.")
        elif self.error and self.error != self._told:
            self.say(f"agent-tui: {self.error}")
        return super().close()

    def say(self, text: str) -> None:
        self._clear_passing()
        print(self.harmless(text), file=self.err, flush=True)

    def _tell_passing(self, event: RetryScheduled) -> None:
        """Report a retry; on a terminal, the next line replaces it."""
        if not self.err.isatty():
            self.say(self._retries.line(event))
            return
        self._clear_passing()
        room = get_terminal_size().columns - 1
        line = printable_line(self.harmless(retry_line(event)))
        self._passing = line if len(line) <= room else f"{line[: room - 1]}…"
        print(self._passing, end="", file=self.err, flush=True)

    def _clear_passing(self) -> None:
        if self._passing:
            print("\r\x1b[K", end="", file=self.err, flush=True)
            self._passing = ""


class _JsonWatcher(_Watcher):
    def close(self) -> ExitCode:
        code = super().close()
        _print_json(to_jsonable_python(self.result(code)), self.secrets, self.out)
        return code

    def result(self, code: ExitCode) -> RunResult:
        """The only object of ``json``, and the last of ``stream-json``."""
        conversation = self.runtime.conversation
        log, usage, totals = conversation.log, conversation.usage, conversation.totals
        return RunResult(
            result=self.text,
            outcome=self.outcome,
            error=self.error,
            exit_code=int(code),
            session_id=log.header.id,
            session_path=str(log.path) if log.path else None,
            model=conversation.model.name,
            context=ContextResult(usage.used, usage.window, usage.is_estimate),
            tokens=TokensResult(totals.input_tokens, totals.output_tokens),
            cost_usd=known_cost_usd(conversation),
            stopped_jobs=tuple(job.command for job in self.stopped),
            refused_calls=tuple(self.refused),
            structured_output=self.structured,
        )


class _StreamJsonWatcher(_JsonWatcher):
    def see(self, event: AgentEvent) -> None:
        super().see(event)
        print_event(event, self.secrets, self.out)


_WATCHERS: dict[OutputFormat, Callable[[AgentRuntime, TextIO, TextIO, RunTerms], _Watcher]] = {
    "text": _TextWatcher,
    "json": _JsonWatcher,
    "stream-json": _StreamJsonWatcher,
}


class Printer(Protocol):
    """Prints events, and texts of commands."""

    def see(self, event: AgentEvent) -> None:
        """Print an event."""
        ...

    def tell(self, text: str, level: Level) -> None:
        """Print a text of a command."""
        ...


@dataclass(slots=True)
class HeadlessFront(UnansweredFront):
    """Runs one command; nobody can answer questions.

    `attached` is added to the first message sent, like piped input. `problem` is the last error, or
    empty.
    """

    nobody_answers = "-p cannot ask questions."
    instead = "Add your choice to the command, or start agent-tui without -p."

    runtime: AgentRuntime
    services: CommandServices
    registry: CommandRegistry
    printer: Printer
    attached: str = ""
    problem: str = field(default="", init=False)
    name: str = field(default="-p", init=False)
    screen: None = field(default=None, init=False)
    can_ask: bool = field(default=False, init=False)
    can_pick: bool = field(default=False, init=False)
    is_working: bool = field(default=False, init=False)

    def help(self) -> FrontHelp:
        """The commands that work here."""
        return FrontHelp((), command_sections(self.registry, self))

    def say(self, text: str, level: Level = "info") -> None:
        """Print a text; a warning or an error counts as a failure."""
        if level != "info":
            self.problem = text
        self.printer.tell(text, level)

    def show_events(self, events: Iterable[AgentEvent]) -> None:
        """Print the events that a quick change of the runtime returned."""
        for event in events:
            self.printer.see(event)

    def show_thinking(self, is_shown: bool) -> None:
        """Say that thinking is never printed."""
        self.say("-p does not print thinking.", "warning" if is_shown else "info")

    async def edit_file(self, path: Path) -> bool:
        """Refuse: an editor needs a terminal."""
        raise UsageError(f"-p cannot open an editor for {path}.", "Start agent-tui without -p.")

    def warm_up(self) -> None:
        """Does nothing: the first request prepares the model."""

    async def run(self, events: AsyncGenerator[AgentEvent, None]) -> None:
        """Run an activity to its end and print its events."""
        async with aclosing(events) as stream:
            async for event in stream:
                self.printer.see(event)
                match event:
                    case CompactionFailed(message):
                        self.problem = message
                    case TurnFinished():
                        self.problem = event.error
                    case _:
                        pass

    async def send(self, text: str) -> None:
        """Run a turn to its end."""
        (whole, typed), self.attached = join_piped(text, self.attached), ""
        await self.run(self.runtime.submit(whole, typed=typed))

    def interrupt(self) -> bool:
        """Returns false: nothing runs beside a command."""
        return False

    def leave(self) -> None:
        """Does nothing: the program ends after the command anyway."""
