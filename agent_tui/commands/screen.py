"""The commands for a screen: theme, mouse, copying."""

from collections.abc import Sequence

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Choice, Front, Listing, ScreenControls
from agent_tui.commands.model import mark_present
from agent_tui.key_actions import keys_in_force
from agent_tui.text import code_blocks


def _screen(front: Front) -> ScreenControls:
    """The screen, without which the commands here are refused."""
    assert front.screen is not None
    return front.screen


@command(
    "[name]",
    completions=lambda front: mark_present(_screen(front).theme_names, _screen(front).theme_in_use),
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
            f"{keys_in_force().first_key('mouse') or '/mouse'} turns it back on; mouse = false in "
            "config.toml keeps it off."
        )


@command(needs="screen")
async def scrollback(front: Front, _argument: str) -> None:
    """Print the conversation to the terminal's scrollback."""
    _screen(front).show_scrollback()


@command("[code]", completions=lambda _front: ("code",), needs="screen")
async def copy(front: Front, argument: str) -> None:
    """Copy the last reply, or a block of code in it, to the clipboard."""
    screen = _screen(front)
    text: str | None = screen.last_reply
    if not text:
        front.say("No reply to copy yet.", "warning")
        return
    if argument not in ("", "code"):
        front.say(f"/copy takes code (a block of code in the reply), not {argument}.", "warning")
        return
    text = await _choose_block(front, code_blocks(text)) if argument else text
    if text:
        front.say(screen.copy(text))


async def _choose_block(front: Front, blocks: Sequence[str]) -> str | None:
    """The only one of `blocks`, or the one that the user picks."""
    if len(blocks) < 2:
        if not blocks:
            front.say("The last reply has no block of code.", "warning")
        return next(iter(blocks), None)
    choices = tuple(Choice(block, block.strip().partition("\n")[0]) for block in blocks)
    return await front.pick(Listing("Copy which block of code?", choices, ""))
