"""Decide on connections that commands in the sandbox want: by rules or by asking the user."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.turn.command_network import NETWORK, NO_HOSTS, CommandNetwork, NamedHosts
from agent_tui.agent.turn.pending_approvals import PendingApprovals, keep_rules
from agent_tui.events import ApprovalRequest, ApprovalRequested, ApprovalResolved, Notice
from agent_tui.features.sandbox.proxy import ConnectionRecord, NetworkGate, Wanted
from agent_tui.features.sandbox.proxy_request import Target
from agent_tui.permissions.programs.connections import named_hosts
from agent_tui.permissions.registries import Bundle, bundle_of
from agent_tui.permissions.rules import Decision, Rule, parse_rule
from agent_tui.permissions.verdict import Verdict
from agent_tui.tools.base import CallInterrupted, Intent, ToolOutput

_NOBODY = "no turn is under way, so the user could not be asked"
_UNANSWERED = "the user was asked and did not answer"
_DECLINED = "the user declined it"
_MOST_TOLD = 10
_MOST_KEPT = 100


@dataclass(slots=True)
class _Question:
    """An open question whose result is a refusal or empty, and how many connections wait."""

    asking: asyncio.Task[str]
    waiting: int = 0


@dataclass(eq=False, slots=True)
class RunningCommand:
    """A running command of the model, with its refusals and the hosts it may connect to.

    `unreached` are hosts that it may connect to but that did not answer.
    """

    refused: dict[str, str] = field(default_factory=dict[str, str])
    unreached: dict[str, str] = field(default_factory=dict[str, str])
    allowed: Sequence[Rule] = ()
    jobs: frozenset[str] = frozenset()

    def allows(self, target: Target) -> bool:
        """Whether the user allowed connections to `target` when they allowed the command."""
        return any(rule.matches_host(target.host, target.port) for rule in self.allowed)

    def note(self, host: str, why: str) -> None:
        """Add a refusal."""
        _note(self.refused, host, why)

    def with_refusals(self, output: ToolOutput) -> ToolOutput:
        """`output` of the command with its refusals, and the hosts it could not reach."""
        return _with_refusals(_with_unreached(output, self.unreached), self.refused)


class _Askers(NamedTuple):
    """The commands and jobs that ran when a connection was wanted: one of them wanted it."""

    commands: tuple[RunningCommand, ...]
    jobs: tuple[str, ...]

    def or_others(self, command: RunningCommand) -> str:
        """Which others than `command` may have wanted it; empty if none."""
        others = [f"job {id}" for id in self.jobs]
        if len(self.commands) > 1:
            others.append("another command")
        return f" (this command or {' or '.join(others)} wanted it)" if others else ""


_UNKNOWN = _Askers((), ())


def _note(refused: dict[str, str], host: str, why: str) -> None:
    if host in refused or len(refused) < _MOST_KEPT:
        refused[host] = why


def _with_refusals(output: ToolOutput, refused: dict[str, str]) -> ToolOutput:
    if not refused:
        return output
    lines = [f"[network access to {host} was refused: {why}]" for host, why in refused.items()]
    beside = len(lines) - _MOST_TOLD
    lines[_MOST_TOLD:] = [f"[and to {beside} more hosts]"] if beside > 0 else []
    details = output.for_person.model_copy(update={"refused_hosts": refused})
    text = "\n".join([output.for_model, *lines])
    return replace(output, for_model=text, for_person=details)


def _with_unreached(output: ToolOutput, unreached: dict[str, str]) -> ToolOutput:
    """`output` with the reason why each allowed host was not reached, which programs rarely say."""
    lines = [f"[allowed by the sandbox, but {why}]" for why in unreached.values()]
    return replace(output, for_model="\n".join([output.for_model, *lines[:_MOST_TOLD]]))


@dataclass(slots=True)
class NetworkQuestions(CommandNetwork):
    """Decides on connections for the sandbox's gate, in the present conversation.

    Asks one question at a time and once per host: a single-time answer holds until the commands
    that were running have ended. A refusal is reported with the result of the command that ran when
    the connection was wanted, or with the output of the job. If it has ended, only the user is
    told.

    Args:
        pending: Receives the answers.
        conversation: Returns the present one.
    """

    pending: PendingApprovals
    conversation: Callable[[], Conversation]
    _tell_idle: Emit = field(default=lambda _event: None, init=False)
    _gate: NetworkGate | None = field(default=None, init=False)
    _waited_s: float = field(default=0.0, init=False)
    _asked_at_s: float | None = field(default=None, init=False)
    _emit: Emit | None = field(default=None, init=False)
    _commands: int = field(default=0, init=False)
    _running: list[RunningCommand] = field(default_factory=list[RunningCommand], init=False)
    _in_background: list[RunningCommand] = field(default_factory=list[RunningCommand], init=False)
    _wanted_by: dict[Target, _Askers] = field(default_factory=dict[Target, _Askers], init=False)
    _of_jobs: dict[str, dict[str, str]] = field(
        default_factory=dict[str, dict[str, str]], init=False
    )
    _answers: dict[Target, str] = field(default_factory=dict[Target, str], init=False)
    _questions: dict[Target, _Question] = field(default_factory=dict[Target, _Question], init=False)
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _told: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]], init=False)

    @property
    def waited_s(self) -> float:
        """Seconds spent waiting for the user in all, including a question that is still open."""
        asked_at_s = self._asked_at_s
        now = 0.0 if asked_at_s is None else self.conversation().services.clock() - asked_at_s
        return self._waited_s + now

    def serve(self, gate: NetworkGate | None) -> None:
        """Decide on the connections through `gate`; None if there is no sandbox."""
        self._gate = gate
        if gate is not None:
            gate.decide, gate.tell_refusal = self.decide, self.note_refusal
            gate.tell_unreached = self.note_unreached

    def listen(self, listener: Emit) -> None:
        """Give `listener` the notices that come while no activity runs."""
        self._tell_idle = listener

    @property
    def records(self) -> tuple[ConnectionRecord, ...]:
        """The connections that commands wanted, newest first; old ones are dropped."""
        return self._gate.records if self._gate is not None else ()

    def connections(self, most: int) -> Sequence[tuple[str, str]]:
        """The `most` newest of `records`, for the user: when and how decided; the host."""
        return tuple(map(_row, self.records[:most]))

    async def decide(self, wanted: Wanted) -> str:
        """Why a command may not make a connection; empty if it may."""
        self._wanted_by.pop(wanted.target, None)
        self._wanted_by[wanted.target] = _Askers(tuple(self._running), self._jobs())
        if len(self._wanted_by) > _MOST_KEPT:
            del self._wanted_by[next(iter(self._wanted_by))]
        return await self._why_not(wanted.target, is_read_only=wanted.is_read_only)

    def _jobs(self) -> tuple[str, ...]:
        return tuple(job.id for job in self.conversation().jobs.running)

    def note_refusal(self, target: Target, why: str) -> None:
        """Report a refusal to the model with what wanted the connection, else to the user."""
        askers = self._wanted_by.get(target, _UNKNOWN)
        running = [command for command in askers.commands if command in self._running]
        for command in running:
            command.note(target.shown, f"{why}{askers.or_others(command)}")
        if running:
            return
        jobs = askers.jobs or self._jobs()
        if len(jobs) == 1:
            _note(self._of_jobs.setdefault(jobs[0], {}), target.shown, why)
        if (target.shown, why) not in self._told:
            self._told.add((target.shown, why))
            who = "A background job" if jobs else "A command that has ended"
            refused = f"{who} was refused network access to {target.shown}: {why}."
            (self._emit or self._tell_idle)(Notice("warning", refused))

    def note_unreached(self, target: Target, why: str) -> None:
        """Report to the model that an allowed target was not reached."""
        for command in self._wanted_by.get(target, _UNKNOWN).commands:
            if command in self._running:
                _note(command.unreached, target.shown, why)

    @asynccontextmanager
    async def activity(self, emit: Emit) -> AsyncGenerator[None]:
        """Send questions to `emit` inside the block; refuse those still open at the end."""
        self._forget()
        self._told.clear()
        self._emit = emit
        try:
            yield
        finally:
            self._emit = None
            if asking := [question.asking for question in self._questions.values()]:
                for task in asking:
                    task.cancel()
                await asyncio.wait(asking)

    def hosts_to_ask(self, intent: Intent) -> NamedHosts:
        """The hosts that a command names and about which the user would be asked."""
        if intent.place == "outside" or self._gate is None:
            return NO_HOSTS
        asking: dict[str, str] = {}
        is_usual = True
        for named in named_hosts(intent.command):
            verdict = self._verdict(target := Target(*named))
            if verdict.decision == "ask" and not self._gate.why_never(target):
                bundle = _bundle_allowed(target, verdict)
                is_usual = is_usual and bundle is not None
                asking[verdict.session_rule] = ", ".join(bundle.hosts) if bundle else target.shown
        return NamedHosts(tuple(asking), ", ".join(asking.values()), is_usual)

    async def run_command(
        self, run: Callable[[], Awaitable[ToolOutput]], allowed: NamedHosts = NO_HOSTS
    ) -> ToolOutput:
        """Run a command of the model; its output includes the connections refused meanwhile.

        Args:
            run: Runs it.
            allowed: What the user allowed with it, until it and the jobs that it starts have ended.

        Raises:
            CallInterrupted: It was interrupted; what it had printed includes them, too.
        """
        command = RunningCommand(allowed=[parse_rule(rule, "allow") for rule in allowed.rules])
        jobs_before = frozenset(self._jobs())
        self._running.append(command)
        try:
            with self._under_way():
                output = await run()
        except CallInterrupted as interrupted:
            raise CallInterrupted(command.with_refusals(interrupted.output)) from interrupted
        finally:
            self._running.remove(command)
            command.jobs = frozenset(self._jobs()) - jobs_before
            if command.allowed and command.jobs:
                self._in_background.append(command)
        return command.with_refusals(output)

    async def look_at_job(self, id: str, run: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
        """Run a call that looks at the job `id`; its output includes the job's refusals."""
        with self._under_way():
            output = await run()
        return _with_refusals(output, self._of_jobs.pop(id, {}))

    @contextmanager
    def _under_way(self) -> Generator[None]:
        """Marks that a call of the model runs inside the block."""
        self._commands += 1
        try:
            yield
        finally:
            self._commands -= 1
            self._withdraw()
            self._forget()

    async def _why_not(self, target: Target, *, is_read_only: bool) -> str:
        verdict = self._verdict(target, is_read_only=is_read_only)
        if verdict.decision == "allow":
            return ""
        if verdict.decision == "deny":
            self._record(target, verdict)
            rules = ", ".join(verdict.wanted_rules)
            needed = f"the user can allow it with the rule {rules}"
            return needed if verdict.unapproved and rules else verdict.why
        if (known := self._answers.get(target)) is not None:
            return known
        if self._is_allowed_with_command(target):
            self._record(target, replace(verdict, decision="allow", by="person"))
            return ""
        if self._emit is None:
            return _NOBODY
        question = self._questions.get(target)
        if question is None:
            question = _Question(asyncio.create_task(self._ask(target, self._emit)))
            self._questions[target] = question
            question.asking.add_done_callback(lambda _task: self._questions.pop(target))
        question.waiting += 1
        try:
            await asyncio.wait((question.asking,))
        finally:
            question.waiting -= 1
            self._withdraw()
        return _UNANSWERED if question.asking.cancelled() else question.asking.result()

    def _is_allowed_with_command(self, target: Target) -> bool:
        """Whether the user allowed it together with a command that runs, or left a job running."""
        jobs = self._jobs()
        self._in_background = [one for one in self._in_background if not one.jobs.isdisjoint(jobs)]
        return any(one.allows(target) for one in (*self._running, *self._in_background))

    def _verdict(self, target: Target, *, is_read_only: bool = False) -> Verdict:
        permissions = self.conversation().permissions
        judging = permissions.for_reading() if is_read_only else permissions
        return judging.judge_host(target.host, target.port)

    async def _ask(self, target: Target, emit: Emit) -> str:
        """Ask the user; returns why not, also if an answer to an earlier question decides."""
        async with self._one_at_a_time:
            verdict = self._verdict(target)
            if verdict.decision != "ask":
                return verdict.why if verdict.decision == "deny" else ""
            request = _request(target, verdict)
            emit(ApprovalRequested(request))
            allowed = False
            self._asked_at_s = self.conversation().services.clock()
            try:
                answer = await self.pending.wait(request.id)
                allowed = answer.choice != "no"
            finally:
                self._waited_s, self._asked_at_s = self.waited_s, None
                emit(ApprovalResolved(request.id, allowed))
            book = self.conversation().permissions.book
            if problem := keep_rules(answer, verdict.session_rule, book):
                emit(Notice("warning", problem))
            decision: Decision = "allow" if allowed else "deny"
            self._record(target, replace(verdict, decision=decision, by="person"))
            said = f"{_DECLINED}. They say: {answer.words}" if answer.words else _DECLINED
            self._answers[target] = "" if allowed else said
            return self._answers[target]

    def _record(self, target: Target, verdict: Verdict) -> None:
        intent = Intent(f"connect to {target.shown}", "network", host=target.host)
        self.conversation().permissions.record(NETWORK, intent, verdict)

    def _withdraw(self) -> None:
        """Withdraw questions that no connection waits for, unless a running command may retry."""
        if not self._commands:
            for question in tuple(self._questions.values()):
                if not question.waiting:
                    question.asking.cancel()

    def _forget(self) -> None:
        """Forget single-time answers once no command or job runs that they could be for."""
        if not (self._commands or self.conversation().jobs.running):
            self._answers.clear()


