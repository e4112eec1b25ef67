"""``/reload``: takes up new, changed and removed files, and asks about those not approved."""

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.found_commands import CommandFinder, FinderHost, FoundCommands
from agent_tui.commands.core.front import Front, is_at_terminal
from agent_tui.commands.trust import ask_about_program
from agent_tui.events import Notice
from agent_tui.features.tool_files.part import ToolFilesPart


@command(
    "[ask]",
    completions=lambda _front: (Completion("ask", "also about files that you declined"),),
    refusal="Cannot reload while the agent works. {stop}",
)
async def reload(front: Front, argument: str) -> None:
    """Load the new and changed files of your tools folder."""
    if argument.strip() not in ("", "ask"):
        front.say(f"/reload takes ask, not {argument.strip()}.", "warning")
        return
    part = front.runtime.part(ToolFilesPart)
    part.forget_asked()
    await _ask(front, part, asks_again=argument.strip() == "ask")
    part.take_news()
    none = f"There are no files in {part.files.folder}. The page about plugins shows one."
    front.say("\n".join(part.files.lines) or none)
    front.show_events(await front.runtime.refresh_usage())


async def look_at_files(front: Front) -> Notice | None:
    """Ask about new files on the screen, and return what is wrong with others."""
    part = front.runtime.part(ToolFilesPart)
    if front.screen is not None:
        await _ask(front, part)
    else:
        await part.look()
    news = part.take_news()
    return Notice("warning", "\n".join(news)) if news else None


async def _ask(front: Front, part: ToolFilesPart, *, asks_again: bool = False) -> None:
    """Look at the files and, where somebody is at the terminal, ask about those not approved."""
    if not is_at_terminal(front):
        await part.look()
        return
    for question in await part.questions(asks_again=asks_again):
        await ask_about_program(front, question)


def make_finder(host: FinderHost) -> CommandFinder:
    """What finds the commands of approved files."""

    async def find() -> FoundCommands:
        try:
            part = host.runtime.part(ToolFilesPart)
        except LookupError:  # it failed, which was reported
            return FoundCommands()
        await part.look()
        return FoundCommands(part.files.commands)

    return find
