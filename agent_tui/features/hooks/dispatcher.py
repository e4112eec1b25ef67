"""All hooks of the program: which are defined, and running those that match an event."""

import asyncio
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import get_args

from agent_tui.agent.hook import HookSpec
from agent_tui.config import HookEvent
from agent_tui.features.hooks.answer import HookAnswer, merge_answers, read_answer, run_command
from agent_tui.features.hooks.files import FoundHooks, HookSources
from agent_tui.features.hooks.function import run_function
from agent_tui.messages import JsonObject
from agent_tui.permissions.project_files import repository_root
from agent_tui.safe_text import printable_line, strip_control_characters
from agent_tui.secret_text import mask_values
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.shorten import keep_ends

_MAX_LINES = 300
_MAX_BYTES = 10_000
"""Most bytes of what one hook says to the model."""

_AT_THE_END_S = 5.0
"""How long hooks may take when a session ends, as the user waits for the program to exit."""


@dataclass(frozen=True, slots=True)
class HookPlace:
    """The conversation that hooks run for, as described in their input."""

    session_id: str
    transcript_path: str
    cwd: Path
    permission_mode: str
    model: str

    @property
    def facts(self) -> JsonObject:
        """The part of the input that every hook reads."""
        return {
            "session_id": self.session_id,
            "transcript_path": self.transcript_path,
            "cwd": str(self.cwd),
            "permission_mode": self.permission_mode,
            "model": self.model,
        }


@dataclass(frozen=True, slots=True)
class HookResult:
    """The outcome of a hook's last run."""

    outcome: str
    took_s: float
    at: datetime


