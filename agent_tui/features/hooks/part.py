"""The hooks of one conversation: their input at each moment, and the use of their answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.hook import HookSpec
from agent_tui.agent.part import Answer, CallAnswer, Host, Part, ProgramQuestion
from agent_tui.config import HookEvent, PermissionMode
from agent_tui.events import CompactionFinished, CompactionReason, Notice
from agent_tui.features.hooks.answer import HookAnswer
from agent_tui.features.hooks.dispatcher import HookPlace, Hooks
from agent_tui.features.hooks.files import hook_sources
from agent_tui.messages import JsonObject, ToolCall
from agent_tui.safe_text import printable_line
from agent_tui.sessions.replay.notes import hook_entry
from agent_tui.tool_names import name_for_hooks, names_of
from agent_tui.tools.base import ToolOutput
from agent_tui.tools.processes.keeper import ProcessKeeper


class HooksPart(Part):
    """Runs the hooks for events in one conversation, and reports on them.

    Attributes:
        hooks: All hooks; the same ones in each session of the program.
    """

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        services = host.services
        self._helper: Conversation | None = None
        self.hooks = Hooks(
            hook_sources(
                services.settings,
                services.user_config_dir / "config.toml",
                services.trust,
                services.brought("agent_tui.hooks"),
            ),
            ProcessKeeper(services.settings.max_processes),
            services.environ,
            services.secrets,
        )

    def follow(self, earlier: Part) -> None:
        """Continue with the same hooks, which know the session before."""
        assert isinstance(earlier, HooksPart)
        self.hooks = earlier.hooks

    def for_helper(self, helper: Conversation) -> Part:
        """The same hooks, for the tool calls of a helper."""
        part = copy(self)
        part._helper, part.hooks = helper, self.hooks.for_calls()
        return part

    async def close(self) -> None:
        """Run the hooks for leaving the session; takes a few seconds at most."""
        await self.hooks.end_session()
        self.hooks.close()

    async def questions(self, *, asks_again: bool = False) -> Sequence[ProgramQuestion]:
        """The questions whether the project's hooks may run.

        Args:
            asks_again: Also about hooks already decided on.
        """
        await self.hooks.take_up(self._conversation.cwd)
        return [
            hook_question(one.spec, partial(self.hooks.answer, one.spec))
            for one in self.hooks.found.hooks
            if one.spec.is_projects and (asks_again or one.is_allowed is None)
        ]

    async def before_continuing(self, emit: Emit) -> None:
        """Read again which hooks are defined."""
        await self.hooks.take_up(self._conversation.cwd, _teller(emit))

    async def before_message(self, text: str, emit: Emit) -> Answer:
        """Why hooks refuse the message, or their texts for the model."""
        conversation = self._conversation
        await self.before_continuing(emit)
        opening = await self.hooks.begin_session(
            self._place,
            is_new=conversation.is_new,
            is_compacted=conversation.log.header.compaction is not None,
            tell=_teller(emit),
        )
        sent = await self._run("UserPromptSubmit", {"prompt": text}, emit)
        if why := sent.refusal or sent.stops:
            return Answer(why, "a hook")
        self.hooks.mark_opened()
        added = [hook_entry("SessionStart", opening)] if opening else []
        added += [hook_entry("UserPromptSubmit", sent.added)] if sent.added else []
        return Answer(added=added)

    async def before_call(self, call: ToolCall, paths: Sequence[Path], emit: Emit) -> CallAnswer:
        """The hooks' answer about a call."""
        answer = await self._run("PreToolUse", call_facts(call, paths), emit, names_of(call.name))
        if answer.stops:
            _teller(emit)(f"A hook ended the turn: {answer.stops}")
        return CallAnswer(
            refusal=answer.refusal or answer.stops,
            by="a hook",
            stops=bool(answer.stops),
            doubt=answer.doubt,
            arguments=answer.updated_input,
            remark=f"[PreToolUse hook]\n{answer.added}" if answer.added else "",
        )

    async def after_call(
        self, call: ToolCall, paths: Sequence[Path], output: ToolOutput, emit: Emit
    ) -> ToolOutput:
        """Returns the `output` of a call that ran, with the hooks' remarks.

        The output is never lost: on cancellation it is returned unchanged.
        """
        if output.is_error and output.for_person.exit_code is None:
            return output
        facts = call_facts(call, paths)
        facts["tool_response"] = result_facts(output)
        try:
            answer, changed = await self._look_at_result(facts, names_of(call.name), paths, emit)
        except asyncio.CancelledError:
            return output
        said = "\n".join(filter(None, (answer.refusal, answer.added, changed)))
        if answer.refusal:
            emit(Notice("info", f"A PostToolUse hook found: {_begin(answer.refusal)}"))
        if said:
            output = replace(output, for_model=f"{output.for_model}\n[PostToolUse hook]\n{said}")
        if answer.stops:
            _teller(emit)(f"A hook ended the turn: {answer.stops}")
            output = replace(output, ends_turn=output.ends_turn or "aborted")
        return output

    async def _look_at_result(
        self, facts: JsonObject, names: Sequence[str], paths: Sequence[Path], emit: Emit
    ) -> tuple[HookAnswer, str]:
        """The hooks' answer about a result, and a note on the call's files that they changed."""
        if not self.hooks.hooks_for("PostToolUse", names):
            return HookAnswer(), ""
        files = self._conversation.files
        known = await asyncio.to_thread(files.find_unchanged)
        answer = await self._run("PostToolUse", facts, emit, names)
        changed = await asyncio.to_thread(files.take_in, [path for path in known if path in paths])
        told = ", ".join(str(path) for path in changed)
        return answer, f"(changed by the hook: {told})" if told else ""

    async def continues(
        self, last_reply: str, times_before: int, most_times: int, emit: Emit
    ) -> bool:
        """Whether a hook makes the model continue instead of ending its turn."""
        facts: JsonObject = {
            "stop_hook_active": times_before > 0,
            "last_assistant_message": last_reply,
        }
        answer = await self._run("Stop", facts, emit)
        if not answer.refusal or answer.stops:
            return False
        if times_before >= most_times:
            _teller(emit)(
                f"A Stop hook made the model continue {most_times} times, the limit; the turn ends."
            )
            return False
        self._conversation.log.append(hook_entry("Stop", answer.refusal))
        emit(Notice("info", f"A Stop hook made the model continue: {_begin(answer.refusal)}"))
        return True

    async def before_compaction(self, reason: CompactionReason, focus: str, emit: Emit) -> Answer:
        """Why hooks refuse a compaction, or the texts to keep word for word after it."""
        await self.before_continuing(emit)
        trigger = _trigger(reason)
        facts: JsonObject = {"trigger": trigger, "custom_instructions": focus}
        answer = await self._run("PreCompact", facts, emit, (trigger,))
        why = answer.refusal
        if why and (reason == "overflow" or self._conversation.is_overfull):
            _teller(emit)(f"Compacting a full context even though a PreCompact hook refused: {why}")
            why = ""
        kept = (hook_entry("PreCompact", answer.added),) if answer.added else ()
        return Answer(why, "a PreCompact hook", kept)

    async def after_compaction(self, made: CompactionFinished, emit: Emit) -> None:
        """Run the hooks for a finished compaction."""
        trigger = _trigger(made.reason)
        facts: JsonObject = {
            "trigger": trigger,
            "tokens_before": made.tokens_before,
            "tokens_after": made.tokens_after,
            "compact_summary": made.summary,
        }
        await self._run("PostCompact", facts, emit, (trigger,))

    @property
    def _conversation(self) -> Conversation:
        return self._helper or self.host.conversation

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
        self, event: HookEvent, facts: JsonObject, emit: Emit, names: Sequence[str] = ()
    ) -> HookAnswer:
        return await self.hooks.run(event, self._place, facts, _teller(emit), names)


def hook_question(spec: HookSpec, answer: Callable[..., Awaitable[None]]) -> ProgramQuestion:
    """The question whether to run a project's hook; shows the whole command."""
    about = f" ({spec.matcher})" if spec.matcher else ""
    does = "It runs with your permissions, unsupervised, every time."
    title = f"Run this project's hook on {spec.event}{about}?"
    return ProgramQuestion(title, (spec.command, f"defined in {spec.source}", does), answer)


def _teller(emit: Emit) -> Callable[[str], None]:
    return lambda text: emit(Notice("warning", text))


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
