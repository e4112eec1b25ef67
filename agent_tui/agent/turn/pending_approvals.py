"""The user's decisions in a turn: on calls, plans, and results that are held back."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.services import RuntimeServices
from agent_tui.attachments import approving_message
from agent_tui.config import PermissionMode
from agent_tui.errors import ConfigError, ToolError
from agent_tui.events import AgentEvent, Notice, PlanHandedOver, UserMessageAdded
from agent_tui.messages import ToolCall, ToolDetails, UserMessage, with_words
from agent_tui.permissions.rule_book import RuleBook
from agent_tui.permissions.verdict import Permissions, Verdict
from agent_tui.safe_paths import path_from, real_path, show_name
from agent_tui.tools.base import Intent, ToolOutput
from agent_tui.tools.held_files import HeldFile, HeldFiles
from agent_tui.tools.plan import plan_steps, plan_title


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """The user's answer. `words` go to the model with a "no"; without words the turn stops.

    `rules` replace the one for the whole command: those offered for its parts, or the user's own.
    "edits" also changes to accept-edits mode. For a plan, "once" approves it and asks before each
    change, "session" accepts edits; `plan` is the plan as the user changed it, or empty.
    """

    choice: Literal["once", "edits", "session", "project", "no"]
    words: str = ""
    rules: tuple[str, ...] = ()
    plan: str = ""


def keep_rules(answer: ApprovalAnswer, rule: str, book: RuleBook) -> str:
    """Add the rules of an answer that holds for later calls: its own, or else `rule`.

    Returns:
        Why they cannot be kept; empty if they are.
    """
    try:
        for kept in answer.rules or (rule,):
            if answer.choice == "session":
                book.add_session_rule(kept)
            elif answer.choice == "project":
                book.add_project_rule(kept)
    except ConfigError as error:
        return str(error)
    return ""


class PendingApprovals:
    """Open questions by id. Answers to unknown ids (of aborted questions) are ignored.

    Args:
        on_change: Called when a question is opened or closed.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._open: dict[str, asyncio.Future[ApprovalAnswer]] = {}
        self._forms = 0
        self._on_change = on_change

    @property
    def is_any(self) -> bool:
        """Whether a question waits for its answer."""
        return bool(self._open) or self._forms > 0

    @contextmanager
    def note_form(self) -> Generator[None]:
        """Note that a form waits for its answers inside a ``with`` block."""
        self._forms += 1
        self._on_change()
        try:
            yield
        finally:
            self._forms -= 1
            self._on_change()

    async def wait(self, request_id: str) -> ApprovalAnswer:
        """Wait until `answer` is called with this id."""
        future = asyncio.get_running_loop().create_future()
        self._open[request_id] = future
        self._on_change()
        try:
            return await future
        finally:
            del self._open[request_id]
            self._on_change()

    def answer(self, request_id: str, answer: ApprovalAnswer) -> None:
        """Give the answer; call this on the event loop's thread."""
        future = self._open.get(request_id)
        if future is not None and not future.done():
            future.set_result(answer)


_WRITE = "write"
_MOST_ROUNDS: Final = 5

Ask: TypeAlias = Callable[[ToolCall, Intent, Verdict], Awaitable[ApprovalAnswer]]
Remember: TypeAlias = Callable[[ApprovalAnswer, str], None]
_Judge: TypeAlias = Callable[[Sequence[HeldFile]], Awaitable[Sequence[HeldFile]]]


