"""The steps of the tour, and when each is done."""

from agent_tui.commands.core.demo import Demo, DemoStep
from agent_tui.events import AgentEvent, ModelChanged, SessionChanged, TurnFinished, TurnStarted
from agent_tui.features.tour.replies import DEMO_MODEL, prepare_demo_folder

_NOTICE = (
    "This is a scripted tour in a scratch folder. It calls no model and does not touch your "
    "files. The tools, the files and the session are real."
)

_APPROVE = 1
_MAKE_ROOM = 2

_STEPS = (
    DemoStep(
        "Ask for something",
        "Press {submit} to send the message below. The replies are scripted; files and commands "
        "are real, in a scratch folder.",
        "Fix the bug in greet.py",
    ),
    DemoStep(
        "Approve or refuse",
        "Nothing is written or run without your approval. Read what it wants to do, then press "
        "y to allow it, n to refuse, {interrupt} to stop.",
    ),
    DemoStep(
        "Compact",
        "Long work fills the context window: [ctx: N%] at the lower right shows how full it is. "
        "Press {submit}: /compact gives the model a summary in place of older messages. You keep "
        "them all.",
        "/compact",
    ),
    DemoStep(
        "Go back to an earlier session",
        "The whole conversation is kept as a session. Press {submit} and choose it from the list.",
        "/resume",
    ),
    DemoStep(
        "Choose a model",
        "That's all you need. Press {submit} to choose a model and try a task, or quit with /quit "
        "and start agent-tui in your project.",
        "/model",
    ),
)


def _step_after(step: int, event: AgentEvent) -> int:
    """The number of the step after `event`, given the present `step` (0 is the first).

    ``len(_STEPS)`` is the tour's end. A refused or stopped turn counts as done: it also shows that
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
        case ModelChanged(model) if model != DEMO_MODEL.name and step == len(_STEPS) - 1:
            return len(_STEPS)
        case _:
            return step


TOUR = Demo(
    name="Tour",
    command="/tour",
    about="five steps with real tools and scripted replies",
    choice="Take the tour",
    needs="scripted; no model and no key needed",
    notice=_NOTICE,
    model=DEMO_MODEL,
    prepare=prepare_demo_folder,
    steps=_STEPS,
    step_after=_step_after,
)
