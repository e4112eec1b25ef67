"""Going back: with what was said, with what was changed in files, or with both."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from agent_tui.agent.session.restoring import Difference, shown_path
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.questions import Choice, Question
from agent_tui.commands.core.short_words import counted
from agent_tui.commands.diff import Change, DiffPage
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent
from agent_tui.messages import UserMessage
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.replay.file_changes import RestorePlan

GoesBack: TypeAlias = Literal["talk", "files", "both"]

_WAYS: Final[dict[GoesBack, str]] = {
    "both": "what was said, and the files",
    "talk": "only what was said; the files stay as they are",
    "files": "only the files; the conversation goes on here",
}
_BUSY = "Cannot go back while the agent works. Use /abort first."
_SHOWN_FILES = 12


@command(
    "[talk | files | both]",
    refusal=_BUSY,
    completions=lambda _front: tuple(Completion(way, text) for way, text in _WAYS.items()),
)
async def undo(front: Front, argument: str) -> None:
    """Take back the last message, what it changed in files, or both."""
    runtime = front.runtime
    ways: dict[str, GoesBack] = {way: way for way in _WAYS}
    wanted = ways.get(argument.lower())
    if argument and wanted is None:
        front.say(f"/undo takes {', '.join(_WAYS)}, not {argument}.", "warning")
        return
    back = await runtime.files.plan_taking_back()
    said = _last_said(front)
    try:
        if not back.is_empty and not runtime.files.is_said_since_restore and wanted is None:
            await _take_restore_back(front, back)
        elif said is None:
            front.say("Nothing was said yet that could be taken back.")
        else:
            await go_back(front, said, wanted)
            if not front.can_ask and wanted != "files":
                front.say("What was said last is taken back.")
    except AgentTuiError as error:
        front.say(str(error), "warning")


async def go_back(front: Front, entry_id: str, wanted: GoesBack | None = None) -> None:
    """Go back to an entry, with its files where the person wants that.

    Args:
        front: Where the person is.
        entry_id: Where to.
        wanted: What goes back; None asks where there is something to ask about.

    Raises:
        AgentTuiError: It cannot be done.
    """
    way, told = await choose_files(front, entry_id, wanted)
    if way in ("talk", "both"):
        front.show_events(await front.runtime.branches.go_back(entry_id))
    front.show_events(told)


async def choose_files(
    front: Front, entry_id: str, wanted: GoesBack | None = None
) -> tuple[GoesBack | None, Sequence[AgentEvent]]:
    """Ask whether files go back to where they were at an entry, and put them back.

    Returns:
        What the person wants to go back, None for nothing; and what is to be told at the end.

    Raises:
        AgentTuiError: It cannot be done.
    """
    runtime = front.runtime
    plan = await runtime.files.plan_for(runtime.branches.leaf_for(entry_id))
    way = wanted or (await _ask(front, plan) if plan.restores else "talk")
    if way in ("files", "both"):
        if plan.is_empty:
            front.say("No file was changed since.")
        return way, await runtime.files.carry_out(plan, tells_model=way == "files")
    if way == "talk" and not plan.restores:
        return way, runtime.files.told_of_left(plan)
    return way, ()


async def _take_restore_back(front: Front, plan: RestorePlan) -> None:
    files = front.runtime.files
    going_on = await files.plan_going_on()
    choices = [Choice(plan, f"yes: {counted(len(plan.restores), 'file')} as before that", "y")]
    if going_on.restores:
        count = counted(len(going_on.restores), "file")
        choices.append(Choice(going_on, f"go on with it: {count} are not put back yet", "g"))
    question = Question(
        "Take back that files were put back?",
        _facts(front, plan, await files.differences(plan)),
        tuple(choices),
    )
    chosen = await front.ask(question) if front.can_ask else plan
    if chosen is not None:
        front.show_events(await files.carry_out(chosen, tells_model=True))


async def _ask(front: Front, plan: RestorePlan) -> GoesBack | None:
    if not front.can_ask:
        front.say("Files were changed since: say what goes back, as /undo both.", "warning")
        return None
    differences = await front.runtime.files.differences(plan)
    choices: tuple[Choice[GoesBack | Literal["show"]], ...] = (
        Choice("both", _WAYS["both"], "b"),
        Choice("talk", _WAYS["talk"], "t"),
        Choice("files", _WAYS["files"], "f"),
        Choice("show", "show what changes in the files", "d"),
    )
    while True:
        answer = await front.ask(
            Question("What goes back?", _facts(front, plan, differences), choices)
        )
        if answer != "show":
            return answer
        await front.show(_page(front, differences))


def _facts(front: Front, plan: RestorePlan, differences: tuple[Difference, ...]) -> tuple[str, ...]:
    cwd = front.runtime.conversation.cwd
    lines = [f"{shown_path(str(each.path), cwd)}: {each.what}" for each in differences]
    lines += [f"{shown_path(path, cwd)} stays: {why}" for path, why in plan.left]
    more = len(lines) - _SHOWN_FILES
    return (*lines[:_SHOWN_FILES], *((f"and {more} more",) if more > 0 else ()))


def _page(front: Front, differences: tuple[Difference, ...]) -> DiffPage:
    cwd = front.runtime.conversation.cwd
    return DiffPage(
        tuple(
            Change(shown_path(str(each.path), cwd), each.diff, () if each.diff else (each.what,))
            for each in differences
        ),
        (),
    )


def _last_said(front: Front) -> str | None:
    """The entry of the person's last message on this branch."""
    for entry in reversed(front.runtime.conversation.log.path_entries()):
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
            return entry.id
    return None