class Hooks:
    """Runs hooks, those of one event side by side.

    Definitions are read when a turn begins (`take_up`), not before each call.

    Args:
        sources: Where hooks are defined; None if nowhere.
        keeper: Starts their processes.
        environ: Their environment, without keys.
        secrets: Values to mask in everything they say.
    """

    def __init__(
        self,
        sources: HookSources | None = None,
        keeper: ProcessKeeper | None = None,
        environ: Mapping[str, str] | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self._sources = sources
        self._keeper = keeper or ProcessKeeper()
        self._environ = environ or {}
        self._secrets = secrets
        self._found = FoundHooks()
        self._told: set[str] = set()
        self._begun: HookPlace | None = None
        self._opening = ""
        self._events: Collection[HookEvent] = get_args(HookEvent)
        self.results: dict[str, HookResult] = {}

    def for_calls(self) -> "Hooks":
        """The same hooks for a helper, limited to the events of tool calls."""
        calls = copy(self)
        calls._events = ("PreToolUse", "PostToolUse")
        return calls

    @property
    def found(self) -> FoundHooks:
        """The hooks as they were last read."""
        return self._found

    @property
    def not_asked(self) -> tuple[HookSpec, ...]:
        """Hooks of the project that the user has not been asked about."""
        return tuple(one.spec for one in self._found.hooks if one.is_allowed is None)

    async def take_up(self, cwd: Path, tell: Callable[[str], None] | None = None) -> None:
        """Read which hooks are defined for work in `cwd`.

        Args:
            cwd: The workspace.
            tell: Takes each line for the user once; None to report nothing now.
        """
        if self._sources is not None:
            self._found = await asyncio.to_thread(self._sources.find, cwd)
        if tell is None:
            return
        problems = [f"Hook ignored: {problem}" for problem in self._found.problems]
        if count := len(self.not_asked):
            problems.append(
                f"{count} project hook{'s' * (count != 1)} did not run: approve "
                f"{'it' if count == 1 else 'them'} first with /hooks ask, on the screen or with "
                "--plain."
            )
        for problem in problems:
            if problem not in self._told:
                self._told.add(problem)
                tell(problem)

    async def answer(self, spec: HookSpec, *, is_allowed: bool) -> None:
        """Allow a hook of the project to run, or not, as the user answered.

        Raises:
            ConfigError: The answer cannot be kept; it holds for this run.
        """
        hooks = tuple(
            replace(one, is_allowed=is_allowed) if one.spec == spec else one
            for one in self._found.hooks
        )
        self._found = replace(self._found, hooks=hooks)
        if self._sources is not None:
            await asyncio.to_thread(self._sources.answer, spec, is_allowed=is_allowed)

    def hooks_for(self, event: HookEvent, names: Collection[str] = ()) -> tuple[HookSpec, ...]:
        """The allowed hooks for `event` whose matcher fits one of `names`."""
        return tuple(
            one.spec
            for one in self._found.hooks
            if one.is_allowed
            and event in self._events
            and one.spec.event == event
            and one.spec.is_for(names)
        )

    async def run(
        self,
        event: HookEvent,
        place: HookPlace,
        facts: JsonObject,
        tell: Callable[[str], None],
        names: Collection[str] = (),
    ) -> HookAnswer:
        """Run the hooks on `event`; a failure is reported and changes nothing.

        Cancelling ends them.

        Args:
            event: What happens.
            place: Where.
            facts: The rest of their input.
            tell: Takes lines for the user.
            names: What the event is about, for matchers.
        """
        specs = self.hooks_for(event, names)
        if not specs:
            return HookAnswer()
        given = json.dumps({**place.facts, "hook_event_name": event, **facts})
        answers = await asyncio.gather(*(self._run_one(spec, place, given) for spec in specs))
        for spec, answer in zip(specs, answers, strict=True):
            for message in answer.messages:
                tell(f"{event} hook: {message}")
            if answer.problem:
                tell(f"{event} hook failed and was ignored: {answer.problem}. {spec.shown}")
        return merge_answers(answers)

    async def begin_session(
        self, place: HookPlace, *, is_new: bool, is_compacted: bool, tell: Callable[[str], None]
    ) -> str:
        """Run, once per session, the hooks for its beginning, after those for the last one's end.

        Returns: Their text for the model, again on each call until `mark_opened` is called.

        Args:
            place: The session.
            is_new: Whether nothing was said in it yet.
            is_compacted: Whether it continues the one before after a compaction.
            tell: Takes lines for the user.
        """
        before = self._begun
        if before is not None and before.session_id == place.session_id:
            return self._opening
        self._begun, self._opening = place, ""
        if is_compacted and before is not None:
            source = "compact"
        elif is_new:
            source = "startup" if before is None else "clear"
        else:
            source = "resume"
        if before is not None:
            await self._end(before, source if source in ("clear", "resume") else "other")
        answer = await self.run("SessionStart", place, {"source": source}, tell, (source,))
        self._opening = answer.added
        return self._opening

    def mark_opened(self) -> None:
        """Note that the text of `begin_session` is now in the session."""
        self._opening = ""

    async def end_session(self) -> None:
        """Run the hooks for leaving the session; takes a few seconds at most."""
        before, self._begun = self._begun, None
        if before is not None:
            await self._end(before, "other")

    def close(self) -> None:
        """End the process that starts hooks, with what they left running."""
        self._keeper.close()

    async def _end(self, place: HookPlace, reason: str) -> None:
        await self.run("SessionEnd", place, {"reason": reason}, lambda _line: None, (reason,))

    async def _run_one(self, spec: HookSpec, place: HookPlace, given: str) -> HookAnswer:
        began = time.monotonic()
        timeout_s = spec.timeout_s
        if spec.event == "SessionEnd":
            timeout_s = min(timeout_s, _AT_THE_END_S)
        if spec.function is not None:
            ran = await run_function(spec.function, given, timeout_s)
        else:
            folder = repository_root(place.cwd) or place.cwd
            ran = await run_command(
                self._keeper,
                spec.command,
                given,
                cwd=place.cwd,
                environ={**self._environ, "CLAUDE_PROJECT_DIR": str(folder)},
                timeout_s=timeout_s,
            )
        answer = self._clean(read_answer(spec.event, ran))
        self.results[spec.fingerprint] = HookResult(
            answer.outcome(spec.event),
            time.monotonic() - began,
            datetime.now(),
        )
        return answer

    def _clean(self, answer: HookAnswer) -> HookAnswer:
        """Clean `answer`: mask keys, remove what steers a terminal, and cut what is too long."""
        return replace(
            answer,
            refusal=self._fit(answer.refusal),
            doubt=printable_line(self._fit(answer.doubt), 300),
            added=self._fit(answer.added),
            stops=printable_line(self._fit(answer.stops), 300),
            messages=tuple(printable_line(self._fit(one), 300) for one in answer.messages),
            problem=printable_line(self._fit(answer.problem), 300),
        )

    def _fit(self, text: str) -> str:
        plain = mask_values(strip_control_characters(text), self._secrets)
        return keep_ends(plain, max_lines=_MAX_LINES, max_bytes=_MAX_BYTES).text
