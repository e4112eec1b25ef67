"""What a recorded file holds, counted from its JSON without any code of the program."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Counts:
    """`spoken`: messages that are not replies or results, whoever wrote them."""

    spoken: int
    replies: int
    calls: int
    results: int
    compactions: int = 0


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


def claude(path: Path) -> Counts:
    whole = _lines(path)
    given = [line for line in whole if line.get("operation") == "remove"]
    lines = [line for line in whole if line["type"] in ("user", "assistant")]
    assert not any(line["isSidechain"] for line in lines)
    users = [line for line in lines if line["type"] == "user"]
    summaries = [line for line in users if line.get("isCompactSummary")]
    asked = [line["message"] for line in lines if line["type"] == "assistant"]
    parts = [line["message"]["content"] for line in users if line not in summaries]
    answers = [p for p in parts if isinstance(p, list) and p[0]["type"] == "tool_result"]
    return Counts(
        spoken=len(parts) - len(answers) + len(given),
        replies=len({message["id"] for message in asked}),
        calls=sum(b["type"] == "tool_use" for message in asked for b in message["content"]),
        results=sum(len(answer) for answer in answers),
        compactions=len(summaries),
    )


def pi(path: Path) -> Counts:
    lines = _lines(path)
    told = [line["message"] for line in lines if line["type"] == "message"]
    roles = [message["role"] for message in told]
    return Counts(
        spoken=roles.count("user"),
        replies=roles.count("assistant"),
        calls=sum(
            part["type"] == "toolCall"
            for message in told
            if message["role"] == "assistant"
            for part in message["content"]
        ),
        results=roles.count("toolResult"),
        compactions=sum(line["type"] == "compaction" for line in lines),
    )


def mini_swe_agent(path: Path) -> Counts:
    run = json.loads(path.read_bytes())
    messages = run["messages"] if isinstance(run, dict) else run
    fences = [
        len(re.findall(r"^```(?:bash|mswea_bash_command)$", m["content"], re.MULTILINE))
        for m in messages
        if m["role"] == "assistant"
    ]
    users = sum(message["role"] == "user" for message in messages)
    calls = fences.count(1)
    return Counts(spoken=users - calls, replies=len(fences), calls=calls, results=calls)


def swe_agent(path: Path) -> Counts:
    history = json.loads(path.read_bytes())["history"]
    roles = [message["role"] for message in history]
    return Counts(
        spoken=roles.count("user"),
        replies=roles.count("assistant"),
        calls=sum(len(message.get("tool_calls") or ()) for message in history),
        results=roles.count("tool"),
    )


def openhands(path: Path) -> Counts:
    events = (
        _lines(path)[0]["history"] if path.suffix == ".jsonl" else json.loads(path.read_bytes())
    )
    actions = [event for event in events if "action" in event]
    said = [event for event in actions if event["action"] == "message"]
    calls = [
        event
        for event in actions
        if event not in said and (event["action"] != "finish" or "tool_call_metadata" in event)
    ]
    return Counts(
        spoken=len(said),
        replies=len(actions) - len(said),
        calls=len(calls),
        results=sum("observation" in event for event in events),
    )


COUNTED: dict[str, Callable[[Path], Counts]] = {
    "claude": claude,
    "pi": pi,
    "mini-swe-agent": mini_swe_agent,
    "swe-agent": swe_agent,
    "openhands": openhands,
}
