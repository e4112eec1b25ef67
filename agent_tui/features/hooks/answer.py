"""Read what a hook answers: an exit code with JSON or plain text.

Exit code 0: what it printed counts. 2: it refuses, with what it wrote to stderr. Any other: it
failed, which is reported and changes nothing. An answer can refuse and add text, never allow:
``allow`` counts as no answer.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from pydantic import JsonValue

from agent_tui.config import HookEvent
from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject
from agent_tui.safe_paths import find_program
from agent_tui.tools.processes.environment import outside_environ, shell_environ
from agent_tui.tools.processes.keeper import READ_BYTES, ProcessKeeper, TalkingChild
from agent_tui.tools.processes.shell import ending_of

_MAX_BYTES = 1_000_000
"""Of each output stream; the rest is read and dropped."""

_DRAIN_S = 0.5
"""How long to keep reading if a hook has ended but a process it started holds its output open."""


@dataclass(frozen=True, slots=True)
class HookRun:
    """How a hook ended.

    `exit_code` is negative for a signal. `problem` says why there is none; empty if the hook ended.
    """

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    problem: str = ""


async def run_command(
    keeper: ProcessKeeper,
    command: str,
    given: str,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    timeout_s: float,
) -> HookRun:
    """Run `command` with bash (or sh if bash is missing); never raises for what it does.

    All processes it started are ended too, also on cancellation.

    Args:
        keeper: Starts it.
        command: Shell text.
        given: Its standard input.
        cwd: Its working folder.
        environ: Its environment; variables that steer a shell are left out.
        timeout_s: When it is stopped.
    """
    shell = find_program("bash", environ.get("PATH")) or "/bin/sh"
    try:
        async with keeper.talking_child(
            [shell, "-c", command], cwd=cwd, environ=shell_environ(outside_environ(environ))
        ) as child:
            child.stdin.write(given.encode("utf-8", "replace"))
            child.stdin.close()
            return await _outcome(child, timeout_s)
    except ToolError as error:
        return HookRun(problem=str(error))
    except ValueError as error:  # a NUL in the environment
        return HookRun(problem=f"cannot be started: {error}")


async def _outcome(child: TalkingChild, timeout_s: float) -> HookRun:
    outputs = (bytearray(), bytearray())
    streams = (child.stdout, child.stderr)
    reads = [
        asyncio.create_task(_read(stream, output))
        for stream, output in zip(streams, outputs, strict=True)
    ]
    try:
        await asyncio.wait((child.ending,), timeout=timeout_s)
        if not child.ending.done():
            return HookRun(problem=f"timed out after {timeout_s:g} s")
        await asyncio.wait(reads, timeout=_DRAIN_S)
    finally:
        for read in reads:
            read.cancel()
    stdout, stderr = (bytes(output).decode("utf-8", "replace") for output in outputs)
    return HookRun(child.ending.result(), stdout, stderr)


async def _read(stream: asyncio.StreamReader, output: bytearray) -> None:
    while chunk := await stream.read(READ_BYTES):
        output += chunk[: _MAX_BYTES - len(output)]


_REFUSES = 2
_ADD_TEXT = frozenset({"SessionStart", "UserPromptSubmit", "PreCompact"})
"""Events for which plain text that a hook prints goes to the model."""

_CAN_REFUSE = frozenset({"UserPromptSubmit", "PreToolUse", "PostToolUse", "PreCompact", "Stop"})
_NO_REASON = "no reason given"
_DENYING = frozenset({"block", "deny"})


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The answer of one hook, or of all hooks that ran for one event.

    Args:
        refusal: Why the action is refused; at PostToolUse what is wrong with the result, at Stop
            why the model should continue. Empty: no objection.
        doubt: Why the user should be asked first; empty: no need.
        added: What the model is told, or at PreCompact what is kept.
        stops: Why the turn ends here; empty: it does not.
        updated_input: Other arguments for a call.
        messages: What the user is told.
        problem: Why the answer could not be read, or what went wrong; empty if nothing.
    """

    refusal: str = ""
    doubt: str = ""
    added: str = ""
    stops: str = ""
    updated_input: JsonObject | None = None
    messages: tuple[str, ...] = ()
    problem: str = ""

    def outcome(self, event: HookEvent) -> str:
        """The result of a hook on `event`, in a word or a line."""
        if self.problem:
            return self.problem
        if self.refusal:
            did = {"PostToolUse": "found", "Stop": "made the model continue"}.get(event, "refused")
            return f"{did}: {self.refusal}"
        if self.doubt:
            return f"asks you first: {self.doubt}"
        return "added text" if self.added else "ok"


