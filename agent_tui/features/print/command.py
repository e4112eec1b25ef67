"""``agent-tui -p``: runs one prompt and prints the answer."""

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import redirect_stdout, suppress
from functools import partial
from typing import TextIO

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.session.opening import interruption_note
from agent_tui.cli.arguments import Arguments
from agent_tui.cli.compose import Program, command_services, compose
from agent_tui.cli.folders import withheld_notice
from agent_tui.cli.local_option import have_a_local_model
from agent_tui.cli.output import complain
from agent_tui.cli.unread_rules import refuse_unread
from agent_tui.commands.model import no_model_error
from agent_tui.errors import UsageError
from agent_tui.events import Notice
from agent_tui.features.print.answer_schema import AnswerSchema, RunTerms, TimeLimit
from agent_tui.features.print.options import PrintOptions
from agent_tui.features.print.piped_input import GivenPrompt, read_prompt
from agent_tui.features.print.printer import (
    ExitCode,
    OutputFormat,
    join_piped,
    print_command,
    print_turn,
)
from agent_tui.features.print.stream import MessageStream

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that stop the run; one that is ignored (as under ``nohup``) stays ignored."""

_STOP_AGAIN_S = 0.2
_STOP_WITHIN_S = 10.0
"""Seconds after a signal or the time limit for recording results and ending processes."""

_CONTINUES = "The last turn was interrupted. It continues now."


def run_print(arguments: Arguments) -> int:
    """Run one turn without a screen; returns the exit code.

    Raises:
        UsageError: No prompt and no session, no model, no schema, or a session that does not exist.
        ModelFileError: The model for ``--local`` could not be fetched.
    """
    options = PrintOptions.of(arguments)
    words = (options.prompt, arguments.prompt)
    # Outside the event loop, where Ctrl+C could not end a read.
    given = GivenPrompt("", "") if options.reads_messages else read_prompt(words)
    if given.note:
        complain(given.note)
    if options.reads_messages and any(words):
        raise UsageError(
            "--input-format stream-json reads messages from standard input only.",
            "Remove the prompt.",
        )
    has_session = arguments.continues or bool(arguments.resume)
    if not (given.written or given.piped or options.reads_messages or has_session):
        raise UsageError("-p needs a prompt.", 'Give it as text (-p "...") or pipe it in.')
    schema = AnswerSchema.read(options.json_schema) if options.json_schema else None
    if schema is not None and given.written.lstrip().startswith("/"):
        raise UsageError("--json-schema works with prompts, not with commands.", "Remove one.")
    if arguments.is_local and not have_a_local_model():
        return ExitCode.INTERRUPTED
    terms = RunTerms(
        schema=schema,
        time_limit=TimeLimit(options.max_time_s) if options.max_time_s else None,
        fails_on_refusal=options.fails_on_refusal,
    )
    out = sys.stdout
    with redirect_stdout(sys.stderr):  # what tools and plugins print is not the result
        return asyncio.run(_run(arguments, given, terms, out))


async def _run(arguments: Arguments, given: GivenPrompt, terms: RunTerms, out: TextIO) -> int:
    options, written, piped = PrintOptions.of(arguments), given.written, given.piped
    ends_at = _ends_at(terms)
    program = compose(arguments, is_interactive=False)
    warming: asyncio.Task[None] | None = None
    for notice in program.start_notices:
        complain(notice)
    try:
        await _open_session(program, continues=not (written or piped))
        await program.recover()
        refuse_unread(program.runtime.conversation.permissions.book.missing)
        is_command = written.lstrip().startswith("/")
        if not (program.has_model or is_command):
            raise no_model_error()
        runtime = program.runtime
        if not is_command:
            warm = program.models.provider.warm(runtime.conversation.model)
            warming = asyncio.create_task(warm)
            complain(await asyncio.to_thread(_standing, program))
        if notice := withheld_notice(runtime.conversation.withheld_files, runtime.conversation.cwd):
            complain(notice)
        for event in await runtime.refresh_usage():
            if isinstance(event, Notice):
                complain(event.text)
        services = command_services(arguments, program)
        if options.reads_messages:
            stream = MessageStream(runtime, services, terms=terms, out=out)
            _feed(stream)
            return await _until_stopped(stream.run(), stream.stop, terms.time_limit, ends_at)
        output_format = options.output_format
        if is_command:
            printing = print_command(
                runtime, services, written, output_format, attached=piped, out=out, terms=terms
            )
        else:
            printing = _print_turn(runtime, join_piped(written, piped), output_format, terms, out)
        stop = partial(runtime.abort, ends_wait=False)
        return await _until_stopped(printing, stop, terms.time_limit, ends_at)
    finally:
        if warming is not None:
            warming.cancel()
        await _close(program)


async def _close(program: Program) -> None:
    for notice in await program.runtime.aclose():
        complain(notice.text)
    await program.aclose()


async def _print_turn(
    runtime: AgentRuntime,
    given: tuple[str, tuple[str, ...] | None],
    output_format: OutputFormat,
    terms: RunTerms,
    out: TextIO,
) -> ExitCode:
    """Run and print one turn; without a prompt, continue the last one if it is unfinished."""
    prompt, typed = given
    if not (prompt or runtime.is_unfinished):
        complain("Nothing to continue: the last turn is complete.")
        return ExitCode.DONE
    return await print_turn(
        runtime, prompt or None, output_format, typed=typed, out=out, terms=terms
    )


def _standing(program: Program) -> str:
    """The sandbox and network in force, in one line."""
    conversation = program.runtime.conversation
    permissions, cwd = conversation.permissions, conversation.cwd
    sandbox = program.sandbox
    if not sandbox.is_on(cwd):
        why = f" ({problem})" if (problem := sandbox.problem(cwd)) else ""
        return f"mode {permissions.mode}, no sandbox{why}: commands can reach everything you can"
    hosts = ", ".join(permissions.book.hosts) or "none"
    return f"mode {permissions.mode}, commands run in the {sandbox.word(cwd)}, network: {hosts}"


async def _open_session(program: Program, *, continues: bool) -> None:
    """Open the session that is to be continued; `continues`: so is its interrupted turn."""
    if program.resume == "":
        raise UsageError("With -p, -r needs a session id.", "See agent-tui sessions list.")
    if program.resume is None:
        return
    for event in await program.runtime.sessions.open(
        program.resume, keep_model=program.keeps_model
    ):
        if isinstance(event, Notice):
            is_next = continues and event.text == interruption_note(
                program.runtime.conversation.log
            )
            complain(_CONTINUES if is_next else event.text)


def _feed(stream: MessageStream) -> None:
    """Pass the lines of standard input to `stream` as they come; nothing waits for their end."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        # A separate reader: at exit the interpreter waits for a read of `sys.stdin.buffer`.
        with suppress(RuntimeError), open(sys.stdin.fileno(), "rb", closefd=False) as lines:
            for line in lines:  # after the run the loop is closed: RuntimeError
                loop.call_soon_threadsafe(stream.feed, line)
            loop.call_soon_threadsafe(stream.close)

    threading.Thread(target=read, daemon=True).start()


