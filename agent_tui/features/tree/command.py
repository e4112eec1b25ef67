"""``/tree``: pick an earlier message, and go back to it or fork there."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.attachments import without_attachments
from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Choice, Front, Listing, Question
from agent_tui.errors import AgentTuiError
from agent_tui.features.tree.branches import Branches
from agent_tui.features.tree.choice import TreeAction, TreeChoice
from agent_tui.features.tree.undo import BUSY, choose_files, go_back
from agent_tui.messages import UserMessage
from agent_tui.safe_text import printable_line
from agent_tui.sessions.entries import MessageEntry

if TYPE_CHECKING:  # a run without the screen imports no Textual
    from textual.screen import Screen

_ACTIONS: tuple[Choice[TreeAction], ...] = (
    Choice("go back", "go back and rephrase it", "b"),
    Choice("summarise", "go back, with a summary of what came after it", "s"),
    Choice("fork", "continue from there in a copy of the session", "f"),
)


@command(aliases=("rewind",), refusal=BUSY, needs="list")
async def tree(front: Front, _argument: str) -> None:
    """Go back to an earlier message."""
    runtime = front.runtime
    branches = Branches(runtime)
    if not runtime.conversation.log.entries:
        front.say("Nothing to go back to yet.")
        return
    picked = await front.pick(PickableEntries(runtime))
    front.show_events(())  # marks may change what the status bar shows
    if picked is None or isinstance(picked, str):
        return
    action = picked.action or await front.ask(Question("Go back or fork?", (), _ACTIONS))
    try:
        match action:
            case "go back":
                await go_back(front, await branches.place_of(picked.entry_id))
            case "fork":
                front.show_events(await branches.fork(picked.entry_id))
            case "summarise":
                place = await branches.place_of(picked.entry_id)
                way, told = await choose_files(front, place)
                if way in ("talk", "both"):
                    await front.run(branches.go_back_with_summary(picked.entry_id))
                front.show_events(told)
            case None:
                pass
    except AgentTuiError as error:
        front.say(str(error), "warning")


@dataclass(frozen=True, slots=True)
class PickableEntries:
    """The entries that the user can go back to."""

    runtime: AgentRuntime

    def make_picker(self) -> "Screen[object]":
        """The tree, as a screen."""
        from agent_tui.features.tree.screen import TreeScreen

        return cast("Screen[object]", TreeScreen(Branches(self.runtime)))

    async def listing(self) -> Listing[TreeChoice]:
        """The user's messages on this branch, also from before compactions, newest first."""
        tree = await self.runtime.sessions.whole_tree()
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
