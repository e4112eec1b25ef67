"""The tree of a session: going back in it, and forking it."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.attachments import without_attachments
from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.questions import Choice, Listing, Question
from agent_tui.commands.undo import choose_files, go_back
from agent_tui.errors import AgentTuiError
from agent_tui.messages import UserMessage
from agent_tui.safe_text import printable_line
from agent_tui.sessions.entries import MessageEntry

TreeAction: TypeAlias = Literal["go back", "summarise", "fork"]

_ACTIONS: tuple[Choice[TreeAction], ...] = (
    Choice("go back", "go back and rephrase it", "b"),
    Choice("summarise", "go back, with a summary of what came after it", "s"),
    Choice("fork", "continue from there in a copy of the session", "f"),
)
_BUSY = "Cannot go back while the agent works. Use /abort first."


@dataclass(frozen=True, slots=True)
class TreeChoice:
    """The entry that was picked, and what is to be done; None is to be asked."""

    entry_id: str
    action: TreeAction | None


@command(aliases=("rewind",), refusal=_BUSY, needs="list")
async def tree(front: Front, _argument: str) -> None:
    """Go back to an earlier message."""
    runtime = front.runtime
    if not runtime.conversation.log.entries:
        front.say("Nothing to go back to yet.")
        return
    picked = await front.pick(PickableEntries(runtime))
    front.show_events(())  # marks may have changed what the bar shows
    if picked is None or isinstance(picked, str):
        return
    action = picked.action or await front.ask(Question("Go back or fork?", (), _ACTIONS))
    try:
        match action:
            case "go back":
                await go_back(front, await runtime.branches.place_of(picked.entry_id))
            case "fork":
                front.show_events(await runtime.branches.fork(picked.entry_id))
            case "summarise":
                place = await runtime.branches.place_of(picked.entry_id)
                way, told = await choose_files(front, place)
                if way in ("talk", "both"):
                    await front.run(runtime.go_back_with_summary(picked.entry_id))
                front.show_events(told)
            case None:
                pass
    except AgentTuiError as error:
        front.say(str(error), "warning")


@command(refusal="Cannot fork while the agent works. Use /abort first.")
async def fork(front: Front, _argument: str) -> None:
    """Continue in a copy of this session."""
    try:
        front.show_events(await front.runtime.branches.fork())
    except AgentTuiError as error:
        front.say(str(error), "warning")


@dataclass(frozen=True, slots=True)
class PickableEntries:
    """The entries one can go back to."""

    runtime: AgentRuntime

    async def listing(self) -> Listing[TreeChoice]:
        """What the person said on this branch, before compactions too, the newest first."""
        tree = await self.runtime.branches.whole_tree()
        said = [
            Choice(
                TreeChoice(entry.id, None),
                printable_line(without_attachments(entry.message.text)),
                details="before the compaction" * bool(tree.place(entry.id).later),
            )
            for entry in reversed(tree.path)
            if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
        ]
        nothing = "No message in this session to go back to."
        title = "Go back to a message"
        if tree.unread:
            title, nothing = f"{title} ({tree.unread})", tree.unread
        return Listing(title, tuple(said), nothing)
