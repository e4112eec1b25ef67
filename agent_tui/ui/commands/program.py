"""Commands about the program itself: looks, help, the way out."""

from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import command


@command("[name]", choices=lambda host: host.theme_names)
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


@command()
async def keys(host: CommandHost, _argument: str) -> None:
    """List the keys."""
    from agent_tui.ui.pages import keys_page
    from agent_tui.ui.screens.page import PageScreen

    await host.ask(PageScreen(keys_page()))


@command()
async def help_(host: CommandHost, _argument: str) -> None:
    """List the commands and the keys one needs first."""
    from agent_tui.ui.pages import help_page
    from agent_tui.ui.screens.page import PageScreen

    await host.ask(PageScreen(help_page(host.registry.commands)))


@command(aliases=("quit",))
async def exit_(host: CommandHost, _argument: str) -> None:
    """Leave; the session can be resumed."""
    host.leave()