@dataclass(frozen=True, slots=True)
class HeldDecision:
    """Asks the user about the files that a result holds back.

    A file that a rule allows to be written is put in place. In full mode, or if nobody can be
    asked, the others stay held back. A file that is in place may be the user's, so they are asked
    whatever the model may not write. What the decisions led to is decided on as well, and what has
    changed since the question. `ask` shows the files and waits; `remember` stores a rule.
    """

    permissions: Permissions
    ask: Ask
    remember: Remember
    emit: Emit

    async def decide(self, call: ToolCall, output: ToolOutput, cwd: Path) -> ToolOutput:
        """`output` with the decisions on its held files."""
        if output.notice:
            self.emit(Notice("warning", output.notice))
        if output.holder is None or not output.held:
            return output
        root = await asyncio.to_thread(real_path, cwd)
        words: list[str] = []
        judge = partial(self._ask_about, call, root, words)
        said = await self._decide_all(output.held, output.holder, root, judge)
        refusals = [with_words("The user refused this.", each) for each in words]
        details = output.for_person.model_copy(update={"user_words": "\n".join(words)})
        text = "\n".join((output.for_model, *refusals, *said))
        return replace(output, for_model=text, for_person=details, held=())

    async def decide_rest(self, cwd: Path, holder: HeldFiles) -> None:
        """Decide on what commands left at their end, without a question.

        If the user can be asked, they are told now, and asked with the next command.
        """
        with suppress(ToolError):  # the next program looks again
            found, root = await holder.find_held(), await asyncio.to_thread(cwd.resolve)
            if self._can_ask:
                for held in found:
                    self.emit(Notice("warning", held.outcome(path_from(held.path, root))))
            else:
                judge = partial(self._ask_about, None, root, [])
                await self._decide_all(found, holder, root, judge)

    async def _decide_all(
        self, found: Sequence[HeldFile], holder: HeldFiles, root: Path, judge: _Judge
    ) -> list[str]:
        """Decide on `found`, and on what that led to; returns what the model is told."""
        said: list[str] = []
        for _ in range(_MOST_ROUNDS):
            for is_in_place in (False, True):
                files = [held for held in found if held.is_in_place == is_in_place]
                allowed = await judge(files)
                for held in files:
                    said.append(await self._settle(held, holder, root, may_stay=held in allowed))
            try:
                found = await holder.find_held()
            except ToolError:  # the next command looks again
                break
            if not found:
                break
        return said

    @property
    def _can_ask(self) -> bool:
        return self.permissions.mode != "full" and self.permissions.is_interactive

    async def _ask_about(
        self, call: ToolCall | None, root: Path, words: list[str], files: Sequence[HeldFile]
    ) -> list[HeldFile]:
        """Which of `files` may stay; what the user says instead is added to `words`."""
        judged = [(held, self.permissions.judge(_WRITE, _intent((held,), root))) for held in files]
        allowed = [held for held, v in judged if v.decision == "allow" and v.by == "rule"]
        asked = [held for held, v in judged if v.decision == "ask" or held.is_in_place]
        asked = [held for held in asked if held not in allowed]
        if asked and call is not None and self._can_ask:
            intent = _intent(asked, root)
            verdict = self.permissions.judge(_WRITE, intent)
            why = "; ".join(dict.fromkeys(held.who for held in asked))
            how = "in place, written by you or a command" if asked[0].is_in_place else "held back"
            answer = await self.ask(call, intent, replace(verdict, why=f"{how}: {why}"))
            if answer.choice == "no":
                words += [answer.words] if answer.words else []
            else:
                self.remember(answer, verdict.session_rule)
                allowed += asked
        return allowed

    async def _settle(
        self,
        held: HeldFile,
        holder: HeldFiles,
        root: Path,
        *,
        may_stay: bool,
    ) -> str:
        shown = path_from(held.path, root)
        try:
            moved = await holder.decide(held, may_stay)
        except ToolError as error:
            why = show_name(str(error))
            where = "" if held.is_in_place else f" ({show_name(str(held.aside))})"
            self.emit(Notice("warning", f"{why}{where}"))
            return f"[{why}]"
        if not may_stay:
            is_gone = moved.is_in_place
            notice = f"{shown} was gone already." if is_gone else moved.outcome(shown)
            self.emit(Notice("warning", notice))
            was = "was taken back" if held.is_in_place else "was not put in place"
            return f"[{shown} {was}. Do not try another way.]"
        now = "stays" if held.is_in_place else "was put in place"
        return f"[{shown} {now}, as the user allowed it]"


