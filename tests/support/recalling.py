"""Saying things for `recall` to find, and reading what it gives."""

from collections.abc import Sequence

from agent_tui.sessions.entries import Entry, Header
from agent_tui.sessions.lineage.chain import PastSessions, ProjectSessions, SessionChain
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.base import ToolContext
from tests.support.talk import Talk
from tests.support.tool_calls import call_tool


def look_in(context: ToolContext, entries: Sequence[Entry], parent: str | None = None) -> None:
    """Make `entries` what was said."""
    log = SessionLog.create(None, Header(parent_session=parent))
    log.append_many(entries)
    store = SessionStore(context.cwd / "sessions", "none")
    project = ProjectSessions(store, context.cwd)
    context.history = SessionChain(log, PastSessions(store), project)


async def recall(context: ToolContext, **arguments: str | int) -> str:
    output = await call_tool(context, "recall", dict(arguments))
    assert not output.is_error
    return output.for_model


def body(text: str) -> str:
    """What was recalled, without the line above it."""
    return text.partition("\n")[2]


def hits(text: str) -> list[str]:
    """The ids of what was found, best first."""
    return [line.split(" · ")[0] for line in text.split("\n") if " · line " in line]


def small_talk() -> Talk:
    """A small session; its entries have ids e0000000, e0000001 and so on."""
    talk = Talk()
    talk.user("Find out why the March file crashes. Never touch data/.")
    talk.tool("read", {"path": "tally.py"}, "import csv\n\ndef total(rows):\n    return 1")
    talk.tool("bash", {"command": "pytest -q"}, "1 failed\nValueError: '1,250.00'", is_error=True)
    talk.tool(
        "edit",
        {"path": "tally.py", "edits": [{"old": "return 1\n# end", "new": "return 2"}]},
        "Edited.",
    )
    talk.bash("git status", "nothing to commit")
    talk.reply("It was the comma.")
    return talk
