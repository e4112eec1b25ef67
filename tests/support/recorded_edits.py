"""The edits of recorded sessions: the file before, what was asked for, the file after."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.trajectories import trajectories, trajectory


@dataclass(frozen=True, slots=True)
class RecordedEdit:
    """One that went through. `before` and `after` are the file, or as much as was recorded."""

    before: str
    old: str
    new: str
    all: bool
    after: str


def recorded_edits() -> list[RecordedEdit]:
    """All of them; none where the folder is missing."""
    found: list[RecordedEdit] = []
    for name in trajectories():
        if name.startswith("claude-code/"):
            found.extend(_edits_of_claude_code(name))
        elif name.startswith("pi/"):
            found.extend(_edits_of_pi(name))
    return found


def _edits_of_claude_code(name: str) -> Iterator[RecordedEdit]:
    for line in trajectory(name).read_text().splitlines():
        result = json.loads(line).get("toolUseResult")
        if isinstance(result, dict) and "oldString" in result:
            old, new, is_all = result["oldString"], result["newString"], result["replaceAll"]
            before = result["originalFile"]
            after = before.replace(old, new, -1 if is_all else 1)
            yield RecordedEdit(before, old, new, is_all, after)


def _edits_of_pi(name: str) -> Iterator[RecordedEdit]:
    """pi keeps a diff with some lines around: its two sides stand for the file.

    Those whose diff leaves out some of the lines replaced are passed over.
    """
    calls = {}
    for line in trajectory(name).read_text().splitlines():
        message = json.loads(line).get("message") or {}
        if message.get("role") == "assistant":
            calls |= {part["id"]: part for part in message["content"] if "arguments" in part}
        diff = (message.get("details") or {}).get("diff", "")
        call = calls.get(message.get("toolCallId"))
        if diff and call and call["name"] == "edit":
            arguments = call["arguments"]
            before, after = _side(diff, "-"), _side(diff, "+")
            old, new = arguments["oldText"], arguments["newText"]
            if before.count(old) == 1 and before.replace(old, new) == after:
                yield RecordedEdit(before, old, new, False, after)


def _side(diff: str, sign: str) -> str:
    lines = (re.match(rf"([ {sign}]) *\d+ ?(.*)", line) for line in diff.split("\n"))
    return "".join(f"{found[2]}\n" for found in lines if found)
