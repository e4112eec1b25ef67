"""The tour of ``--demo``: its steps, and when each is done."""

from dataclasses import dataclass

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Choice, Front, Question, ScreenControls
from agent_tui.events import AgentEvent, ModelChanged, SessionChanged, TurnFinished, TurnStarted
from agent_tui.key_actions import KEY_ACTIONS, keys_in_force
from agent_tui.providers.scripted.demo import DEMO_MODEL


@dataclass(frozen=True, slots=True)
class TourStep:
    """One step.

    Attributes:
        title: The step in a few words.
        text: How to do it, and what to look at; key actions are in braces, such as ``{submit}``.
        draft: The text that the prompt suggests; may be empty.
    """

    title: str
    text: str
    draft: str = ""

    @property
    def shown(self) -> str:
        """The text with the present keys filled in."""
        keys = keys_in_force()
        return self.text.format_map({name: keys.first_key(name) for name in KEY_ACTIONS})


TOUR_NOTICE = (
    "This is a scripted tour in a scratch folder. It calls no model and does not touch your "
    "files. The tools, the files and the session are real."
)

_APPROVE = 1
_MAKE_ROOM = 2

TOUR = (
    TourStep(
        "Ask for something",
        "Press {submit} to send the message below. The replies are scripted; files and commands "
        "are real, in a scratch folder.",
        "Fix the bug in greet.py",
    ),
    TourStep(
        "Approve or refuse",
        "Nothing is written or run without your approval. Read what it wants to do, then press "
        "y to allow it, n to refuse, {interrupt} to stop.",
    ),
    TourStep(
        "Compact",
        "Long work fills the context window: [ctx: N%] at the lower right shows how full it is. "
        "Press {submit}: /compact replaces the conversation with a summary.",
        "/compact",
    ),
    TourStep(
        "Go back to an earlier session",
        "Nothing was lost: the whole conversation is kept as a session. Press {submit} and choose "
        "it from the list.",
        "/resume",
    ),
    TourStep(
        "Choose a model",
        "That's all you need. Press {submit} to choose a model and try a task, or quit with /quit "
        "and start agent-tui in your project.",
        "/model",
    ),
)


def step_after(step: int, event: AgentEvent) -> int:
    """The number of the step after `event`, given the present `step` (0 is the first).

    ``len(TOUR)`` is the tour's end. A refused or stopped turn counts as done: it also shows that
    the user decides.
    """
    match event:
        case TurnStarted() if step == 0:
            return _APPROVE
        case TurnFinished() if step == _APPROVE:
            return _MAKE_ROOM
        case SessionChanged(reason="compacted") if step <= _MAKE_ROOM:
            return _MAKE_ROOM + 1
        case SessionChanged(reason="resumed") if step == _MAKE_ROOM + 1:
            return step + 1
        case ModelChanged(model) if model != DEMO_MODEL.name and step == len(TOUR) - 1:
            return len(TOUR)
        case _:
            return step


@command("[on|off]", completions=lambda _front: ("on", "off"), needs="screen")
async def tour(front: Front, argument: str) -> None:
    """Start the tour, or show and hide its steps."""
    assert front.screen is not None
    if argument.lower() not in ("", "on", "off"):
        front.say(f"/tour takes on or off, not {argument}.", "warning")
    elif not front.screen.show_tour({"on": True, "off": False}.get(argument.lower())):
        await _offer_tour(front, front.screen)


async def _offer_tour(front: Front, screen: ScreenControls) -> None:
    """Start the tour, which is a separate conversation, if the user agrees."""
    if front.is_working:
        front.say("The tour cannot start while the agent works. Use /abort first.", "warning")
        return
    facts = [f"It has {len(TOUR)} steps in a scratch folder, with scripted replies."]
    if front.runtime.conversation.log.entries:
        facts.append("This conversation is kept: agent-tui -c resumes it.")
    answers = (Choice(True, "yes", "y"), Choice(False, "no", "n"))
    if await front.ask(Question("Start the tour?", tuple(facts), answers)):
        screen.start_tour()
