"""One session of an editor: its conversation, questions, modes, options and commands."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import TypeAlias, TypeVar, get_args

from acp import Client, schema

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.agent.turn.user_message import NewMessage
from agent_tui.commands.core.command import Command
from agent_tui.commands.core.forms import form_filler, question_filler
from agent_tui.commands.core.found_commands import CommandFinders
from agent_tui.commands.core.front import CommandServices, Question, has_model
from agent_tui.commands.core.permission_modes import MODES
from agent_tui.commands.core.registry import CalledCommand, UnknownCommand, load_commands
from agent_tui.commands.trust import ask_about_started
from agent_tui.config import PermissionMode
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent, ApprovalRequest, ApprovalRequested, TurnFinished
from agent_tui.features.acp.contents import PromptBlock, read_prompt
from agent_tui.features.acp.editor import EditorTexts, EditorTraits, Outbox
from agent_tui.features.acp.front import AcpFront
from agent_tui.features.acp.questions import EditorForms, EditorQuestions, QuestionCancelled
from agent_tui.features.acp.updates import Updates, chat_message, plan_of, replay_updates
from agent_tui.messages import ThinkingLevel

ConfigOptions: TypeAlias = list[
    schema.SessionConfigOptionSelect | schema.SessionConfigOptionBoolean
]

MODEL, THINKING = "model", "thinking"


def modes_of(present: PermissionMode) -> schema.SessionModeState:
    """The permission modes and the present one."""
    modes = [schema.SessionMode(id=mode, name=mode, description=text) for mode, text in MODES]
    return schema.SessionModeState(current_mode_id=present, available_modes=modes)


def options_of(model: str, models: Iterable[str], thinking: ThinkingLevel) -> ConfigOptions:
    """Model and thinking level, with the possible values."""
    names = [name for name in dict.fromkeys((model, *models)) if name]
    levels = get_args(ThinkingLevel)
    return [
        _select(MODEL, "Model", "model", model, names),
        _select(THINKING, "Thinking", "thought_level", thinking, levels),
    ]


def commands_of(commands: Iterable[Command]) -> schema.AvailableCommandsUpdate:
    """The slash commands."""
    told = [
        schema.AvailableCommand(
            name=each.name,
            description=each.description,
            input=schema.AvailableCommandInput(
                schema.UnstructuredCommandInput(hint=each.argument_hint)
            )
            if each.argument_hint
            else None,
        )
        for each in commands
    ]
    return schema.AvailableCommandsUpdate(
        session_update="available_commands_update", available_commands=told
    )


def _select(
    id: str, name: str, category: str, present: str, values: Sequence[str]
) -> schema.SessionConfigOptionSelect:
    return schema.SessionConfigOptionSelect.model_validate(
        {
            "id": id,
            "name": name,
            "category": category,
            "type": "select",
            "currentValue": present,
            "options": [schema.SessionConfigSelectOption(value=each, name=each) for each in values],
        }
    )


AnswerT = TypeVar("AnswerT")


class AcpSession:
    """A conversation that an editor shows.

    Args:
        id: Its id in the editor.
        runtime: The conversation.
        services: The other services for commands.
        client: The editor.
        editor: The editor's traits.
    """

    def __init__(
        self,
        id: str,
        runtime: AgentRuntime,
        services: CommandServices,
        client: Client,
        editor: EditorTraits,
    ) -> None:
        self.id = id
        self.runtime = runtime
        self._updates = Updates(runtime)
        self._outbox = Outbox(client, id)
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked = EditorQuestions(self._outbox, editor)
        self._turn = asyncio.Lock()
        self._beginning: asyncio.Task[None] | None = None
        self._has_asked = self._is_cancelled = False
        self._told_choices = self._choices
        forms = EditorForms(self._outbox) if editor.shows_forms else None
        registry = load_commands(services.plugins)
        self._front = AcpFront(
            runtime, services, registry, self._see, self._tell, self._choose, forms
        )
        self._finders = CommandFinders(registry, runtime, services, self._tell)
        runtime.services.open_texts = EditorTexts(
            client, id, runtime.conversation.cwd, editor.files
        )
        runtime.listen_to_jobs(self._see_job, can_wake=True)
        if forms is not None:
            services.servers.let_answer(form_filler(self._front, forms.fill))
        runtime.let_answer(question_filler(self._front) if forms is None else forms.fill)

    # What the editor asks

    async def begin(self, notices: Sequence[str] = ()) -> ConfigOptions:
        """Send the first updates, once the editor has the answer that makes the session known.

        Args:
            notices: Texts about the start for the user.

        Returns:
            The options for that answer.
        """
        options = await self.options()
        self._beginning = asyncio.create_task(self._tell_what_there_is(notices))
        return options

    async def _tell_what_there_is(self, notices: Sequence[str]) -> None:
        """Send notices, commands, and how full the context is."""
        for notice in filter(None, notices):
            self._tell(notice)
        await self.tell_commands()
        for event in await self.runtime.refresh_usage():
            self._see(event)
        self._outbox.put(self._updates.usage())

    async def replay(self) -> None:
        """Send all earlier messages, including those of sessions before compactions."""
        conversation = self.runtime.conversation
        tree = await self.runtime.sessions.whole_tree()
        for update in replay_updates(tree.path, conversation.cwd):
            self._outbox.put(update)
        if conversation.todos:
            self._outbox.put(plan_of(conversation.todos))

    async def prompt(self, blocks: Sequence[PromptBlock]) -> schema.StopReason:
        """Run a message or a command; returns after all updates, errors included, are queued."""
        message = read_prompt(blocks)
        text = message.text
        front = self._front
        front.finished = None
        self._is_cancelled &= self._turn.locked()
        try:
            if self._beginning is not None:
                begun, self._beginning = self._beginning, None
                await begun
            await self._ask_about_started()
            if self._is_cancelled:
                return "cancelled"
            if text.startswith("/"):
                await self._finders.refresh()
            called = front.registry.read(text) if not message.images else None
            if isinstance(called, UnknownCommand):
                front.say(called.why)
            elif isinstance(called, CalledCommand):
                await called.run(front)
            elif await has_model(front):
                await self._send(message)
        except AgentTuiError as error:
            front.say(str(error))
        await self._tell_choices()
        await self.flush()
        is_cancelled = self._is_cancelled and front.finished is None
        return "cancelled" if is_cancelled else _stop_reason(front.finished)

    async def _send(self, new: NewMessage) -> None:
        """Run a turn; a message during a turn joins it, or becomes the next one."""
        if self._turn.locked():
            self.runtime.enqueue(new.text, new.images, new.typed)
            async with self._turn:  # the running turn delivers the message
                return
        async with self._turn:
            await self._run_to_rest(self.runtime.submit(new.text, new.images, new.typed))
        self._tell_news()

    async def _run_to_rest(self, events: AsyncGenerator[AgentEvent, None]) -> None:
        """Run a turn, and then what was queued meanwhile."""
        queue = self.runtime.conversation.queue
        try:
            await self._front.run(events)
            while (left := queue.first) is not None and not self._was_stopped:
                queue.take_first()
                await self._front.run(self.runtime.submit(left.text, left.images, left.typed))
        finally:
            queue.take_all()

    def _see_job(self, event: AgentEvent) -> None:
        self._see(event)
        self._tell_news()

    def _tell_news(self) -> None:
        """Begin a turn of its own if the model waits for news; no answer to the editor waits."""
        if not self._turn.locked() and (turn := self.runtime.turn_for_news()) is not None:
            self._keep(asyncio.create_task(self._run_for_news(turn)))

    async def _run_for_news(self, turn: AsyncGenerator[AgentEvent, None]) -> None:
        async with self._turn:
            try:
                self._is_cancelled = False
                await self._run_to_rest(turn)
            except AgentTuiError as error:
                self._tell(str(error))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def _was_stopped(self) -> bool:
        return self._is_cancelled or _stop_reason(self._front.finished) == "cancelled"

    async def cancel(self) -> None:
        """Stop the running work."""
        self._is_cancelled = True
        self.runtime.abort()

    def set_mode(self, mode_id: str) -> bool:
        """Set the permission mode; false if it does not exist."""
        for mode, _ in MODES:
            if mode == mode_id:
                self.runtime.sessions.use_mode(mode)
                self._told_choices = self._choices
                return True
        return False

    async def set_option(self, option: str, value: str) -> bool:
        """Set the model or the thinking level; false if there is no such option.

        Raises:
            AgentTuiError: The value is not possible.
        """
        if option == MODEL:
            events = self.runtime.set_model(self._front.services.models.resolve(value))
        elif option == THINKING:
            levels: dict[str, ThinkingLevel] = {level: level for level in get_args(ThinkingLevel)}
            if (level := levels.get(value)) is None:
                return False
            events = self.runtime.set_thinking(level)
        else:
            return False
        self._told_choices = self._choices
        for event in (*events, *await self.runtime.refresh_usage()):
            self._see(event)
        return True

    @property
    def modes(self) -> schema.SessionModeState:
        """The permission modes and the present one."""
        return modes_of(self.runtime.conversation.permissions.mode)

    async def options(self) -> ConfigOptions:
        """Model and thinking level, with the possible values."""
        conversation = self.runtime.conversation
        found = await self._front.services.models.list_models()
        names = [each.ref.name for each in found]
        return options_of(conversation.model.name, names, conversation.thinking)

    @property
    def _choices(self) -> tuple[PermissionMode, str, ThinkingLevel]:
        """The present mode, model and thinking level."""
        conversation = self.runtime.conversation
        return conversation.permissions.mode, conversation.model.name, conversation.thinking

    async def _tell_choices(self) -> None:
        """Send the changes of commands to values that the editor has menus for."""
        (mode, *rest), (told_mode, *told_rest) = self._choices, self._told_choices
        self._told_choices = self._choices
        if mode != told_mode:
            self._outbox.put(
                schema.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode)
            )
        if rest != told_rest:
            options = await self.options()
            self._outbox.put(
                schema.ConfigOptionUpdate(
                    session_update="config_option_update", config_options=options
                )
            )

    async def tell_commands(self) -> None:
        """Send the slash commands, including prompt files and skills."""
        await self._finders.refresh()
        commands = self._front.registry.commands
        self._outbox.put(commands_of(c for c in commands if not c.missing_in(self._front)))

    async def flush(self) -> None:
        """Wait until the editor has received everything."""
        await self._outbox.flush()

    async def aclose(self) -> None:
        """Stop the running work and close the session."""
        if self._beginning is not None:
            self._beginning.cancel()
        await self.runtime.aclose()
        for task in tuple(self._tasks):
            task.cancel()
        await self._outbox.aclose()

    # What the editor is told

    def _see(self, event: AgentEvent) -> None:
        if isinstance(event, ApprovalRequested):
            self._keep(asyncio.create_task(self._answer(event.request)))
            return
        for update in self._updates.of(event):
            self._outbox.put(update)

    def _tell(self, text: str) -> None:
        self._outbox.put(chat_message(text))

    async def _answer(self, request: ApprovalRequest) -> None:
        answer = ApprovalAnswer("no")
        try:
            answer = await self._asked.approval(request, self.runtime.conversation.cwd)
        finally:
            self.runtime.pending_approvals.answer(request.id, answer)

    async def _choose(self, question: Question[AnswerT]) -> AnswerT | None:
        """Ask the user a command's question."""
        try:
            return await self._asked.choice(question)
        except QuestionCancelled:
            self._is_cancelled = True
            return None

    async def _ask_about_started(self) -> None:
        """Ask once whether programs that the editor or the project names may start."""
        if not self._has_asked:
            self._has_asked = True
            await ask_about_started(self._front)


def _stop_reason(finished: TurnFinished | None) -> schema.StopReason:
    match finished.outcome if finished is not None else "done":
        case "aborted":
            return "cancelled"
        case "length":
            return "max_tokens"
        case _:
            return "end_turn"
