"""Works toward a goal: turn after turn, with the checks and the judge in between."""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from agent_tui.agent.activity import Emit, LastTurn
from agent_tui.agent.consent import ConsentFile
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.part import Host, Part
from agent_tui.agent.turn.limit_wait import LimitWaits
from agent_tui.agent.turn.user_command import CheckRun, check_intent, run_user_command
from agent_tui.agent.turn.user_message import NewMessage
from agent_tui.durations import format_duration
from agent_tui.errors import AgentTuiError, ConfigError
from agent_tui.events import AgentEvent, Notice, TurnFinished
from agent_tui.features.goal.events import GoalEnding
from agent_tui.features.goal.goal import Goal, goal_entry, goal_event, goal_in, goal_of
from agent_tui.features.goal.judge import (
    PHASE,
    FileDifference,
    GoalJudgement,
    changes_since,
    digest_of_changes,
    judge_goal,
    paths_in_checks,
)
from agent_tui.features.goal.settings import GoalSection
from agent_tui.messages import AssistantMessage, BashExecutionMessage, Message, Pin
from agent_tui.paths import user_data_dir
from agent_tui.providers.base import ModelRef, ProviderError
from agent_tui.providers.limits import BudgetSpent
from agent_tui.providers.spend_limits import has_price
from agent_tui.safe_paths import real_path
from agent_tui.secret_text import mask_values
from agent_tui.sessions.entries import CustomMessageEntry, Entry, MessageEntry
from agent_tui.sessions.lineage.chain import SessionChain
from agent_tui.sessions.replay.pins import pin_entry, unpin_entry

MOST_SAME: Final = 3
"""The goal ends if the same checks fail this often in a row while nothing changes."""

_PIN: Final = "goal"
_NAME_CHARS: Final = 60
_MOST_NAMED: Final = 5
"""The user is shown at most this many changed files; the judge sees them all."""
_PINNED: Final = """\
{text}

The work goes on until this is met. After each of your turns these checks run, and what fails is \
shown to you:
{checks}
When all pass, a judge looks at the changes alone, so do what the goal says and leave the checks \
as strict as they are. If you cannot go on without the user, say what you need and end your turn."""
_NO_CHECKS: Final = "(none: the judge looks at the changes after each turn)"

_FAILED: Final = """\
The goal is not met: {failed} of {count} checks fail{s}. Their output is above.
{lines}
Go on until all pass."""
_MISSING: Final = """\
All checks pass, but the judge of the goal, who sees only the changes, says that it is not met:
{lines}
Go on until it is. If that is wrong or you need the user, say so and end your turn: after three \
rounds without a change the work stops."""
_CANNOT_TELL: Final = (
    "{checks}, and {judge} finds nothing missing, but cannot see everything that decides:\n"
    "{unseen}\n"
    "Look at it yourself: /goal done closes it, /goal go continues."
)
_NO_VERDICT: Final = (
    "{checks}, but {judge} gave no verdict on the goal. Look at it yourself: /goal done closes it, "
    "/goal go continues."
)
_REPLACED: Final = "Goal replaced by another one."


def _silent(_event: AgentEvent) -> None:
    pass


