"""What the arguments of commands may be, where that has to be looked up."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.sessions.importers.discovery import FOREIGN_AGENTS
from agent_tui.ui.commands.registry import Choice

if TYPE_CHECKING:
    from agent_tui.sessions.store import SessionStore
    from agent_tui.ui.commands.host import CommandHost

MOST_SESSIONS = 1_000
_SHORT_ID = 8


async def model_choices(host: "CommandHost") -> tuple[Choice, ...]:
    """Every model that can be used now, with window, price, state and where it is from."""
    from agent_tui.ui.screens.model_picker import model_row

    present = host.runtime.conversation.model
    found = await host.models.found()
    choices = {
        model.ref.name: Choice(model.ref.name, _facts(model_row(model, is_present=False).columns))
        for model in sorted(found, key=lambda model: model.ref != present)
    }
    if present.name:
        choices.setdefault(present.name, Choice(present.name, "in use"))
    return tuple(choices.values())


def _facts(columns: tuple[str, ...]) -> str:
    prices, window, state, via = columns
    return " · ".join(part for part in (window, f"$ {prices}", state, via) if part)


async def session_choices(host: "CommandHost") -> tuple[Choice, ...]:
    """Earlier sessions by name or first prompt, this project's first; each inserts its id."""
    runtime = host.runtime
    sessions = await asyncio.to_thread(
        _sessions,
        runtime.services.store,
        runtime.conversation.log.header.id,
        runtime.conversation.cwd,
        datetime.now(UTC),
    )
    others = tuple(Choice(f"--from {agent}", f"sessions of {agent}") for agent in FOREIGN_AGENTS)
    return (*sessions, *others)


def _sessions(
    store: "SessionStore", present_id: str, cwd: Path, now: datetime
) -> tuple[Choice, ...]:
    """All but the present one. Blocking."""
    from agent_tui.ui.session_rows import age, session_title

    sessions = store.list()
    begun = Counter(found.id[:_SHORT_ID] for found in sessions)
    others = [found for found in sessions if found.id != present_id]
    others.sort(key=lambda found: cwd not in (found.cwd, found.launch_cwd))
    choices: list[Choice] = []
    for found in others[:MOST_SESSIONS]:
        is_here = cwd in (found.cwd, found.launch_cwd)
        facts = [age(found.modified, now), f"{found.message_count:,} messages"]
        choices.append(
            Choice(
                found.id[:_SHORT_ID] if begun[found.id[:_SHORT_ID]] == 1 else found.id,
                " · ".join(facts if is_here else [*facts, found.cwd.name]),
                " ".join(session_title(found).split()),
            )
        )
    return tuple(choices)
