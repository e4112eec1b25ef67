"""Sessions that were compacted one into the next."""

from collections.abc import Callable
from pathlib import Path

from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    TextContent,
    ToolCall,
    UserMessage,
)
from agent_tui.providers.base import ModelRequest
from agent_tui.sessions.entries import CompactionEntry, Entry, Header, MessageEntry
from agent_tui.sessions.store import SessionStore
from tests.support.compaction_ways import SUMMARY

MESSAGES = 25
FINE = AssistantMessage(content=(TextContent(text="Fine."),))


def writing(*versions: str) -> Callable[[ModelRequest], Reply]:
    """A model that writes the next of `versions` into a.txt when it is told to write."""
    left = list(versions)

    def answer(request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(text=SUMMARY)
        newest = request.messages[-1]
        if isinstance(newest, UserMessage) and newest.text.startswith("Write"):
            version = left.pop(0)
            arguments: JsonObject = {"path": "a.txt", "content": version}
            call = ToolCall(id=f"w{version}", name="write", arguments=arguments)
            return Reply(tool_calls=(call,))
        return Reply(text="Fine.")

    return answer


def talk_of(number: int) -> list[Entry]:
    return [
        MessageEntry(message=message, timestamp=f"2026-01-0{number}T12:{n:02}:0{at}.000Z")
        for n in range(MESSAGES)
        for at, message in enumerate(
            (
                UserMessage(content=f"q{number}-{n}"),
                AssistantMessage(content=(TextContent(text="Fine."),)),
            )
        )
    ]


def begun(number: int) -> CompactionEntry:
    return CompactionEntry(
        id=f"begun{number}",
        timestamp=f"2026-01-0{number}T06:00:00.000Z",
        summary="## Goal",
        first_kept_entry_id=f"begun{number}",
        tokens_before=900,
        tokens_after=90,
    )


def write_chain(root: Path, cwd: Path, sessions: int) -> Path:
    """So many sessions, each compacted from the one before; it kept the last exchange."""
    store = SessionStore(root)
    header = Header(cwd=str(cwd), provider="scripted", model_id="test")
    with store.create(header) as log:
        log.append_many(talk_of(1))
    for number in range(2, sessions + 1):
        kept = log.path_entries()[-2:]
        with store.create_child(log, (begun(number), *kept), None) as log:
            log.append_many(talk_of(number))
    assert log.path is not None
    return log.path
