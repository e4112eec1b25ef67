"""Building sessions in memory: entries in order, with ids and times that tell them apart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    CallEnding,
    FileTouches,
    JsonObject,
    Message,
    StopReason,
    TextContent,
    Todo,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agent_tui.sessions.entries import CompactionEntry, CustomMessageEntry, Entry, MessageEntry
from agent_tui.sessions.outputs import action_of

START_MS = 1_700_000_000_000
MODEL = "scripted/one"

EntryT = TypeVar("EntryT", MessageEntry, CompactionEntry, CustomMessageEntry)


def iso(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Talk:
    """A session that grows one entry at a time; a second passes with each."""

    cwd: str = "/project"
    entries: list[Entry] = field(default_factory=list)
    now_ms: int = START_MS
    prefix: str = "e"

    @property
    def path(self) -> tuple[Entry, ...]:
        return tuple(self.entries)

    def put(self, entry: EntryT) -> EntryT:
        self.now_ms += 1_000
        changes: dict[str, object] = {
            "id": entry.id or f"{self.prefix}{len(self.entries):07d}",
            "parent_id": self.entries[-1].id if self.entries else None,
        }
        placed = entry.model_copy(update=changes)
        self.entries.append(placed)
        return placed

    def message(self, make: Callable[[int], Message]) -> MessageEntry:
        ms = self.now_ms + 1_000
        return self.put(MessageEntry(message=make(ms), timestamp=iso(ms)))

    def user(self, text: str) -> MessageEntry:
        return self.message(lambda ms: UserMessage(content=text, timestamp=ms))

    def reply(
        self,
        text: str,
        *calls: ToolCall,
        tokens: int = 0,
        stop: StopReason | None = None,
        model: str = MODEL,
        is_estimate: bool = False,
    ) -> MessageEntry:
        parts = (*([TextContent(text=text)] if text else []), *calls)
        return self.message(
            lambda ms: AssistantMessage(
                content=parts,
                provider="scripted",
                model=model,
                usage=Usage(input=tokens, total_tokens=tokens, is_estimate=is_estimate),
                stop_reason=stop or ("toolUse" if calls else "stop"),
                timestamp=ms,
            )
        )

    def result(
        self,
        call: ToolCall,
        text: str = "done",
        *,
        is_error: bool = False,
        files: FileTouches | None = None,
        todos: Sequence[Todo] | None = None,
        exit_code: int | None = None,
        ending: CallEnding = "",
        is_foreign: bool = False,
        details: ToolDetails | None = None,
    ) -> MessageEntry:
        details = details or ToolDetails(
            ending=ending,
            exit_code=exit_code,
            files=files or FileTouches(),
            todos=tuple(todos) if todos is not None else None,
        )
        return self.message(
            lambda ms: ToolResultMessage(
                tool_call_id=call.id,
                tool_name=call.name,
                content=(TextContent(text=text),),
                is_error=is_error,
                details=None if is_foreign else details.model_dump(mode="json", by_alias=True),
                timestamp=ms,
            )
        )

    def tool(self, name: str, arguments: JsonObject, text: str = "done", **kwargs: object) -> None:
        """A reply with one call, and its result."""
        call = ToolCall(id=f"call-{len(self.entries)}", name=name, arguments=arguments)
        action, kinds = action_of(call), {"read": "read", "write": "written", "edit": "edited"}
        if action.path and action.kind in kinds and not kwargs.get("is_error"):
            touched = FileTouches.model_validate({kinds[action.kind]: (action.path,)})
            kwargs = {"files": touched, **kwargs}
        self.reply("", call)
        self.result(call, text, **kwargs)  # pyright: ignore[reportArgumentType]

    def bash(
        self, command: str, output: str = "", exit_code: int | None = 0, *, cancelled: bool = False
    ) -> MessageEntry:
        return self.message(
            lambda ms: BashExecutionMessage(
                command=command,
                output=output,
                exit_code=exit_code,
                cancelled=cancelled,
                timestamp=ms,
            )
        )

    def compaction(self, summary: str, first_kept: str = "", **kwargs: object) -> CompactionEntry:
        entry = CompactionEntry(
            summary=summary, first_kept_entry_id=first_kept, timestamp=iso(self.now_ms + 1_000)
        )
        placed = self.put(entry.model_copy(update=kwargs))
        if not first_kept:
            placed = placed.model_copy(update={"first_kept_entry_id": placed.id})
            self.entries[-1] = placed
        return placed
