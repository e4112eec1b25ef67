"""Short ways to write down rollouts of Codex, of today's shape and of the one before."""

import json
from pathlib import Path
from typing import Any

WHEN = "2026-01-27T12:34:56.000Z"
CWD = "/repo/app"


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": WHEN, "type": kind, "payload": payload}


def head(**fields: Any) -> dict[str, Any]:
    facts = {"id": "019e-77", "timestamp": WHEN, "cwd": CWD, "model_provider": "openai"}
    return line("session_meta", **{**facts, **fields})


def turn(model: str = "gpt-5-codex", cwd: str = CWD) -> dict[str, Any]:
    return line("turn_context", cwd=cwd, model=model, approval_policy="never")


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return line("response_item", type=kind, **fields)


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return line("event_msg", type=kind, **fields)


def said(text: str, role: str = "user") -> dict[str, Any]:
    return item("message", role=role, content=[{"type": "input_text", "text": text}])


def replied(text: str) -> dict[str, Any]:
    return item("message", role="assistant", content=[{"type": "output_text", "text": text}])


def thought(text: str) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}]
    return item("reasoning", summary=summary, encrypted_content="gAAA")


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return item("function_call", name=name, arguments=json.dumps(arguments), call_id=call_id)


def output(call_id: str, written: Any) -> dict[str, Any]:
    return item("function_call_output", call_id=call_id, output=written)


def patch(call_id: str, text: str) -> dict[str, Any]:
    return item(
        "custom_tool_call", name="apply_patch", input=text, call_id=call_id, status="completed"
    )


def patched(call_id: str, text: str, exit_code: int = 0) -> dict[str, Any]:
    told = json.dumps({"output": text, "metadata": {"exit_code": exit_code}})
    return item("custom_tool_call_output", call_id=call_id, output=told)


def bare(described: dict[str, Any]) -> dict[str, Any]:
    """A line as files had it before lines had an envelope."""
    return dict(described["payload"])


def write(path: Path, *lines: dict[str, Any] | str) -> Path:
    texts = (text if isinstance(text, str) else json.dumps(text) for text in lines)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path
