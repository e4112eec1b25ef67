"""Commands that the user runs with ``!`` (into the context) and ``!!`` (outside it)."""

import asyncio
import uuid

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.turn.file_keeper import FileKeeper
from agent_tui.errors import ToolError
from agent_tui.events import BashFinished, BashStarted, ToolOutputDelta
from agent_tui.messages import BashExecutionMessage, FileTouches, ToolDetails
from agent_tui.tools.base import ToolContext


async def run_user_command(
    conversation: Conversation,
    command: str,
    in_context: bool,
    emit: Emit,
) -> None:
    """Run `command` with the bash tool and record it; cancelling records its output so far."""
    call_id = uuid.uuid4().hex
    pieces: list[str] = []
    skipped_lines = 0
    limits, services = conversation.output_limits(), conversation.services

    def take_output(text: str, skipped: int = 0) -> None:
        nonlocal skipped_lines
        pieces.append(text)
        skipped_lines += skipped
        emit(ToolOutputDelta(call_id, text, skipped))

    def record(output: str, details: ToolDetails, *, cancelled: bool = False) -> None:
        message = BashExecutionMessage(
            command=command,
            output=output,
            exit_code=details.exit_code,
            cancelled=cancelled,
            truncated=details.truncated,
            full_output_path=details.full_output_path,
            printed_lines=details.printed_lines,
            exclude_from_context=not in_context,
            files=None if details.files == FileTouches() else details.files,
        )
        entry = conversation.append(message)
        stored = entry.message
        assert isinstance(stored, BashExecutionMessage)
        emit(BashFinished(entry.id, call_id, stored))

    context = ToolContext(
        cwd=conversation.cwd,
        emit=take_output,
        files=conversation.files,
        output_dir=services.output_dir,
        environ=services.person_environ,
        todos=conversation.todos,
        default_timeout_s=services.settings.bash_timeout_s,
        limits=limits,
        is_persons=True,
        secrets=services.secrets,
    )
    emit(BashStarted(call_id, command))
    try:
        prepared = services.toolbox.prepare("bash", {"command": command}, context)
        async with FileKeeper(conversation, services.person_environ).watched(prepared.intent):
            output = await prepared.run()
        files = await output.find_changes() if output.find_changes else FileTouches()
    except ToolError as error:
        record(str(error), ToolDetails())
    except asyncio.CancelledError:
        printed = "".join(pieces)
        lines = printed.rstrip("\n").count("\n") + 1 + skipped_lines if printed.strip() else 0
        details = ToolDetails(printed_lines=lines)
        record(printed[-limits.max_bytes :], details, cancelled=True)
        raise
    else:
        record(output.for_model, output.for_person.model_copy(update={"files": files}))
    for event in await conversation.refresh_usage():
        emit(event)