class GoalPart(Part):
    """Works toward the goal of one conversation."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._allowed = ConsentFile(user_data_dir() / "goal-checks.json", "checks")
        self._idle_s = 0.0

    @property
    def _conversation(self) -> Conversation:
        return self.host.conversation

    @property
    def is_open(self) -> bool:
        """Whether there is still work to do on a goal."""
        return self.goal is not None

    def standing(self) -> AgentEvent | None:
        """The event that shows how far the open goal is; None if there is none."""
        return goal_event(goal) if (goal := self.goal) is not None else None

    @staticmethod
    def carried(path: Sequence[Entry]) -> Sequence[Entry]:
        """The entry of the open goal."""
        goal = goal_in(path)
        return (goal_entry(goal),) if goal is not None and goal.is_open else ()

    @staticmethod
    def shown(entry: Entry) -> str:
        """Why a goal ended."""
        goal = goal_of(entry)
        return goal.reason if goal is not None and goal.ending else ""

    @property
    def goal(self) -> Goal | None:
        """The goal if there is still work to do on it."""
        goal = goal_in(self._conversation.log.path_entries())
        return goal if goal is not None and goal.is_open else None

    def must_ask_about_checks(self, goal: Goal) -> bool:
        """Whether the checks of `goal` would run with all the user's rights, which no rule allows.

        Inside the sandbox they may run, and outside it if the user chose that.

        Raises:
            AgentTuiError: They may not run at all.
        """
        if goal.runs_outside:
            return False
        must_ask = False
        for command in goal.checks:
            intent = check_intent(self._conversation, command)
            verdict = self._conversation.permissions.judge("bash", intent)
            if verdict.decision == "deny":
                raise AgentTuiError(f"The check `{command}` may not run: {verdict.why}")
            must_ask = must_ask or (verdict.decision == "ask" and intent.place == "open")
        return must_ask

    async def begin(self, goal: Goal, emit: Emit) -> None:
        """Record and pin `goal` in place of any earlier one, and work toward it.

        Raises:
            AgentTuiError: There is no such judge, a check holds a key, or a bound on the cost
                cannot be kept. Nothing is recorded.
        """
        self._require_possible(goal)
        self._allow_outside(goal, emit)
        self.end("stopped", _REPLACED, emit)
        log, secrets = self._conversation.log, self._conversation.services.secrets
        goal = goal.model_copy(update={"text": mask_values(goal.text, secrets)})
        checks = "\n".join(f"- `{check}`" for check in goal.checks) or _NO_CHECKS
        pin = Pin(kind="goal", name=_short(goal.text), path=_PIN)
        log.append(pin_entry(pin, _PINNED.format(text=goal.text, checks=checks)))
        first = log.append(goal_entry(goal))  # unlike the pin, no compaction copies it
        began_s = self._conversation.services.wall_clock()
        goal = goal.model_copy(update={"since": first.id, "began_s": began_s})
        self._record(goal, emit)
        if await self._looks_before(goal, emit):
            await self.drive(NewMessage(goal.text), emit)

    async def _looks_before(self, goal: Goal, emit: Emit) -> bool:
        """Run the checks before the work: the model sees what fails, the judge what failed before.

        Returns:
            False if the work ends here, which was said.
        """
        try:
            with self._count_look(goal, emit) as took:
                results = await self._run_checks(goal, emit)
        except asyncio.CancelledError:
            emit(TurnFinished("aborted", can_continue=True))
            raise
        except AgentTuiError as error:
            emit(TurnFinished("error", str(error), can_continue=True))
            return False
        if results is None:
            emit(TurnFinished("done"))
            return False
        passed = _passes_of(results)
        if passed:
            update = {"passed_before": passed, "passed": passed, **took()}
            self._record(goal.model_copy(update=update), emit)
        return True

    async def drive(self, message: NewMessage | None, emit: Emit) -> None:
        """Work toward the open goal until it is met or ends, with one `TurnFinished` for all.

        A turn that fails and an interruption leave the goal open: the next message goes on.
        Without a message, work that was interrupted after a turn goes on with the checks.

        Args:
            message: The user's message; None to go on without one.
            emit: Takes the events.
        """
        is_turn_over = message is None and self._is_turn_over
        while True:
            if not is_turn_over:
                ending = await self._turn(message, emit)
                if ending.outcome not in ("done", "length"):
                    emit(ending)
                    return
            is_turn_over = False
            try:
                finished = await self._look(emit)
            except BudgetSpent as spent:
                finished = TurnFinished("limit", str(spent))
            except AgentTuiError as error:
                finished = TurnFinished("error", str(error), can_continue=True)
            except asyncio.CancelledError:
                emit(TurnFinished("aborted", can_continue=True))
                raise
            if finished is not None:
                emit(finished)
                return
            message = None

    def end(self, ending: GoalEnding, reason: str, emit: Emit) -> None:
        """End the open goal, if there is one."""
        if (goal := self.goal) is not None:
            self._conversation.log.append(unpin_entry((_PIN,)))
            self._record(goal.model_copy(update={"ending": ending, "reason": reason}), emit)

    @property
    def _is_turn_over(self) -> bool:
        """Whether the model has said its last word and waits for the checks or the judge."""
        said = (
            entry.message if isinstance(entry, MessageEntry) else None
            for entry in reversed(self._conversation.log.path_entries())
            if isinstance(entry, CustomMessageEntry)
            or (isinstance(entry, MessageEntry) and not _is_hidden(entry.message))
        )
        last = next(said, None)
        if not isinstance(last, AssistantMessage):
            return False
        return last.stop_reason == "stop" and not last.tool_calls

    def _require_possible(self, goal: Goal) -> None:
        conversation, model = self._conversation, self._conversation.model
        _ = self._judge_model
        if any(mask_values(check, conversation.services.secrets) != check for check in goal.checks):
            raise AgentTuiError(
                "A check contains an API key, which no session may store.",
                "Let the command read it from a file.",
            )
        is_priced = has_price(model, conversation.model_info)
        if goal.max_cost_usd is not None and not is_priced:
            raise AgentTuiError(
                f"The price of {model.name} is unknown, so --cost cannot be enforced.",
                "Set the goal without --cost; --turns and --time bound it.",
            )

    def _allow_outside(self, goal: Goal, emit: Emit) -> None:
        """Remember that the user lets the checks of `goal` run outside the sandbox."""
        if goal.runs_outside:
            try:
                self._allowed.keep(self._fingerprint(goal), is_allowed=True)
            except ConfigError as error:
                emit(Notice("warning", str(error)))

    def _may_run_outside(self, goal: Goal) -> bool:
        """Whether the user said so here: a session file from elsewhere could say anything."""
        if not goal.runs_outside or not goal.checks:
            return True
        return bool(self._allowed.is_allowed(self._fingerprint(goal)))

    def _fingerprint(self, goal: Goal) -> str:
        text = json.dumps([str(real_path(self._conversation.cwd)), *goal.checks])
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    async def _turn(self, message: NewMessage | None, emit: Emit) -> TurnFinished:
        """Run one turn and count it; returns how it ended."""
        turn, spent = LastTurn(emit), self._spent
        try:
            await self.host.make_turn(turn.emit).run(message)
        except asyncio.CancelledError:
            self._count(turn, self._spent - spent, emit)
            emit(turn.event or TurnFinished("aborted", can_continue=True))
            raise
        self._count(turn, self._spent - spent)
        return turn.event or TurnFinished("error", "The turn ended without a result.")

    def _count(self, turn: LastTurn, cost_usd: float, emit: Emit = _silent) -> None:
        """Record what `turn` took; after a whole turn, the checks that follow tell it."""
        if (goal := self.goal) is not None:
            update = {
                "turns": goal.turns + 1,
                "took_s": goal.took_s + turn.took_s,
                "cost_usd": goal.cost_usd + cost_usd,
            }
            self._record(goal.model_copy(update=update), emit)

    async def _look(self, emit: Emit) -> TurnFinished | None:
        """Run the checks and ask the judge; returns how the goal ended, or None to go on."""
        goal = self.goal
        if goal is None:  # ended by the user during the turn
            return TurnFinished("done")
        with self._count_look(goal, emit) as took:
            results = await self._run_checks(goal, emit)
            if results is None:
                return TurnFinished("done")
            passed = _passes_of(results)
            changes = await asyncio.to_thread(self._changes, goal, self.host.history())
            judgement = GoalJudgement(False)
            if all(passed):
                judgement = await self._judge(goal, results, changes, emit)
                if self.goal is None:
                    return TurnFinished("done")
        state, times_same = _state(results, passed, changes), 1
        if state == goal.state:
            times_same = goal.times_same + (judgement.is_met is not None)
        missing = "\n".join(f"- {each}" for each in judgement.missing)
        self._record(
            goal.model_copy(
                update={
                    "passed": passed,
                    "missing": missing,
                    "state": state,
                    "times_same": times_same,
                    **took(),
                }
            ),
            emit,
        )
        if judgement.is_met:
            self.end("met", _success_reason(goal), emit)
            return TurnFinished("done")
        if judgement.is_met is None:
            checks = "All checks pass" if passed else "The turn is done"
            judge = self._judge_model.name
            text = _CANNOT_TELL if judgement.missing else _NO_VERDICT
            error = text.format(checks=checks, judge=judge, unseen=missing)
            return TurnFinished("error", error)
        return self._end_if_stuck(emit) or self._go_on(emit)

    @contextmanager
    def _count_look(self, goal: Goal, emit: Emit) -> Generator[Callable[[], dict[str, float]]]:
        """Record what a look at `goal` took if it is interrupted or fails.

        Yields a function that returns the time and the cost with those of the look so far.
        """
        spent, began_s = self._spent, self._work_time_s()

        def took() -> dict[str, float]:
            return {
                "took_s": goal.took_s + self._work_time_s() - began_s,
                "cost_usd": goal.cost_usd + self._spent - spent,
            }

        try:
            yield took
        except BaseException:
            if self.goal == goal:
                self._record(goal.model_copy(update=took()), emit)
            raise

    def _end_if_stuck(self, emit: Emit) -> TurnFinished | None:
        """How the goal ends because nothing changes any more or a bound is reached."""
        goal = self.goal
        assert goal is not None
        if goal.times_same >= MOST_SAME:
            reason = (
                f"The goal is not met: {_open_part(goal)}. "
                f"The last {MOST_SAME} tries changed no file."
            )
            self.end("stuck", reason, emit)
            return TurnFinished("error", reason)
        bound = _bound_reached(goal)
        if bound:
            reason = f"The goal is not met: {_open_part(goal)}, and {bound}."
            self.end("limit", reason, emit)
            return TurnFinished("limit", reason)
        return None

    def _go_on(self, emit: Emit) -> None:
        """Tell the model what is missing."""
        goal = self.goal
        assert goal is not None
        failed = [check for check, ok in zip(goal.checks, goal.passed, strict=True) if not ok]
        if failed:
            lines = "\n".join(f"- `{check}`" for check in failed)
            count = len(goal.checks)
            text = _FAILED.format(
                failed=len(failed), count=count, s="s" * (len(failed) == 1), lines=lines
            )
        else:
            text = _MISSING.format(lines=goal.missing or "- (it gave no reason)")
            emit(Notice("info", f"The judge says that the goal is not met:\n{goal.missing}"))
        entry = CustomMessageEntry(custom_type="goal_report", content=text, display=False)
        self._conversation.log.append(entry)

    async def _run_checks(self, goal: Goal, emit: Emit) -> list[BashExecutionMessage] | None:
        """The result of each check; None if the user ended the goal meanwhile.

        Raises:
            AgentTuiError: They may not run, or no longer.
        """
        if self.must_ask_about_checks(goal) or not self._may_run_outside(goal):
            raise AgentTuiError(
                "The checks of the goal would run without a sandbox.",
                "Set the goal again to allow that.",
            )
        results: list[BashExecutionMessage] = []
        for check in goal.checks:
            results.append(await self._check(check, goal, emit))
            if self.goal is None:
                return None
        return results

    async def _check(self, command: str, goal: Goal, emit: Emit) -> BashExecutionMessage:
        settings = self._conversation.services.settings.of(GoalSection).goal
        check = CheckRun(not goal.runs_outside, settings.check_timeout_s, self.host.network)
        return await run_user_command(self._conversation, command, True, emit, check)

    async def _judge(
        self,
        goal: Goal,
        results: Sequence[BashExecutionMessage],
        changes: Sequence[FileDifference],
        emit: Emit,
    ) -> GoalJudgement:
        emit(Notice("info", f"{_checks_pass(goal)}{self._judge_model.name} is {PHASE}."))
        if named := paths_in_checks(changes, goal.checks, self._conversation.cwd):
            more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
            changed = f"{', '.join(named[:_MOST_NAMED])}{more}"
            emit(Notice("info", f"The work changed what a check names, or files in it: {changed}."))
        conversation, judge = self._conversation, self._judge_model
        waits = LimitWaits(conversation, emit, conversation.services.sleep)
        while True:
            try:
                return await judge_goal(conversation, goal, results, changes, judge)
            except ProviderError as error:
                failed_s = conversation.services.clock()
                if not await waits.wait_out(error, judge):
                    raise
                self._idle_s += conversation.services.clock() - failed_s
            finally:
                emit(conversation.totals)

    @property
    def _judge_model(self) -> ModelRef:
        services = self._conversation.services
        name = services.settings.of(GoalSection).goal.judge
        return services.resolve_model(name) if name else self._conversation.model

    def _changes(self, goal: Goal, history: SessionChain) -> tuple[FileDifference, ...]:
        conversation, written = self._conversation, [*history.entries()][::-1]
        return changes_since(written, goal.since, conversation.kept_files, conversation.cwd)

    def _work_time_s(self) -> float:
        """A clock that stands still while a check waits for the user or the judge for a limit."""
        return self._conversation.services.clock() - self.host.network.waited_s - self._idle_s

    @property
    def _spent(self) -> float:
        return self._conversation.totals.cost_usd

    def _record(self, goal: Goal, emit: Emit) -> None:
        self._conversation.log.append(goal_entry(goal))
        emit(goal_event(goal))


def _passes_of(results: Sequence[BashExecutionMessage]) -> tuple[bool, ...]:
    return tuple(result.exit_code == 0 and not result.cancelled for result in results)


def _is_hidden(message: Message) -> bool:
    return isinstance(message, BashExecutionMessage) and message.exclude_from_context


def _bound_reached(goal: Goal) -> str:
    if goal.turns >= goal.max_turns:
        return f"its bound of {goal.max_turns} turns is reached"
    if goal.took_s >= goal.max_s:
        return f"its bound of {format_duration(goal.max_s)} is reached"
    if goal.max_cost_usd is not None and goal.cost_usd >= goal.max_cost_usd:
        return f"its bound of ${goal.max_cost_usd:.2f} is reached"
    return ""


def _open_part(goal: Goal) -> str:
    failed = [check for check, ok in zip(goal.checks, goal.passed, strict=False) if not ok]
    if not failed:
        return "the judge finds something missing"
    return f"{', '.join(f'`{check}`' for check in failed)} fail{'s' * (len(failed) == 1)}"


def _checks_pass(goal: Goal) -> str:
    match len(goal.checks):
        case 0:
            return ""
        case 1:
            return "The check passes. "
        case _:
            return "All checks pass. "


def _success_reason(goal: Goal) -> str:
    turns = f"{goal.turns} turn{'s' * (goal.turns != 1)}"
    return f"Goal met after {turns}. {_checks_pass(goal)}The judge finds nothing missing."


def _state(
    results: Sequence[BashExecutionMessage],
    passed: Sequence[bool],
    changes: Sequence[FileDifference],
) -> str:
    """A digest of what fails, and of all changed files; times and counts in outputs do not count.

    Changes that nobody recorded (by a command outside a git repository) show in the outputs.
    """
    failures = (
        f"{result.command}\0{result.exit_code}\0{re.sub(r'[0-9.]+', '', result.output)}"
        for result, ok in zip(results, passed, strict=True)
        if not ok
    )
    parts = (*failures, digest_of_changes(changes))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _NAME_CHARS else f"{words[: _NAME_CHARS - 1].rstrip()}…"