async def close_walls(services: RuntimeServices, conversation: Conversation) -> tuple[Notice, ...]:
    """End the sandbox of `conversation`; returns notices of what its commands left.

    If nobody can be asked, only what a rule allows stays.
    """
    notices = list[Notice]()

    def emit(event: AgentEvent) -> None:
        notices.extend([event] if isinstance(event, Notice) else [])

    async def ask(_call: ToolCall, _intent: Intent, _verdict: Verdict) -> ApprovalAnswer:
        return ApprovalAnswer("no")

    held = HeldDecision(conversation.permissions, ask, lambda _answer, _rule: None, emit)
    await services.sandbox.close_walls(partial(held.decide_rest, conversation.cwd))
    return tuple(notices)


def _intent(held: Sequence[HeldFile], root: Path) -> Intent:
    return Intent(
        title=", ".join(path_from(file.path, root) for file in held),
        access="write",
        paths=tuple(path for file in held for path in file.places),
        body="".join(file.diff for file in held),
        body_kind="diff",
        fingerprint="".join(digest for file in held for _, digest in file.files),
    )


_NOT_PLANNING = "This is not plan mode: no plan needs approval. Continue with the work."
_NOBODY_APPROVES = "The user has the plan and has not decided on it yet."
_DECLINED = "The user does not approve the plan yet."

AskAboutPlan: TypeAlias = Callable[[ToolCall, Intent], Awaitable[ApprovalAnswer]]
UseMode: TypeAlias = Callable[[PermissionMode], object]


@dataclass(slots=True)
class PlanDecision:
    """Asks the user about plans; an approved plan becomes a request of the user's.

    `ask` shows a plan and waits for the answer; `use_mode` changes the permission mode and records
    it.
    """

    conversation: Conversation
    permissions: Permissions
    use_mode: UseMode
    ask: AskAboutPlan
    emit: Emit
    _approved: str = field(default="", init=False)

    async def decide(self, call: ToolCall, plan: str) -> ToolOutput:
        """The result for the model. If nobody can answer, or a "no" has no words, the turn ends."""
        if self.permissions.mode != "plan":
            return ToolOutput(_NOT_PLANNING, is_error=True)
        self.emit(PlanHandedOver(call.id, plan))
        if not self.permissions.is_interactive:
            return ToolOutput(_NOBODY_APPROVES, ends_turn="done")
        intent = Intent(plan_title(plan), "none", body=plan, body_kind="plan")
        answer = await self.ask(call, intent)
        if answer.choice == "no":
            return ToolOutput(
                with_words(_DECLINED, answer.words),
                ToolDetails(ending="declined", user_words=answer.words),
                is_error=True,
                ends_turn="" if answer.words else "aborted",
            )
        self.use_mode("accept-edits" if answer.choice == "session" else "ask")
        self._approved = answer.plan or plan
        said = f"Plan approved. Permission mode: {self.permissions.mode}"
        self.emit(Notice("info", said, "plan"))
        return self._approval(is_changed=self._approved != plan)

    def say_approved(self) -> None:
        """Add the approved plan as the user's message, which every compaction keeps.

        Call this once all results of the reply are recorded. Files that it mentions are not
        attached, because the model wrote most of it.
        """
        if plan := self._approved:
            self._approved = ""
            message = UserMessage(content=approving_message(plan))
            entry = self.conversation.append(message)
            self.emit(UserMessageAdded(entry.id, message.text, 0))

    def _approval(self, *, is_changed: bool) -> ToolOutput:
        details = ToolDetails(summary="approved")
        if steps := plan_steps(self._approved):
            self.conversation.todos[:] = steps
            details = details.model_copy(update={"todos": steps})
        changed = " with changes" if is_changed else ""
        return ToolOutput(
            f"The user approved the plan{changed}. It follows as their message.", details
        )
