"""The hooks of one conversation: their input at each moment, and the use of their answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.hooks.answer import HookAnswer
from agent_tui.agent.hooks.dispatcher import HookPlace
from agent_tui.config import HookEvent, PermissionMode
from agent_tui.events import CompactionFinished, CompactionReason, Notice
from agent_tui.messages import JsonObject, ToolCall
from agent_tui.safe_text import printable_line
from agent_tui.sessions.entries import CustomMessageEntry
from agent_tui.sessions.replay.notes import hook_entry
from agent_tui.tool_names import name_for_hooks, names_of
from agent_tui.tools.base import ToolOutput


class ConversationHooks:
    """Runs the hooks for events in `conversation`, and reports on them through `emit`."""

    def __init__(self, conversation: Conversation, emit: Emit) -> None:
        self._conversation = conversation
        self._hooks = conversation.services.hooks
        self._emit = emit

    async def take_up(self) -> None:
        """Read again which hooks are defined."""
        await self._hooks.take_up(self._conversation.cwd, self._tell)

    async def before_message(self, text: str) -> tuple[str, tuple[CustomMessageEntry, ...]]:
        """Returns why a user's message is refused, and the entries that follow it to the model."""
        conversation = self._conversation
        await self.take_up()
        opening = await self._hooks.begin_session(
            self._place,
            is_new=conversation.is_new,
            is_compacted=conversation.log.header.compaction is not None,
            tell=self._tell,
        )
        sent = await self._run("UserPromptSubmit", {"prompt": text})
        if why := sent.refusal or sent.stops:
            return why, ()
        self._hooks.mark_opened()
        added = [hook_entry("SessionStart", opening)] if opening else []
        added += [hook_entry("UserPromptSubmit", sent.added)] if sent.added else []
        return "", tuple(added)

    async def before_call(self, call: ToolCall, paths: Sequence[Path]) -> HookAnswer:
        """The hooks' answer about a call before it is judged."""
        answer = await self._run("PreToolUse", call_facts(call, paths), names_of(call.name))
        if answer.stops:
            self._tell(f"A hook ended the turn: {answer.stops}")
            answer = replace(answer, refusal=answer.refusal or answer.stops)
        return answer

    async def after_call(
        self, call: ToolCall, paths: Sequence[Path], output: ToolOutput
    ) -> ToolOutput:
        """Returns the `output` of a call that ran, with the hooks' remarks.

        The output is never lost: on cancellation it is returned unchanged.
        """
        if output.is_error and output.for_person.exit_code is None:
            return output
        facts = call_facts(call, paths)
        facts["tool_response"] = result_facts(output)
        try:
            answer, changed = await self._look_at_result(facts, names_of(call.name), paths)
        except asyncio.CancelledError:
            return output
        said = "\n".join(filter(None, (answer.refusal, answer.added, changed)))
        if answer.refusal:
            self._emit(Notice("info", f"A PostToolUse hook found: {_begin(answer.refusal)}"))
        if said:
            output = replace(output, for_model=f"{output.for_model}\n[PostToolUse hook]\n{said}")
        if answer.stops:
            self._tell(f"A hook ended the turn: {answer.stops}")
            output = replace(output, ends_turn=output.ends_turn or "aborted")
        return output

    async def _look_at_result(
        self, facts: JsonObject, names: Sequence[str], paths: Sequence[Path]
    ) -> tuple[HookAnswer, str]:
        """The hooks' answer about a result, and a note on the call's files that they changed."""
        if not self._hooks.hooks_for("PostToolUse", names):
            return HookAnswer(), ""
        files = self._conversation.files
        known = await asyncio.to_thread(files.find_unchanged)
        answer = await self._run("PostToolUse", facts, names)
        changed = await asyncio.to_thread(files.take_in, [path for path in known if path in paths])
        told = ", ".join(str(path) for path in changed)
        return answer, f"(changed by the hook: {told})" if told else ""

    async def goes_on(self, last_reply: str, times_before: int, most_times: int) -> bool:
        """Whether a hook makes the model continue instead of ending its turn.

        Args:
            last_reply: The text of its last reply.
            times_before: How often hooks continued this turn already.
            most_times: How often they may.
        """
        facts: JsonObject = {
            "stop_hook_active": times_before > 0,
            "last_assistant_message": last_reply,
        }
        answer = await self._run("Stop", facts)
        if not answer.refusal or answer.stops:
            return False
        if times_before >= most_times:
            self._tell(
                f"A Stop hook made the model continue {most_times} times, the limit; the turn ends."
            )
            return False
        self._conversation.log.append(hook_entry("Stop", answer.refusal))
        self._emit(Notice("info", f"A Stop hook made the model continue: {_begin(answer.refusal)}"))
        return True

    async def before_compaction(
        self, reason: CompactionReason, focus: str
    ) -> tuple[str, tuple[CustomMessageEntry, ...]]:
        """Returns why a compaction is refused, and the entries to keep word for word after it."""
        await self.take_up()
        trigger = _trigger(reason)
        facts: JsonObject = {"trigger": trigger, "custom_instructions": focus}
        answer = await self._run("PreCompact", facts, (trigger,))
        why = answer.refusal
        if why and (reason == "overflow" or self._conversation.is_overfull):
            self._tell(f"Compacting a full context even though a PreCompact hook refused: {why}")
            why = ""
        return why, (hook_entry("PreCompact", answer.added),) if answer.added else ()

    async def after_compaction(self, made: CompactionFinished) -> None:
        """Run the hooks for a finished compaction."""
        trigger = _trigger(made.reason)
        facts: JsonObject = {
            "trigger": trigger,
            "tokens_before": made.tokens_before,
            "tokens_after": made.tokens_after,
            "compact_summary": made.summary,
        }
        await self._run("PostCompact", facts, (trigger,))

    @property
    def _place(self) -> HookPlace:
        conversation = self._conversation
        log = conversation.log
        return HookPlace(
            session_id=log.header.id,
            transcript_path=str(log.path or ""),
            cwd=conversation.cwd,
            permission_mode=MODES[conversation.permissions.mode],
            model=conversation.model.name,
        )

    async def _run(
        self, event: HookEvent, facts: JsonObject, names: Sequence[str] = ()
    ) -> HookAnswer:
        return await self._hooks.run(event, self._place, facts, self._tell, names)

    def _tell(self, text: str) -> None:
        self._emit(Notice("warning", text))


