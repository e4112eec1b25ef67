"""Messages of opencode 2.x (``session_message``), converted to the form of 1.x.

1.x has messages with a role, and their parts. 2.x has messages of several types, with one kind of
content each.
"""

from collections.abc import Iterator

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.sessions.importers.fields import as_list, as_object, as_text, text_at

_SILENT = frozenset({"agent-switched", "idle", "location-switched", "model-switched"})
_ABORTED = frozenset({"aborted", "interrupted"})

ConvertedMessage = tuple[JsonObject, tuple[JsonObject, ...]]
"""The facts of a message, and its parts."""


def converted(kind: str, message: JsonObject) -> Iterator[ConvertedMessage]:
    """The messages of 1.x that say the same as one of 2.x; none for one that no model saw.

    Args:
        kind: Its type.
        message: Its content, with its id.
    """
    facts: JsonObject = {"id": text_at(message, "id"), "time": as_object(message.get("time"))}
    asked: JsonObject = {**facts, "role": "user"}
    match kind:
        case "user":
            yield asked, tuple(_user_parts(message))
        case "synthetic" | "skill":
            yield asked, (_told(text_at(message, "text")),)
        case "system":
            yield asked, ({"type": "system", "text": text_at(message, "text")},)
        case "shell":
            yield asked, (_told(_shell_text(message)),)
        case "assistant":
            parts = tuple(map(_reply_part, map(as_object, as_list(message.get("content")))))
            yield {**message, "role": "assistant", "error": _error(message)}, parts
        case "compaction" if text_at(message, "summary"):
            yield asked, ({"type": "compaction", "auto": message.get("reason") != "manual"},)
            text = "\n\n".join(filter(None, (text_at(message, "summary"), _recent(message))))
            yield {**facts, "role": "assistant", "summary": True}, ({"type": "text", "text": text},)
        case "compaction":
            pass
        case _ if kind not in _SILENT:
            yield {**message, "role": kind}, ()
        case _:
            pass


def _user_parts(message: JsonObject) -> Iterator[JsonObject]:
    yield {"type": "text", "text": text_at(message, "text")}
    yield from map(_file, as_list(message.get("files")))
    yield from ({**as_object(agent), "type": "agent"} for agent in as_list(message.get("agents")))


def _told(text: str) -> JsonObject:
    return {"type": "text", "text": text, "synthetic": True}


def _shell_text(message: JsonObject) -> str:
    """A command that the user ran, with what it printed."""
    output = message.get("output")
    printed = as_text(output) or text_at(as_object(output), "output")
    return f"The user ran `{text_at(message, 'command')}`:\n\n{printed}"


def _recent(message: JsonObject) -> str:
    recent = text_at(message, "recent")
    return f"## The messages before\n\n{recent}" if recent else ""


def _reply_part(part: JsonObject) -> JsonObject:
    if part.get("type") != "tool":
        return part
    state = as_object(part.get("state"))
    content = [as_object(item) for item in as_list(state.get("content"))]
    metadata: JsonObject = {
        **as_object(state.get("structured")),
        **as_object(state.get("metadata")),
    }
    shaped: JsonObject = {
        "status": state.get("status"),
        "input": as_object(state.get("input")),
        "output": "\n".join(text for item in content if (text := text_at(item, "text"))),
        "error": text_at(as_object(state.get("error")), "message", "type"),
        "attachments": [_file(item) for item in content if item.get("type") == "file"],
        "metadata": metadata,
        "time": {"end": as_object(part.get("time")).get("completed")},
    }
    return {"type": "tool", "callID": part.get("id"), "tool": part.get("name"), "state": shaped}


def _file(given: JsonValue) -> JsonObject:
    file = as_object(given)
    source = as_object(file.get("source"))
    return {
        "type": "file",
        "url": text_at(file, "uri", "url") or text_at(source, "uri", "url"),
        "mime": text_at(file, "mime"),
        "filename": text_at(file, "name", "filename"),
    }


def _error(message: JsonObject) -> JsonObject:
    error = as_object(message.get("error"))
    kind = text_at(error, "type")
    if not error:
        return {}
    name = "MessageAbortedError" if kind in _ABORTED else kind or "error"
    return {"name": name, "data": {"message": text_at(error, "message")}}
