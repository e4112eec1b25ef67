"""Calls of file tools that reach what stands for ``/tmp`` in the sandbox."""

from dataclasses import replace
from pathlib import Path

from agent_tui.messages import FileTouches
from agent_tui.tools.base import PreparedCall, ToolOutput
from agent_tui.tools.sandbox.scratch import Scratch

_KEPT_UNTIL = (
    "/tmp is the sandbox's own: commands see this file, the user does not, and it is deleted when "
    "the conversation ends"
)


def named_for_commands(call: PreparedCall, scratch: Scratch) -> PreparedCall:
    """Name the files of `call`, and those that its output reports, as commands see them.

    Args:
        call: A call whose paths are resolved.
        scratch: What commands have in the place of ``/tmp``.
    """
    if not any(map(scratch.holds, call.intent.paths)):
        return call
    paths = tuple(map(scratch.named, call.intent.paths))
    title = f"{call.intent.title} (the sandbox's)"

    async def run() -> ToolOutput:
        output = await call.run()
        files = output.for_person.files
        named = FileTouches(
            read=_names(files.read, scratch),
            written=_names(files.written, scratch),
            edited=_names(files.edited, scratch),
        )
        text = output.for_model
        if named.written or named.edited:
            text = f"{text}\n[{_KEPT_UNTIL}]"
        details = output.for_person.model_copy(update={"files": named})
        return replace(output, for_model=text, for_person=details)

    return PreparedCall(replace(call.intent, paths=paths, title=title), run)


def _names(paths: tuple[str, ...], scratch: Scratch) -> tuple[str, ...]:
    return tuple(str(scratch.named(Path(path))) for path in paths)