def _row(record: ConnectionRecord) -> tuple[str, str]:
    at = record.began_at.astimezone().strftime("%H:%M:%S")
    if record.refusal:
        return f"{at} refused", f"{record.target.netloc}   {record.refusal}"
    amount = f"{record.sent:,} bytes sent, {record.received:,} received"
    return f"{at} allowed", f"{record.target.netloc}   {amount}"


def _bundle_allowed(target: Target, verdict: Verdict) -> Bundle | None:
    """The bundle of hosts that the rule of `verdict` on `target` allows; None for one host."""
    bundle = bundle_of(target.host)
    is_whole = bundle is not None and f"bundle:{bundle.name}" in verdict.session_rule
    return bundle if is_whole else None


def _request(target: Target, verdict: Verdict) -> ApprovalRequest:
    """The question about `target`; it suggests refusing hosts that no bundle contains."""
    bundle, allowed = bundle_of(target.host), _bundle_allowed(target, verdict)
    kind = f" ({bundle.kind})" if bundle is not None else ""
    body = [f"Host: {target.host}, port {target.port}"]
    if allowed is not None:
        body.append(f"{verdict.session_rule} allows {', '.join(allowed.hosts)}")
    id = uuid.uuid4().hex
    return ApprovalRequest(
        id=id,
        call_id=f"{NETWORK}-{id}",
        tool_name=NETWORK,
        title=f"Connect to {target.shown}{kind}",
        body="\n".join(body),
        body_kind="text",
        reason=verdict.why,
        session_rule=verdict.session_rule,
        is_loss=allowed is None,
    )
