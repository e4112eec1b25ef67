"""Commands that the user gives: with ``!`` (into the context), ``!!`` (outside it), as checks."""

import asyncio
import uuid
from dataclasses import dataclass, replace

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.turn.command_network import CommandNetwork
from agent_tui.agent.turn.file_keeper import FileKeeper
from agent_tui.agent.turn.so_far import OutputSoFar
from agent_tui.errors import ToolError
from agent_tui.events import BashFinished, BashStarted, Notice, ToolOutputDelta
from agent_tui.messages import BashExecutionMessage, FileTouches, JsonObject, ToolDetails
from agent_tui.safe_paths import show_name
from agent_tui.tools.base import CallInterrupted, EmitOutput, Intent, ToolContext, ToolOutput
from agent_tui.tools.shorten import OutputLimits


@dataclass(frozen=True, slots=True)
class CheckRun:
    """How a command runs that checks the model's work; only its failures enter the context.

    Args:
        is_inside: Whether it runs inside the sandbox, as the model's own commands do.
        timeout_s: Seconds after which it is stopped.
        network: Decides on connections that it wants from inside the sandbox.
    """

    is_inside: bool
    timeout_s: float
    network: CommandNetwork


async def run_user_command(
    conversation: Conversation,
    command: str,
    in_context: bool,
    emit: Emit,
    check: CheckRun | None = None,
) -> BashExecutionMessage:
    """Run `command` with the bash tool and record it; cancelling records its output so far.

    Args:
        conversation: Where it runs and is recorded.
        command: The command.
        in_context: Whether the model sees it.
        emit: Takes the events.
        check: How it runs as a check; None for a command of the user's own.
    """
    call_id = uuid.uuid4().hex
    so_far = OutputSoFar(
        lambda text, skipped=0: emit(ToolOutputDelta(call_id, text, skipped)),
        conversation.output_limits(),
    )

    def record(output: str, details: ToolDetails) -> BashExecutionMessage:
        cancelled = details.ending == "cancelled"
        is_seen = in_context and (check is None or not (cancelled or details.exit_code == 0))
        message = BashExecutionMessage(
            command=command,
            output=output,
            exit_code=details.exit_code,
            cancelled=cancelled,
            truncated=details.truncated,
            full_output_path=details.full_output_path,
            printed_lines=details.printed_lines,
            exclude_from_context=not is_seen,
            files=None if details.files == FileTouches() else details.files,
            jobs=details.jobs or None,
        )
        if not is_seen:
            conversation.jobs.hide(details.jobs)
        entry = conversation.append(message)
        stored = entry.message
        assert isinstance(stored, BashExecutionMessage)
        emit(BashFinished(entry.id, call_id, stored))
        return stored

    is_inside = check is not None and check.is_inside
    context = _context(conversation, so_far, so_far.limits, is_inside=is_inside)
    if check is None:
        context.jobs = conversation.jobs
    else:
        context.waited_s = lambda: check.network.waited_s
    emit(BashStarted(call_id, command))
    so_far.began_s = conversation.services.clock()
    try:
        output = await _run(conversation, command, context, check)
        for held in output.held:
            emit(Notice("warning", held.outcome(show_name(str(held.path)))))
    except ToolError as error:
        recorded = record(str(error), ToolDetails())
    except asyncio.CancelledError as cancelled:
        if isinstance(cancelled, CallInterrupted):
            so_far.result = cancelled.output
        output = so_far.interrupted(conversation.services.clock())
        record(output.for_model, output.for_person)
        raise
    else:
        recorded = record(output.for_model, output.for_person)
    for event in await conversation.refresh_usage():
        emit(event)
    return recorded


def check_intent(conversation: Conversation, command: str) -> Intent:
    """What `command` would do as a check inside the sandbox, for the permission engine."""
    limits = conversation.output_limits()
    context = _context(conversation, lambda _text, _skipped=0: None, limits, is_inside=True)
    toolbox = conversation.services.toolbox
    return toolbox.prepare("bash", {"command": command}, context).intent


async def _run(
    conversation: Conversation, command: str, context: ToolContext, check: CheckRun | None
) -> ToolOutput:
    """The output of `command`, with the files that it changed."""
    timeout: JsonObject = {} if check is None else {"timeout": check.timeout_s}
    arguments: JsonObject = {"command": command, **timeout}
    prepared = conversation.services.toolbox.prepare("bash", arguments, context)
    async with FileKeeper(conversation, context.environ).watch(prepared.intent):
        run = prepared.run
        output = await (run() if check is None else check.network.run_command(run))
    files = await output.find_changes() if output.find_changes else FileTouches()
    return replace(output, for_person=output.for_person.model_copy(update={"files": files}))


def _context(
    conversation: Conversation, emit: EmitOutput, limits: OutputLimits, *, is_inside: bool
) -> ToolContext:
    services = conversation.services
    return ToolContext(
        cwd=conversation.cwd,
        emit=emit,
        files=conversation.files,
        output_dir=services.output_dir,
        environ=services.environ if is_inside else services.person_environ,
        todos=conversation.todos,
        default_timeout_s=services.settings.bash_timeout_s,
        limits=limits,
        is_persons=not is_inside,
        leaves_jobs=False,
        may_show=conversation.permissions.may_show,
        secrets=services.secrets,
    )
