"""Files of instructions that were changed take effect."""

from pathlib import Path

from agent_tui.commands.core.front import Front
from agent_tui.commands.core.short_words import file_text
from agent_tui.commands.trust import ask_about_workspace


async def put_in_force(front: Front, file: Path, done: str, end: str) -> None:
    """Apply a changed instruction file to the next message, if possible, and say so.

    Args:
        front: The front to ask and show in.
        file: The file.
        done: What was done to it: ``Added to``.
        end: How the notice ends.
    """
    runtime = front.runtime
    said = f"{done} {file_text(file, runtime.conversation.cwd)}"
    if runtime.is_busy:
        later = "in effect in the next session, or after /memory reload once the turn ends"
        front.say(f"{said}, {later}{end}")
        return
    is_first = runtime.services.trust.state_of(file.parent) == "not asked"
    if is_first and not file.is_relative_to(runtime.services.user_config_dir):
        await ask_about_workspace(front)
    front.show_events(await runtime.sessions.apply_trust())
    is_told = any(one.path == file for one in runtime.conversation.context_files)
    counts = "in effect from your next message" if is_told else "not in effect (/memory says why)"
    front.say(f"{said}, {counts}{end}")
