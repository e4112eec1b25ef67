"""The contents of an empty chat: the folder, things to try, and sessions to resume."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agent_tui._version import __version__
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.demo import own_demo
from agent_tui.commands.core.known_models import first_steps, trial_note
from agent_tui.commands.core.permission_modes import MODES
from agent_tui.commands.core.short_words import count_text, short_path
from agent_tui.commands.sessions import age, session_title
from agent_tui.key_actions import keys_in_force
from agent_tui.sessions.listing import SessionSummary
from agent_tui.ui.options import UiOptions
from agent_tui.ui.transcript.blocks import Block, SpokenBlock, StartRow, WelcomeBlock

_MOST_SESSIONS = 3


def welcome_block(options: UiOptions, sessions: tuple[StartRow, ...] = ()) -> WelcomeBlock:
    """The first block of an empty chat."""
    conversation = options.runtime.conversation
    mode = conversation.permissions.mode
    facts = [
        ("folder", short_path(conversation.cwd, Path.home())),
        ("model", conversation.model.name or "none yet"),
        ("mode", f"{mode}: {dict(MODES)[mode]}"),
    ]
    if conversation.context_files:
        facts.append(("memory", _names(file.path for file in conversation.context_files)))
    if conversation.withheld_files:
        names = _names(file.path for file in conversation.withheld_files)
        facts.append(("not loaded", f"{names} (/memory says why)"))
    demo, offered = options.demo, own_demo()
    if note := demo.notice if demo is not None else trial_note(conversation.model_info):
        facts.append(("note", note))
    demos = ((offered.command, offered.about),) if offered is not None else ()
    steps = enumerate(first_steps(conversation.model_info, demos))
    hints = tuple(_start_row(step, is_first=place == 0) for place, step in steps)
    return WelcomeBlock(
        f"agent-tui {__version__}", tuple(facts), hints if demo is None else (), sessions
    )


def renew_welcome(
    options: UiOptions, blocks: Sequence[Block], sessions: tuple[StartRow, ...]
) -> WelcomeBlock | None:
    """The new first block of the chat; None if it is unchanged or no greeting."""
    if not blocks or not isinstance(before := blocks[0], WelcomeBlock):
        return None
    is_begun = before.is_begun or any(isinstance(block, SpokenBlock) for block in blocks)
    welcome = replace(welcome_block(options, sessions), is_begun=is_begun)
    return welcome if welcome != before else None


def newest_sessions(runtime: AgentRuntime) -> tuple[StartRow, ...]:
    """The most recent sessions in this folder. Blocking."""
    conversation = runtime.conversation
    found = runtime.services.store.newest_of_project(conversation.cwd)
    continued = {Path(session.parent_session) for session in found if session.parent_session}
    wanted = [
        session
        for session in found
        if session.message_count
        and session.id != conversation.log.header.id
        and session.path not in continued
    ]
    now = datetime.now(UTC)
    return tuple(_session_row(session, now) for session in wanted[:_MOST_SESSIONS])


def _session_row(session: SessionSummary, now: datetime) -> StartRow:
    facts = (age(session.modified, now), count_text(session.message_count, "message"))
    return StartRow(session_title(session), " · ".join(facts), f"/resume {session.id}")


def _start_row(step: tuple[str, str], *, is_first: bool) -> StartRow:
    """Something to try; the draft ends where a file name is needed."""
    text, about = step
    begun, at, _ = text.partition("@")
    return StartRow(
        text, about, begun + at, keys_in_force().first_key("submit") if is_first else ""
    )


def _names(paths: Iterable[Path]) -> str:
    return ", ".join(dict.fromkeys(path.name for path in paths))
