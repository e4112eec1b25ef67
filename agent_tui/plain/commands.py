"""All commands, in the order they are listed, and ``/help``, which lists them."""

from agent_tui.plain import context_commands, session_commands, talk_commands, trusting
from agent_tui.plain.command_table import PlainCommand, command
from agent_tui.plain.host import PlainHost

_KEYS = (
    "Type a message and press Enter to send it.",
    "A backslash at the end of a line goes on in the next one; lines between two lines of three "
    "double quotes are one message.",
    "@ and a path attaches a file. ! and a command runs it into the conversation, !! beside it.",
    "Control C stops what runs and keeps what came; twice at the prompt it leaves. Control D "
    "leaves.",
    "Commands about looks and places, such as /theme, /tree and /copy, need the screen.",
)


@command()
def help_(host: PlainHost, _argument: str) -> None:
    """List the commands and the keys."""
    host.lines.lines(_KEYS)
    for each in all_commands():
        host.say(f"{f'/{each.name} {each.argument}'.strip()}: {each.description}")


def all_commands() -> tuple[PlainCommand, ...]:
    """Every command once."""
    modules = (context_commands, talk_commands, trusting, session_commands)
    found = [
        entry
        for module in modules
        for entry in vars(module).values()
        if isinstance(entry, PlainCommand)
    ]
    return (help_, *found)
