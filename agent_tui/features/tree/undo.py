"""Going back in a session with its files, undoing, and forking."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from agent_tui.agent.session.restoring import Difference, display_path, display_paths
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Choice, Front, Page, Question
from agent_tui.commands.core.short_words import count_text
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent
from agent_tui.features.tree.branches import Branches
from agent_tui.features.tree.difference import FileDifference
from agent_tui.safe_text import printable_line
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.lineage.joined import ContinuationPoint
from agent_tui.sessions.replay.file_changes import RestorePlan

if TYPE_CHECKING:  # a run without the screen imports no Textual
    from textual.screen import Screen

GoesBack: TypeAlias = Literal["talk", "files", "both"]

_WAYS: Final[dict[GoesBack, str]] = {
    "both": "the conversation and the files",
    "talk": "only the conversation; the files stay unchanged",
    "files": "only the files; the conversation stays",
}
_ONE_MORE = "one more message; the files stay unchanged"
BUSY = "Cannot go back while the agent works. {stop}"
_SHOWN_FILES = 12
_WORDS_CHARS = 56
"""Most characters of a message that a question repeats: its line fits in 80 columns."""


@command(
    "[talk | files | both]",
    refusal=BUSY,
    completions=lambda _front: tuple(Completion(way, text) for way, text in _WAYS.items()),
)
async def undo(front: Front, argument: str) -> None:
    """Undo the last message, its file changes, or both."""
    runtime = front.runtime
    branches = Branches(runtime)
    ways: dict[str, GoesBack] = {way: way for way in _WAYS}
    wanted = ways.get(argument.lower())
    if argument and wanted is None:
        front.say(f"/undo takes {', '.join(_WAYS)}, not {argument}.", "warning")
        return
    back = await runtime.files.plan_taking_back()
    can_redo = bool(back.restores) and wanted is None
    is_newest = not runtime.files.is_said_since_restore
    try:
        said = await branches.last_said()
        if can_redo and (said is None or (is_newest and not front.can_ask)):
            await _take_restore_back(front, back)
        elif said is None:
            tree = await runtime.sessions.whole_tree()
            front.say(tree.unread or "Nothing to undo yet.")
        else:
            await go_back(front, said, wanted, back if can_redo and front.can_ask else None)
            if not front.can_ask and wanted != "files":
                front.say("Last message undone.")
    except AgentTuiError as error:
        front.say(str(error), "warning")


async def go_back(
    front: Front,
    place: ContinuationPoint,
    wanted: GoesBack | None = None,
    redo: RestorePlan | None = None,
) -> None:
    """Go back to a place, with its files if the user wants that.

    Args:
        front: The front to ask in.
        place: The place to go back to.
        wanted: What goes back; None to ask if there is a choice.
        redo: The plan to undo the newest restore, if that is offered instead.

    Raises:
        AgentTuiError: It is not possible.
    """
    way, told = await choose_files(front, place, wanted, redo)
    try:
        if way in ("talk", "both"):
            front.show_events(await Branches(front.runtime).go_to(place))
    finally:
        front.show_events(told)


async def choose_files(
    front: Front,
    place: ContinuationPoint,
    wanted: GoesBack | None = None,
    redo: RestorePlan | None = None,
) -> tuple[GoesBack | None, Sequence[AgentEvent]]:
    """Ask whether to restore files to their state at a place, and restore them.

    Returns: What the user wants to go back (None for nothing), and the events to show at the end.

    Raises:
        AgentTuiError: It is not possible.
    """
    runtime = front.runtime
    plan = await runtime.files.plan_for(place)
    is_open = bool(plan.restores) or redo is not None
    way = wanted or (await _ask(front, place, plan, redo) if is_open else "talk")
    if way == "redo":
        await _take_restore_back(front, redo or RestorePlan(), is_chosen=True)
        return None, ()
    if way == "both":
        await Branches(runtime).check(place)  # otherwise only the files would go back
    if way in ("files", "both"):
        if plan.is_empty:
            front.say("No files have changed since.")
        return way, await runtime.files.carry_out(plan, tells_model=way == "files")
    if way == "talk" and not plan.restores:
        return way, runtime.files.notices_of_left(plan)
    return way, ()


async def _take_restore_back(front: Front, plan: RestorePlan, *, is_chosen: bool = False) -> None:
    files = front.runtime.files
    going_on = await files.plan_going_on()
    choices = [Choice(plan, f"yes: {_say_redo(front, plan)}", "y")]
    if going_on.restores:
        count = count_text(len(going_on.restores), "file")
        choices.append(Choice(going_on, f"finish it: {count} not restored yet", "g"))
    question = Question(
        "Undo the last restore of files?",
        ("The conversation stays.", *_facts(front, plan, await files.differences(plan))),
        tuple(choices),
    )
    is_open = front.can_ask and (not is_chosen or bool(going_on.restores))
    chosen = await front.ask(question) if is_open else plan
    if chosen is not None:
        front.show_events(await files.carry_out(chosen, tells_model=True))


async def _ask(
    front: Front, place: ContinuationPoint, plan: RestorePlan, redo: RestorePlan | None
) -> GoesBack | Literal["redo"] | None:
    if not front.can_ask:
        front.say("Files have changed since. Say what to undo, for example /undo both.", "warning")
        return None
    differences = await front.runtime.files.differences(plan)
    facts = (_say_where(place), *_facts(front, plan, differences))
    choices: list[Choice[GoesBack | Literal["redo", "show"]]] = [
        Choice("talk", _WAYS["talk"] if plan.restores else _ONE_MORE, "t")
    ]
    if plan.restores:
        choices.insert(0, Choice("both", _WAYS["both"], "b"))
        choices.append(Choice("files", _WAYS["files"], "f"))
        choices.append(Choice("show", "show the file changes", "d"))
    if redo is not None:
        newest = len(choices) if front.runtime.files.is_said_since_restore else 0
        choices.insert(newest, Choice("redo", f"redo files only: {_say_redo(front, redo)}", "r"))
    while True:
        answer = await front.ask(Question("What should go back?", facts, tuple(choices)))
        if answer != "show":
            return answer
        await front.show(_page(front, differences))


def _say_where(place: ContinuationPoint) -> str:
    """The place in the conversation, by the first words there."""
    entry = place.entry
    text = entry.message.text if isinstance(entry, MessageEntry) else ""
    words = printable_line(place.text if place.said else text, _WORDS_CHARS)
    where = "before your message" if place.said else "after the entry"
    return f"To {where}: {words}" if words else f"To {where}"


def _say_redo(front: Front, plan: RestorePlan) -> str:
    paths = [restore.path for restore in plan.restores]
    as_before = "as it was" if len(paths) == 1 else "as they were"
    named = display_paths(paths, front.runtime.conversation.cwd)
    return f"put {named} back {as_before} before the undo"


def _facts(front: Front, plan: RestorePlan, differences: tuple[Difference, ...]) -> tuple[str, ...]:
    cwd = front.runtime.conversation.cwd
    lines = [f"{display_path(str(each.path), cwd)}: {each.what}" for each in differences]
    lines += [f"{display_path(path, cwd)} stays: {why}" for path, why in plan.left]
    more = len(lines) - _SHOWN_FILES
    return (*lines[:_SHOWN_FILES], *((f"and {more} more",) if more > 0 else ()))


@dataclass(frozen=True, slots=True)
class DifferencePage:
    """How files would change, a section each."""

    files: tuple[FileDifference, ...]

    def make_screen(self) -> "Screen[None]":
        """A list with the diffs beside it."""
        from agent_tui.features.tree.diff_screen import DiffScreen

        return cast("Screen[None]", DiffScreen(self.files))  # what is picked is shown whole

    async def page(self) -> Page:
        """The files with their diffs."""
        return Page("What changed", tuple(file.section for file in self.files))


def _page(front: Front, differences: tuple[Difference, ...]) -> DifferencePage:
    cwd = front.runtime.conversation.cwd
    return DifferencePage(
        tuple(
            FileDifference(
                display_path(str(each.path), cwd), each.diff, "" if each.diff else each.what
            )
            for each in differences
        )
    )


@command(refusal="Cannot fork while the agent works. {stop}")
async def fork(front: Front, _argument: str) -> None:
    """Continue in a copy of this session."""
    try:
        front.show_events(await Branches(front.runtime).fork())
    except AgentTuiError as error:
        front.say(str(error), "warning")
