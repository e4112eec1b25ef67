"""Commands about the program itself: looks, help, the way out."""

from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import Choice, command


@command(
    "[name]",
    choices=lambda host: tuple(
        Choice(name, "in use" if name == host.theme_in_use else "") for name in host.theme_names
    ),
)
async def theme(host: CommandHost, argument: str) -> None:
    """Choose the colours."""
    wanted = argument
    if not wanted:
        from agent_tui.ui.screens.theme_picker import ThemePicker

        picked = await host.ask(ThemePicker(host.theme_names, host.theme_in_use, host.set_theme))
        if picked is None:
            return
        wanted = picked
    if wanted in host.theme_names:
        host.set_theme(wanted)
        host.say(f"Theme: {wanted}")
    else:
        host.say(f"No theme {wanted}. There are: {', '.join(host.theme_names)}.", "warning")


@command("[on|off]", choices=lambda _host: ("on", "off"))
async def mouse(host: CommandHost, argument: str) -> None:
    """Leave the mouse to the terminal."""
    wanted = argument.lower() or ("off" if host.is_mouse_on else "on")
    if wanted not in ("on", "off"):
        host.say(f"/mouse takes on or off, not {argument}.", "warning")
        return
    host.set_mouse(wanted == "on")
    if wanted == "on":
        host.say(
            "Mouse on: it scrolls, selects and clicks here. With shift most terminals keep it."
        )
    else:
        host.say(
            "Mouse off: it is the terminal's, which selects and copies its own way. alt+m takes it "
            "back; mouse = false in config.toml leaves it off."
        )


@command()
async def scrollback(host: CommandHost, _argument: str) -> None:
    """Write all of it into the scrollback."""
    host.show_scrollback()


@command()
async def keys(host: CommandHost, _argument: str) -> None:
    """List the keys."""
    from agent_tui.ui.pages import keys_page
    from agent_tui.ui.screens.page import PageScreen

    await host.ask(PageScreen(keys_page()))


@command()
async def help_(host: CommandHost, _argument: str) -> None:
    """List the commands and first keys."""
    from agent_tui.ui.pages import help_page
    from agent_tui.ui.screens.page import PageScreen

    await host.ask(PageScreen(help_page(host.registry.commands, host.registry.left_out)))


@command(aliases=("quit",))
async def exit_(host: CommandHost, _argument: str) -> None:
    """Leave; the session can be resumed."""
    host.leave()
