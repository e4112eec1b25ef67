"""The program itself: help, keys, the status page, and leaving."""

from collections.abc import Iterable
from pathlib import Path

from agent_tui.commands.core.command import Command, command
from agent_tui.commands.core.front import Front, Page, PageSection, Row
from agent_tui.commands.core.registry import CommandRegistry
from agent_tui.commands.core.short_words import short_count, short_path


@command()
async def help_(front: Front, _argument: str) -> None:
    """List all commands and keys."""
    known = front.help()
    await front.show(Page("Help", (*known.commands, *known.keys), is_searched=True))


@command()
async def keys(front: Front, _argument: str) -> None:
    """List all keys."""
    if sections := front.help().keys:
        await front.show(Page("Keys", sections))
    else:
        front.say(f"{front.name} has no keys.")


@command(aliases=("quit",))
async def exit_(front: Front, _argument: str) -> None:
    """Quit; you can resume the session later."""
    front.leave()


_SUBJECTS = {
    "Conversation": ("conversation", "goal", "loops", "review"),
    "Context": ("compaction", "context", "memory", "rules", "skills"),
    "Sessions": ("sessions", "agents", "tree"),
    "Model and cost": ("model",),
    "Permissions": ("permissions", "trust", "mcp"),
}
"""Headings in ``/help``, with the modules whose commands they list."""
_OTHERS = "Program"
"""The heading for the commands of all other modules."""


def command_sections(registry: CommandRegistry, front: Front) -> tuple[PageSection, ...]:
    """Every command that works in `front`, by subject, then those of prompt files."""
    usable = [entry for entry in registry.commands if not entry.missing_in(front)]
    own = [entry for entry in usable if entry.source == "program"]
    of_files = [entry for entry in usable if entry.source in ("user", "project")]
    of_servers = [entry for entry in usable if entry.source == "server"]
    subject_of = {room: subject for subject, rooms in _SUBJECTS.items() for room in rooms}
    by_subject: dict[str, list[Row]] = {subject: [] for subject in (*_SUBJECTS, _OTHERS)}
    for entry in own:
        by_subject[subject_of.get(entry.room, _OTHERS)].append(_help_row(entry))
    sections = [PageSection(name, tuple(rows)) for name, rows in by_subject.items() if rows]
    for title, others in (("From your files", of_files), ("From MCP servers", of_servers)):
        if others:
            sections.append(PageSection(title, tuple(map(_help_row, others))))
    if registry.unusable:
        rows = tuple((file.shown, file.why) for file in registry.unusable)
        sections.append(PageSection("Prompt files that cannot be used", rows))
    if missing := [entry for entry in registry.commands if entry.missing_in(front)]:
        sections.append(PageSection("Not available here", (("", _missing(missing, front)),)))
    return tuple(sections)


def _help_row(entry: Command) -> Row:
    also = ", ".join(f"/{alias}" for alias in entry.aliases)
    return entry.usage, f"{entry.description} (also {also})" if also else entry.description


def _missing(commands: Iterable[Command], front: Front) -> str:
    names = ", ".join(f"/{entry.name}" for entry in commands)
    return f"{names}: not available with {front.name}."


@command()
async def status(front: Front, _argument: str) -> None:
    """Show folder, model, mode, session and context use."""
    await front.show(status_page(front))


def status_page(front: Front) -> Page:
    """Rows for the folder, the model, the permissions, the session and the context."""
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
        ("commands", conversation.services.sandbox.word(conversation.cwd)),
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
