"""Goals: work that goes on until its checks pass."""

from collections.abc import Iterator
from functools import partial

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Choice, Front, Page, PageSection, Question, has_model
from agent_tui.durations import format_duration
from agent_tui.errors import UsageError
from agent_tui.events import AgentEvent
from agent_tui.features.goal.events import GoalEnding
from agent_tui.features.goal.goal import Goal, goal_in
from agent_tui.features.goal.parse import USAGE, parse_goal
from agent_tui.features.goal.part import GoalPart
from agent_tui.features.goal.settings import GoalSection
from agent_tui.safe_text import safe_text

_NONE = "No goal is set."
_NONE_OPEN = "No goal is open."
_ENDINGS = {"met": "met", "stopped": "ended by you", "stuck": "not met", "limit": "not met"}
_ASKS = "In mode ask the work waits for your answers; accept-edits asks less."
_STOPPED = "Goal ended by you. The conversation stays."
_DONE = "Goal closed by you as met."
_ASKED = "Run the checks after every turn?"
_WITHOUT_WALL = (
    "There is no sandbox here: they run with all your rights, and so does the code they test."
)
_ANSWERS = (Choice(True, "run them without a sandbox", "y"), Choice(False, "cancel", "n"))


def _completions(front: Front) -> Iterator[Completion]:
    if not front.runtime.part(GoalPart).is_open:
        yield Completion("--check ", "a command that must exit with 0; repeatable")
    else:
        yield Completion("go", "continue the work")
        yield Completion("done", "close it as met")
        yield Completion("stop", "end it")


@command("[<text> --check <command>... | go | done | stop]", completions=_completions)
async def goal(front: Front, argument: str) -> None:
    """Work turn after turn until every check passes and a judge agrees."""
    runtime = front.runtime
    match argument.strip():
        case "":
            await _show(front)
        case "go" | "done" | "stop" if not runtime.part(GoalPart).is_open:
            front.say(f"{_NONE_OPEN} {USAGE}", "warning")
        case "go":
            if await has_model(front):
                await front.run(runtime.continue_turn())
        case "done":
            _end(front, "met", _DONE)
        case "stop":
            _end(front, "stopped", _STOPPED)
        case text:
            await _begin(front, text)


def _end(front: Front, ending: GoalEnding, reason: str) -> None:
    front.runtime.sessions.require_writable()
    told: list[AgentEvent] = []
    front.runtime.part(GoalPart).end(ending, reason, told.append)
    front.show_events(told)


async def _begin(front: Front, text: str) -> None:
    runtime = front.runtime
    wanted = parse_goal(text, runtime.services.settings.of(GoalSection).goal)
    if not await has_model(front):
        return
    work = runtime.part(GoalPart)
    if work.must_ask_about_checks(wanted):
        shown = tuple(f"$ {safe_text(check)}" for check in wanted.checks)
        question = Question(_ASKED, (*shown, _WITHOUT_WALL), _ANSWERS, is_grave=True, marked=1)
        if not front.can_ask:
            raise UsageError(
                "The checks would run without a sandbox.",
                "Add --outside to allow it, or install bubblewrap.",
            )
        if not await front.ask(question):
            front.say("Goal not set.")
            return
        wanted = wanted.model_copy(update={"runs_outside": True})
    front.say(_bounds(wanted, is_watched=front.can_ask))
    if runtime.conversation.permissions.mode == "ask" and front.can_ask:
        front.say(_ASKS)
    await front.run(runtime.carry_out(partial(work.begin, wanted)))


async def _show(front: Front) -> None:
    found = goal_in(front.runtime.conversation.log.path_entries())
    if found is None:
        front.say(f"{_NONE} {USAGE}")
        return
    state = _ENDINGS.get(found.ending, "open")
    facts = (
        ("state", " · ".join(filter(None, (state, found.reason)))),
        ("turns", f"{found.turns} of {found.max_turns}"),
        ("time", f"{format_duration(found.took_s)} of {format_duration(found.max_s)}"),
        ("cost", _cost(found)),
    )
    passed = (*found.passed, *[None] * (len(found.checks) - len(found.passed)))
    marks = {True: "passes", False: "fails", None: "has not run yet"}
    checks = tuple((marks[ok], check) for ok, check in zip(passed, found.checks, strict=True))
    sections = [PageSection(found.text, facts)]
    if checks:
        where = "outside the sandbox" if found.runs_outside else "inside the sandbox"
        sections.append(PageSection(f"Checks ({where})", checks))
    if found.missing:
        lines = tuple(("", line.removeprefix("- ")) for line in found.missing.splitlines())
        sections.append(PageSection("The judge finds missing", lines))
    await front.show(Page("Goal", tuple(sections)))


def _bounds(goal: Goal, *, is_watched: bool) -> str:
    cost = f", ${goal.max_cost_usd:.2f}" if goal.max_cost_usd is not None else ""
    how_to_end = " Esc pauses; /goal stop ends it." if is_watched else ""
    return (
        f"Working until the goal is met, for at most {goal.max_turns} turns and "
        f"{format_duration(goal.max_s)} of work{cost}.{how_to_end}"
    )


def _cost(goal: Goal) -> str:
    spent = f"${goal.cost_usd:.2f}"
    return spent if goal.max_cost_usd is None else f"{spent} of ${goal.max_cost_usd:.2f}"
