"""What ``agent-tui -p`` sends: what a prompt file makes of ``/name``, else the words themselves."""

from pathlib import Path

from agent_tui.agent.prompt_shelf import PromptShelf
from agent_tui.permissions.trust import FolderTrust


def expanded_prompt(text: str, cwd: Path, user_dir: Path, trust: FolderTrust) -> str:
    """The message for `text`. Blocking.

    The program's own commands are for the screen: here they are words like others, and so is
    ``/name`` where no prompt file has that name.

    Raises:
        ConfigError: There is such a file, and it cannot be used, or nothing came out of it.
    """
    if not text.lstrip().startswith("/"):
        return text
    from agent_tui.commands.core.discovery import built_in_commands  # most prompts need none
    from agent_tui.commands.core.parser import parse_command

    call = parse_command(text)
    own_names = built_in_commands().own_names
    if call is None or call.name in own_names:
        return text
    made = PromptShelf(user_dir, trust, own_names).message(call.name, call.argument, cwd)
    return text if made is None else made
