"""The resources of a server: what there is, and the tool with which the model reads it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.safe_text import strip_control_characters
from agent_tui.tools.mcp.remote_tools import PREFIX, RemoteTool

READ_RESOURCE: Final = "read_resource"
_MAX_LISTED = 200
_MAX_WORDS = 160


@dataclass(frozen=True, slots=True)
class RemoteResource:
    """A resource, or by its template many; `about` is what the server says of it, one line."""

    uri: str
    about: str = ""


def resource_tool(server: str) -> RemoteTool:
    """The tool that reads what `server` offers; its own name is that of no tool of the server."""
    uri: JsonObject = {"type": "string", "description": "Omit to list all"}
    spec = ToolSpec(
        name=f"{PREFIX}{server}__{READ_RESOURCE}",
        description=f"Read a resource of the server {server} by its URI, such as one from a link.",
        parameters={"type": "object", "properties": {"uri": uri}, "required": []},
    )
    return RemoteTool(server, READ_RESOURCE, spec, reads_resources=True)


def resource_result(answer: JsonObject) -> JsonObject:
    """An answer to ``resources/read`` as one to ``tools/call``; pictures become pictures."""
    contents = answer.get("contents")
    items = contents if isinstance(contents, list) else []
    content: list[JsonValue] = [_as_content(item) for item in items]
    return {"content": content}


def listing_result(listed: Sequence[RemoteResource]) -> JsonObject:
    """What there is to be read, as an answer to ``tools/call``."""
    lines = [f"{resource.uri}  {resource.about}".rstrip() for resource in listed]
    more = [f"and {len(lines) - _MAX_LISTED:,} more"] if len(lines) > _MAX_LISTED else []
    text = "\n".join([*lines[:_MAX_LISTED], *more]) or "It lists no resources."
    content: list[JsonValue] = [{"type": "text", "text": text}]
    return {"content": content}


def _as_content(item: JsonValue) -> JsonValue:
    match item:
        case {"blob": str(blob), "mimeType": str(kind)} if kind.startswith("image/"):
            return {"type": "image", "data": blob, "mimeType": kind}
        case {"text": str(text)}:
            return {"type": "text", "text": text}
        case _:
            return {"type": "resource", "resource": item}


def listed_resources(page: JsonObject, key: str, uri_key: str) -> tuple[RemoteResource, ...]:
    """The resources that an answer lists under `key`, their URIs under `uri_key`."""
    items = page.get(key)
    resources: list[RemoteResource] = []
    for item in items if isinstance(items, list) else ():
        uri = item.get(uri_key) if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(uri, str):
            continue
        words = item.get("description") or item.get("title") or item.get("name")
        said = strip_control_characters(words) if isinstance(words, str) else ""
        about = " ".join(said.split())[:_MAX_WORDS]
        resources.append(RemoteResource(" ".join(uri.split()), about))
    return tuple(resources)
