"""Lines of Claude Code's session files, written down in short."""

import json
from pathlib import Path
from typing import Any

WHEN = "2026-02-12T16:02:25.284Z"
FOLDER = "/home/someone/project"


def line(kind: str, uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "isSidechain": False,
        "cwd": FOLDER,
        "sessionId": "5e551010-0000-4000-8000-000000000001",
        "timestamp": WHEN,
        **fields,
    }


def said(uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    return line("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def replied(
    uuid: str, parent: str | None, *blocks: dict[str, Any], reply: str = "", **fields: Any
) -> dict[str, Any]:
    message = {
        "role": "assistant",
        "id": reply or f"msg_{uuid}",
        "model": fields.pop("model", "claude-opus-4-6"),
        "content": list(blocks),
        "stop_reason": fields.pop("stop_reason", None),
        "usage": {
            "input_tokens": 3,
            "output_tokens": 9,
            "cache_read_input_tokens": 20,
            "cache_creation_input_tokens": 100,
        },
    }
    return line("assistant", uuid, parent, message=message, **fields)


def text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call(call_id: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(
    uuid: str,
    parent: str,
    call_id: str,
    content: Any = "done",
    is_error: bool = False,
    **fields: Any,
) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return said(uuid, parent, [{**block, "is_error": is_error}], **fields)


def boundary(uuid: str, after: str | None, **facts: Any) -> dict[str, Any]:
    return line(
        "system",
        uuid,
        None,
        logicalParentUuid=after,
        subtype="compact_boundary",
        compactMetadata={"trigger": "auto", "preTokens": 170_000, **facts},
    )


def write(path: Path, *lines: dict[str, Any] | str) -> Path:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
    path.write_text("".join(f"{one}\n" for one in texts), encoding="utf-8")
    return path
