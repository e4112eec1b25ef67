"""The screen itself: colours, mouse, the search of the chat, the clipboard."""

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front, ScreenControls
from agent_tui.commands.model import marked
from agent_tui.key_actions import keys_in_force


def _screen(front: Front) -> ScreenControls:
    """What the commands here are refused without."""
    assert front.screen is not None
    return front.screen


@command(
    "[name]",
    completions=lambda front: marked(_screen(front).theme_names, _screen(front).theme_in_use),
    needs="screen",
)
async def theme(front: Front, argument: str) -> None:
    """Choose a colour theme."""
    screen = _screen(front)
    wanted = argument or await screen.pick_theme()
    if wanted is None:
        return
    if wanted in screen.theme_names:
        screen.set_theme(wanted)
        front.say(f"Theme: {wanted}")
    else:
        front.say(f"Unknown theme {wanted}. Available: {', '.join(screen.theme_names)}.", "warning")


@command("[on|off]", completions=lambda _front: ("on", "off"), needs="screen")
async def mouse(front: Front, argument: str) -> None:
    """Turn mouse support on or off."""
    screen = _screen(front)
    wanted = argument.lower() or ("off" if screen.is_mouse_on else "on")
    if wanted not in ("on", "off"):
        front.say(f"/mouse takes on or off, not {argument}.", "warning")
        return
    screen.set_mouse(wanted == "on")
    if wanted == "on":
        front.say("Mouse on: scroll, select and click here. In most terminals, Shift bypasses it.")
    else:
        front.say(
            "Mouse off: the terminal handles selecting and copying. "
            f"{keys_in_force().shown('mouse') or '/mouse'} turns it back on; mouse = false in "
            "config.toml keeps it off."
        )


@command(needs="screen")
async def scrollback(front: Front, _argument: str) -> None:
    """Print the conversation to the terminal's scrollback."""
    _screen(front).show_scrollback()


@command("[text]", needs="screen")
async def find(front: Front, argument: str) -> None:
    """Search the chat."""
    await _screen(front).find(argument)


@command(needs="screen")
async def copy(front: Front, _argument: str) -> None:
    """Copy the last reply to the clipboard."""
    screen = _screen(front)
    if text := screen.last_reply:
        front.say(screen.copy(text))
    else:
        front.say("No reply to copy yet.", "warning")