def _ends_at(terms: RunTerms) -> float | None:
    """When the run must end, by the clock of the event loop in seconds; None without a limit."""
    if terms.time_limit is None:
        return None
    return asyncio.get_running_loop().time() + terms.time_limit.seconds


async def _until_stopped(
    printing: Coroutine[None, None, ExitCode],
    stop: Callable[[], None],
    time_limit: TimeLimit | None,
    ends_at: float | None,
) -> ExitCode:
    """Wait for `printing`; a signal that would kill us stops it and keeps the results so far.

    So does the time limit; whatever does not stop in an orderly way is then cancelled.
    """
    loop = asyncio.get_running_loop()
    signalled = asyncio.Event()
    caught = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    for number in caught:
        loop.add_signal_handler(number, signalled.set)
    patience = asyncio.timeout(None)
    stopping = asyncio.create_task(_stop_when_due(stop, signalled, time_limit, ends_at, patience))
    try:
        async with patience:
            return await printing
    except TimeoutError:
        if not patience.expired():
            raise
        if time_limit is None or not time_limit.is_over:
            return ExitCode.INTERRUPTED
        complain(time_limit.words)
        return ExitCode.TIMEOUT
    finally:
        stopping.cancel()
        for number in caught:
            loop.remove_signal_handler(number)


async def _stop_when_due(
    stop: Callable[[], None],
    signalled: asyncio.Event,
    time_limit: TimeLimit | None,
    ends_at: float | None,
    patience: asyncio.Timeout,
) -> None:
    """Call `stop` at a signal or at the end of the time, and limit the `patience` after that."""
    try:
        async with asyncio.timeout_at(ends_at):
            await signalled.wait()
    except TimeoutError:
        if time_limit is not None:
            time_limit.is_over = True
    patience.reschedule(asyncio.get_running_loop().time() + _STOP_WITHIN_S)
    while True:  # a turn that has not begun is stopped once it begins
        stop()
        await asyncio.sleep(_STOP_AGAIN_S)
