"""The command ``/vim``: those who type it look for the setting."""

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.registry import load_commands

_SETTING = "vim_mode"


@command()
async def vim(front: Front, _argument: str) -> None:
    """See and change the setting for the keys of vi."""
    found = load_commands().find("settings")
    if front.services.settings is None or found is None:
        front.say(f"Set {_SETTING} = true in config.toml for the keys of vi in the prompt.")
    else:
        await found.run(front, _SETTING)
