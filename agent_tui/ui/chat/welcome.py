"""What an empty chat shows: where one is, and what to try."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from agent_tui.commands.core.first_steps import first_steps, trial_note
from agent_tui.commands.core.short_words import short_path
from agent_tui.commands.permissions import MODES
from agent_tui.ui.options import UiOptions
from agent_tui.ui.transcript import Block, WelcomeBlock


def welcome_block(options: UiOptions) -> WelcomeBlock:
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
        facts.append(("not in force", f"{names} (/memory says why)"))
    if note := options.welcome or trial_note(conversation.model_info):
        facts.append(("note", note))
    return WelcomeBlock("agent-tui", tuple(facts), first_steps(conversation.model_info))


def renewed_welcome(options: UiOptions, blocks: Sequence[Block]) -> WelcomeBlock | None:
    """What the chat's first block is to be, None if it is that, or no greeting, already."""
    if not blocks or not isinstance(blocks[0], WelcomeBlock):
        return None
    welcome = welcome_block(options)
    return welcome if welcome != blocks[0] else None


def _names(paths: Iterable[Path]) -> str:
    return ", ".join(dict.fromkeys(path.name for path in paths))
