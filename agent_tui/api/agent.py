"""An agent in a program of one's own: a conversation without a screen and without settings."""

import inspect
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self, TypeAlias, cast

from agent_tui import paths
from agent_tui.agent.new_services import conversation_services
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.api.session import (
    Session,
    errors_for_programs,
    library_settings,
    named_model,
    session_or_folder,
)
from agent_tui.api.tools import FunctionTool
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.errors import IN_PROGRAM, AgentTuiError, CompactionError, SessionError, UsageError
from agent_tui.events import (
    AgentEvent,
    ApprovalRequest,
    ApprovalRequested,
    CompactionFailed,
    CompactionFinished,
    CompactionProgress,
    CompactionStarted,
    LimitWaitEnded,
    LimitWaitStarted,
    Notice,
    ReplyFinished,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
)
from agent_tui.feature import own_features
from agent_tui.messages import JsonObject
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.trust import FolderTrust, TrustFile
from agent_tui.providers.access import open_models
from agent_tui.safe_paths import real_path
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.files.home_links import linked_settings
from agent_tui.tools.form import CANCELLED, Elicitation, FormField, accept_form
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.registry import OfferedTool, default_toolbox

Event: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | ToolStarted
    | ToolOutputDelta
    | ToolFinished
    | ReplyFinished
    | CompactionStarted
    | CompactionProgress
    | CompactionFinished
    | CompactionFailed
    | RetryScheduled
    | LimitWaitStarted
    | LimitWaitEnded
    | Notice
    | TurnFinished
)
"""What `Agent.run` yields."""

Answers: TypeAlias = Sequence[str | Sequence[str]]
"""The answer to each question: one of its choices, a text, or several of both."""

Questions: TypeAlias = Callable[[Sequence[FormField]], Answers | Awaitable[Answers | None] | None]
"""Asked when the model has questions; returns the answers to them, or None to stop the run."""

Permissions: TypeAlias = Callable[[ApprovalRequest], bool | Awaitable[bool]]
"""Asked before a call that changes something; says whether it may be made."""


_NOT_ENDED = "The run has not ended. To leave its loop early, use contextlib.aclosing."
_LEFT = "The run was left before its end, so there are no last words."


def _check_functions(tools: object, permissions: object, questions: object) -> None:
    """Check what a program gives to be called.

    Raises:
        TypeError: One of it cannot be.
    """
    if isinstance(tools, FunctionTool):
        raise TypeError("tools is a list of functions: put brackets around the one you have.")
    for one in cast("Sequence[object]", tools):
        if not isinstance(one, FunctionTool):
            raise TypeError(f"{one!r} is no tool: put @agent_tui.tool above it.")
    if permissions is not None and not callable(permissions):
        raise TypeError("permissions is a function that gets an ApprovalRequest.")
    if questions is not None and not callable(questions):
        raise TypeError("questions is a function that gets a list of FormField.")


async def _answers_of(questions: Questions, form: Elicitation) -> JsonObject:
    """The answers of a program to the questions in `form`.

    Raises:
        TypeError: They are not what `Questions` returns.
    """
    given = questions(form.fields)
    answers = cast("object", await given if inspect.isawaitable(given) else given)
    if answers is None:
        return CANCELLED
    if isinstance(answers, str) or not isinstance(answers, Sequence):
        raise TypeError(f"questions returned {answers!r}; return a list of answers, or None")
    listed = cast("Sequence[object]", answers)
    if len(listed) != len(form.fields):
        raise TypeError(f"questions returned {len(listed)} answers to {len(form.fields)} questions")
    values: JsonObject = {}
    for field, answer in zip(form.fields, listed, strict=True):
        texts = [answer] if isinstance(answer, str) else answer
        if not isinstance(texts, Sequence):
            raise TypeError(f"questions returned {answer!r}; an answer is a text or a list of them")
        values[field.name] = [str(text) for text in cast("Sequence[object]", texts)]
    return accept_form(values)


def _write_instructions(config_dir: Path, text: str) -> None:
    """Write what a conversation reads as its user's own instructions."""
    config_dir.mkdir(parents=True, exist_ok=True)
    (config_dir / "AGENTS.md").write_text(text, "utf-8", errors="replace")