def _begin(text: str) -> str:
    """The first line of `text`, and the number of lines that follow."""
    first, *others = text.splitlines()
    more = f" (and {len(others)} more)" if others else ""
    return f"{printable_line(first)}{more}"


def _trigger(reason: CompactionReason) -> str:
    return "manual" if reason == "manual" else "auto"


MODES: Final[dict[PermissionMode, str]] = {
    "ask": "default",
    "accept-edits": "acceptEdits",
    "plan": "plan",
    "full": "bypassPermissions",
}
_REPLACEMENT: Final = {"old": "old_string", "new": "new_string", "all": "replace_all"}


def call_facts(call: ToolCall, paths: Sequence[Path]) -> JsonObject:
    """The input of a hook before a call: its name, its arguments, and every file it concerns.

    Args:
        call: With our own names of tools and arguments.
        paths: Absolute.
    """
    return {
        "tool_name": name_for_hooks(call.name),
        "tool_use_id": call.id,
        "tool_input": input_for_hooks(call, paths),
        "paths": [str(path) for path in paths],
    }


def input_for_hooks(call: ToolCall, paths: Sequence[Path]) -> JsonObject:
    """The arguments of `call` by their shared names; `translate_call` reads them back."""
    given = dict(call.arguments)
    if call.name in ("read", "edit", "write") and "path" in given:
        path = given.pop("path")
        given = {"file_path": str(paths[0]) if len(paths) == 1 else path, **given}
    match given.get("edits"):
        case [dict(single)] if call.name == "edit":
            del given["edits"]
            given |= _with_our_names(single)
        case list(edits) if call.name == "edit":
            given["edits"] = [
                _with_our_names(one) if isinstance(one, dict) else one for one in edits
            ]
        case _:
            given = _with_our_names(given) if call.name == "edit" else given
    return given


def result_facts(output: ToolOutput) -> JsonObject:
    """The input of a hook after a call: its result."""
    facts: JsonObject = {"content": output.for_model, "is_error": output.is_error}
    if (exit_code := output.for_person.exit_code) is not None:
        facts |= {"stdout": output.for_model, "stderr": "", "exit_code": exit_code}
    return facts


def _with_our_names(given: JsonObject) -> JsonObject:
    renamed: dict[str, JsonValue] = {
        _REPLACEMENT.get(key, key): value for key, value in given.items()
    }
    return renamed
