"""``/tour``: starts the tour of ``--demo``, or shows and hides its steps."""

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Choice, Front, Question, ScreenControls
from agent_tui.features.tour.steps import TOUR


@command("[on|off]", completions=lambda _front: ("on", "off"), needs="screen")
async def tour(front: Front, argument: str) -> None:
    """Start the tour, or show and hide its steps."""
    assert front.screen is not None
    if argument.lower() not in ("", "on", "off"):
        front.say(f"/tour takes on or off, not {argument}.", "warning")
    elif not front.screen.show_steps({"on": True, "off": False}.get(argument.lower())):
        await _offer_tour(front, front.screen)


async def _offer_tour(front: Front, screen: ScreenControls) -> None:
    """Start the tour, which is a separate conversation, if the user agrees."""
    if front.is_working:
        stop = front.runtime.services.ways.stop
        front.say(f"The tour cannot start while the agent works. {stop}", "warning")
        return
    facts = [f"It has {len(TOUR.steps)} steps in a scratch folder, with scripted replies."]
    if front.runtime.conversation.log.entries:
        facts.append("This conversation is kept: agent-tui -c resumes it.")
    answers = (Choice(True, "yes", "y"), Choice(False, "no", "n"))
    if await front.ask(Question("Start the tour?", tuple(facts), answers)):
        screen.start_demo()