def read_answer(event: HookEvent, run: HookRun) -> HookAnswer:
    """Interpret the output of a hook that ran on `event`."""
    if run.problem:
        return HookAnswer(problem=run.problem)
    if run.exit_code == _REFUSES:
        why = run.stderr.strip() or run.stdout.strip() or _NO_REASON
        return HookAnswer(refusal=why) if event in _CAN_REFUSE else HookAnswer(messages=(why,))
    if run.exit_code:
        how = ending_of(run.exit_code, 0)
        said = run.stderr.strip().partition("\n")[0]
        return HookAnswer(problem=": ".join(filter(None, (how, said))))
    printed = run.stdout.strip()
    if not printed.startswith("{"):
        return HookAnswer(added=printed if event in _ADD_TEXT else "")
    try:
        said = cast("JsonValue", json.loads(printed))
        assert isinstance(said, dict)
        return _from_json(event, said)
    except (ValueError, RecursionError) as error:
        return HookAnswer(problem=f"its output is not usable: {error}")


def merge_answers(answers: Sequence[HookAnswer]) -> HookAnswer:
    """Merge the answers of all hooks on one event; the strictest one wins."""
    inputs = [one.updated_input for one in answers if one.updated_input is not None]
    return HookAnswer(
        refusal="\n".join(one.refusal for one in answers if one.refusal),
        doubt="; ".join(one.doubt for one in answers if one.doubt),
        added="\n".join(one.added for one in answers if one.added),
        stops=next((one.stops for one in answers if one.stops), ""),
        updated_input=inputs[-1] if inputs else None,
        messages=tuple(message for one in answers for message in one.messages),
    )


def _from_json(event: HookEvent, said: JsonObject) -> HookAnswer:
    """Interpret the JSON that a hook printed.

    Raises:
        ValueError: A part of it is of the wrong kind; says which.
    """
    own = said.get("hookSpecificOutput") or {}
    if not isinstance(own, dict):
        raise ValueError("hookSpecificOutput must be an object")
    if (named := own.get("hookEventName", event)) != event:
        raise ValueError(f"its hookEventName is {named!r}, but the event is {event}")
    decision: str = _text(said, "decision")
    reason = _text(said, "reason")
    permission: Literal["", "deny", "ask"] = ""
    if event == "PreToolUse" and (wanted := _text(own, "permissionDecision")):
        permission = "deny" if wanted == "deny" else "ask" if wanted == "ask" else ""
        reason = _text(own, "permissionDecisionReason") or reason
    refuses = event in _CAN_REFUSE and (decision in _DENYING or permission == "deny")
    is_asking = permission == "ask" or (event == "PreToolUse" and decision == "ask")
    updated = own.get("updatedInput")
    if updated is not None and not isinstance(updated, dict):
        raise ValueError("updatedInput must be an object")
    message = _text(said, "systemMessage")
    return HookAnswer(
        refusal=(reason or _NO_REASON) if refuses else "",
        doubt=(reason or _NO_REASON) if is_asking and not refuses else "",
        added=_text(own, "additionalContext") or _text(said, "additionalContext"),
        stops=(_text(said, "stopReason") or _NO_REASON) if said.get("continue") is False else "",
        updated_input=updated if event == "PreToolUse" else None,
        messages=(message,) if message else (),
    )


def _text(given: JsonObject, key: str) -> str:
    value = given.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{key} must be text")
    return value.strip()
