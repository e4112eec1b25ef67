"""``/export``: write the conversation to a file."""

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.plugin_kinds import EXPORTS
from agent_tui.providers.keys import secret_values
from agent_tui.safe_paths import resolve_path
from agent_tui.sessions.export.formats import ExportFormat, export_text, form_of
from agent_tui.sessions.log import SessionLog


def export_target(
    argument: str, log: SessionLog, cwd: Path, formats: Sequence[ExportFormat]
) -> tuple[ExportFormat, Path]:
    """The format and the file that an ``/export`` argument names; by default the first, in `cwd`.

    Raises:
        OSError: No file can have this name.
    """
    first, _, rest = argument.partition(" ")
    named = next((form for form in formats if form.name == first), None)
    written = rest.strip() if named else argument
    if written:
        path = resolve_path(written, cwd)
        return named or form_of(path, formats), path
    stamp = datetime.fromisoformat(log.header.timestamp).strftime("%Y-%m-%d-%H%M")
    form = named or formats[0]
    return form, _free_path(cwd, f"session-{stamp}-{log.header.id[:8]}", form.suffix)


def _free_path(folder: Path, stem: str, suffix: str) -> Path:
    """A path in `folder` that no file has yet."""
    path, number = folder / f"{stem}{suffix}", 2
    while path.exists():
        path, number = folder / f"{stem}-{number}{suffix}", number + 1
    return path


def write_export(form: ExportFormat, path: Path, log: SessionLog, secrets: Sequence[str]) -> None:
    """Write the export of `log` to a new file.

    Raises:
        OSError: It exists already or cannot be written.
        SessionError: A format of another package failed.
    """
    text = export_text(log, form, secrets)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


@command(
    lambda plugins: f"[{'|'.join(form.name for form in plugins.of(EXPORTS))}] [path]",
    completions=lambda front: tuple(
        Completion(form.name, form.about) for form in front.services.plugins.of(EXPORTS)
    ),
    takes_path=True,
)
async def export(front: Front, argument: str) -> None:
    """Export the conversation to a file."""
    log = front.runtime.conversation.log
    if not log.entries:
        front.say("Nothing to export yet.", "warning")
        return
    try:
        formats = front.services.plugins.of(EXPORTS)
        form, path = export_target(argument, log, front.runtime.conversation.cwd, formats)
    except OSError as error:
        front.say(f"Cannot use {argument} as a path: {error.strerror}.", "error")
        return
    try:
        await asyncio.to_thread(write_export, form, path, log, secret_values(os.environ))
    except FileExistsError:
        front.say(f"{path} already exists. Choose another name.", "error")
    except OSError as error:
        front.say(f"Cannot write {path}: {error.strerror}.", "error")
    else:
        front.say(f"Exported to {path}")
