"""Where this conversation stands, on one page."""

from pathlib import Path

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.pages import Page, PageSection, Row
from agent_tui.commands.core.short_words import short_count, short_path


@command()
async def status(front: Front, _argument: str) -> None:
    """Show folder, model, mode, session and context use."""
    await front.show(status_page(front))


def status_page(front: Front) -> Page:
    """Rows for the folder, the model, what may be done, the session and the context."""
    conversation = front.runtime.conversation
    model, info, usage = conversation.model, conversation.model_info, conversation.usage
    log, totals, home = conversation.log, conversation.totals, Path.home()
    filled = f"{usage.label} {usage.used:,} of {usage.window:,} tokens"
    if conversation.compacts_at:
        filled += f"; compacts automatically at {conversation.compacts_at}%"
    kept = short_path(log.path, home) if log.path is not None else "not saved"
    rows: list[Row] = [
        ("folder", short_path(conversation.cwd, home)),
        *(("also", short_path(folder, home)) for folder in conversation.services.added_folders),
        ("model", model.name or "none; /model chooses one"),
        ("server", model.base_url),
        ("window", f"{info.window:,} tokens ({info.source})"),
        ("thinking", conversation.thinking),
        ("permissions", conversation.permissions.mode),
        ("commands", conversation.services.sandbox_word(conversation.cwd)),
        ("session", f"{log.name or 'no name'} · {log.header.id}"),
        ("file", f"{kept}{' (read-only)' if log.is_read_only else ''}"),
        ("context", filled),
        (
            "tokens",
            f"{short_count(totals.input_tokens)} in, {short_count(totals.output_tokens)} out; "
            "/cost shows the cost",
        ),
    ]
    return Page("Status", (PageSection("", tuple(row for row in rows if row[1])),))