class Agent:
    """A conversation with a model that reads, edits and runs things in a folder.

        async with Agent(model="anthropic/claude-sonnet-5-5", cwd="my-project") as agent:
            async for event in agent.run("Why does the build fail?"):
                ...
            print(agent.result)

    Args:
        model: Its name with the provider's. The key comes from the provider's environment variable.
        base_url: Address of a server of your own.
        api_key_env: Environment variable with its key; by default the provider's.
        window: Context window of the model in tokens, where its server does not say.
        tools: What the model may use beside its own tools: functions under `agent_tui.tool`.
        cwd: The folder it works in; by default that of `session`, or the present one.
        permissions: Asked before each call that changes something or goes to the network. Without
            it the agent only reads.
        questions: Asked when the model has questions: it gets a `FormField` for each, with the
            question as its `title` and the answers to choose from as its `choices`, and returns
            their answers in that order. Without it the model cannot ask.
        instructions: What the model is told beside the built-in system prompt, such as its role;
            at most 40,000 characters are used.
        max_turns: Most replies of the model in a run, which then ends with the outcome ``limit``;
            by default any number.
        session: A `Session`, its file or its id, to continue it; or a folder in which a new one is
            kept. Ids are searched where the program keeps its sessions. Without `session` the
            conversation is in memory alone.

    Nothing is read from a user's settings, and nothing but `session` is written to their
    folders. Commands run without a sandbox, after `permissions` allowed them.

    Raises:
        UsageError: There is no model of that name, or the folder does not exist.
        SessionError: There is no session with that id or in that file.
        TypeError: A tool is no function under `agent_tui.tool`, or `permissions` is no function.
        ValueError: Two tools have the same name, or `max_turns` is no whole number from 1 on.
    """

    def __init__(  # noqa: PLR0913 - all but the first are named where it is called
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key_env: str | None = None,
        window: int | None = None,
        tools: Sequence[FunctionTool[..., object]] = (),
        cwd: str | Path | None = None,
        permissions: Permissions | None = None,
        questions: Questions | None = None,
        instructions: str = "",
        max_turns: int | None = None,
        session: Session | str | Path | None = None,
    ) -> None:
        session = session_or_folder(session)
        self._unopened = session if isinstance(session, Session) else None
        given = cwd or (self._unopened.cwd if self._unopened else ".")
        folder = real_path(Path(given).expanduser())
        if not folder.is_dir():
            raise UsageError(f"There is no folder {folder}.")
        if max_turns is not None and (type(max_turns) is not int or max_turns < 1):
            raise ValueError(f"max_turns must be a whole number of at least 1, not {max_turns!r}")
        _check_functions(tools, permissions, questions)
        self._permissions = permissions
        settings = library_settings(
            model,
            base_url,
            window,
            api_key_env,
            recall_other_sessions=False,
        )
        self._models = open_models(settings, os.environ, ways=IN_PROGRAM)
        ref = named_model(self._models.catalog, settings.model)
        self._scratch = TemporaryDirectory(prefix="agent-tui-", ignore_cleanup_errors=True)
        try:
            services = self._services([one.offer() for one in tools], session)
            if instructions:
                _write_instructions(services.user_config_dir, instructions)
        except ValueError:
            self._scratch.cleanup()
            raise
        services = replace(services, most_replies=max_turns or 0)
        planner = CompactionPlanner(services.client, services.counter, self._models.catalog)
        self._runtime = AgentRuntime(services, planner, ref, folder, "ask")
        self._fault: Exception | None = None
        if questions is not None:
            self._runtime.let_answer(partial(self._answer_questions, questions))
        self._result = ""
        self._problem = "Nothing was asked yet."

    async def __aenter__(self) -> Self:
        """Nothing is started before it is needed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """As `aclose`."""
        await self.aclose()

    @property
    def result(self) -> str:
        """The last words of the model.

        Raises:
            AgentTuiError: The last run did not come to its end; the text says why.
        """
        if self._problem:
            raise AgentTuiError(self._problem)
        return self._result

    @property
    def session(self) -> Session | None:
        """Where the conversation is kept; None where it is in memory, or nothing was said yet."""
        if self._unopened is not None:
            return self._unopened
        log = self._runtime.conversation.log
        if log.path is None or not log.path.exists():
            return None
        return Session.open(log.path, folder=self._runtime.services.store.root)

    async def run(self, prompt: str) -> AsyncGenerator[Event, None]:
        """Send `prompt` and yield what happens, until the model is done.

        The last event is a `TurnFinished`. To stop early, close the generator, as
        `contextlib.aclosing` does: leaving the loop alone does not end the run at once.

        Raises:
            SessionError: The session cannot be continued, as another program has it open, say.
        """
        await self._open()
        if is_first := not self._runtime.is_busy:
            self._result, self._problem = "", _NOT_ENDED
        try:
            with errors_for_programs():
                async with aclosing(self._runtime.submit(prompt)) as events:
                    async for event in events:
                        if isinstance(event, ApprovalRequested):
                            await self._answer(event.request)
                            continue
                        self._note(event)
                        if isinstance(event, Event):
                            yield event
            if (fault := self._fault) is not None:
                self._fault = None
                raise fault
        finally:
            if is_first and self._problem == _NOT_ENDED:
                self._problem = _LEFT

    async def ask(self, prompt: str) -> str:
        """Send `prompt` and return the model's last words.

        Raises:
            AgentTuiError: It did not come to its end; the text says why.
        """
        async with aclosing(self.run(prompt)) as events:
            async for _ in events:
                pass
        return self.result

    async def compact(self, focus: str = "") -> None:
        """Compact the context now. This also happens automatically before it is full.

        Args:
            focus: What to pay attention to.

        Raises:
            CompactionError: There is nothing to compact.
            SessionError: The session cannot be continued.
        """
        await self._open()
        failure: AgentEvent | None = None
        with errors_for_programs():
            async with aclosing(self._runtime.compact_here("tiered", focus)) as events:
                async for event in events:
                    failure = event if isinstance(event, CompactionFailed) else failure
        if isinstance(failure, CompactionFailed):
            raise CompactionError(failure.message)

    async def aclose(self) -> None:
        """End what was started."""
        await self._runtime.aclose()
        await self._models.provider.aclose()
        self._scratch.cleanup()

    async def _open(self) -> None:
        """Open the session to continue, on the first call."""
        if self._unopened is None:
            return
        path = self._unopened.path
        with errors_for_programs():
            await self._runtime.sessions.open(str(path), keep_model=True, here=True)
        if self._runtime.conversation.log.path != path:
            raise SessionError(f"The session {path} cannot be written.")
        self._unopened = None

    def _note(self, event: AgentEvent) -> None:
        """Take the result from the events of a run."""
        if isinstance(event, ReplyFinished):
            self._result = event.message.text
        if isinstance(event, TurnFinished):
            is_done = event.outcome == "done"
            self._problem = "" if is_done else event.error or f"Ended: {event.outcome}."

    async def _answer_questions(self, questions: Questions, form: Elicitation) -> JsonObject:
        """Have the program answer; what it raises stops the turn, and `run` raises it."""
        try:
            return await _answers_of(questions, form)
        except Exception as fault:  # noqa: BLE001 - the model is not told of faults of the program
            self._fault = fault
            return CANCELLED

    async def _answer(self, request: ApprovalRequest) -> None:
        may = self._permissions(request) if self._permissions is not None else False
        if inspect.isawaitable(may):
            may = await may
        if not isinstance(cast("object", may), bool):
            raise TypeError(f"permissions returned {may!r}; return True or False")
        answer = ApprovalAnswer("once") if may else ApprovalAnswer("no", "This was not allowed.")
        self._runtime.pending_approvals.answer(request.id, answer)

    def _services(
        self,
        tools: Sequence[OfferedTool],
        session: Session | Path | None,
    ) -> RuntimeServices:
        """The services of a conversation, in a temporary folder except for `session`."""
        folder = Path(self._scratch.name)
        kept = session.folder if isinstance(session, Session) else session
        trust = FolderTrust(TrustFile(folder / "trust.json"))

        def make_permissions(workspace: Path, mode: PermissionMode) -> PermissionEngine:
            engine = PermissionEngine(
                mode=mode,
                rules=PermissionSettings(),
                workspace=workspace,
                project_rules_file=folder / "permissions.toml",
                own_folders=(paths.user_config_dir(), paths.user_data_dir()),
                is_interactive=self._permissions is not None,
                git_risk=trust.git_risk,
            )
            engine.ways = IN_PROGRAM
            engine.work_in((), find_linked=linked_settings((workspace,), os.environ))
            return engine

        services = conversation_services(
            self._models,
            store=SessionStore(kept or folder / "sessions"),
            toolbox=default_toolbox(ProcessKeeper(), is_trusted=trust.may_run_git, more=tools),
            make_permissions=make_permissions,
            trust=trust,
            user_config_dir=folder / "config",
            output_dir=folder / "outputs",
        )
        is_kept = kept is not None
        return replace(
            services,
            keeps_sessions=is_kept,
            keeps_mode=True,
            origin="library",
            features=own_features(),
        )
