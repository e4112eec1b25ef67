"""A conversation by lines with a script on both sides: what is typed, and what the model says."""

import io
from collections.abc import Sequence
from contextlib import nullcontext

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.commands.core.registry import load_commands
from agent_tui.drafts.history import PromptHistory
from agent_tui.features.plain.agent_thread import AgentThread
from agent_tui.features.plain.front import PlainFront
from agent_tui.features.plain.keyboard import Keyboard
from agent_tui.features.plain.narrator import Narrator
from agent_tui.features.plain.questions import Asker
from agent_tui.features.plain.session import PlainOptions, PlainSession
from agent_tui.features.plain.voice import LineWriter, Progress
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef
from tests.support.runtime import Stage

Typed = str | type[BaseException]


class TypedLines:
    """Gives one line after the other and notes the prompts; what is no text is raised.

    Several lines are a paste: all but the first are `unread`.
    """

    def __init__(
        self, typed: Sequence[Typed], out: io.StringIO, unread: "Unread | None" = None
    ) -> None:
        self._unread = unread
        self._typed = list(typed)
        self.remembered: list[str] = []
        self._out = out

    def remember(self, line: str) -> None:
        self.remembered.append(line)

    def is_begun(self) -> bool:
        return False

    def read(self, prompt: str, begun: str = "") -> str:
        typed = self._typed.pop(0) if self._typed else EOFError
        if not isinstance(typed, str):
            self._out.write(prompt)
            raise typed
        typed = begun + typed
        self._out.write(f"{prompt}{typed}\n")
        if self._unread is None:
            return typed
        first, _, rest = typed.partition("\n")
        self._unread.put(rest)
        return first


class Unread:
    """What was typed before it was asked for: `lines` the first time, then nothing."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)
        self.dropped = 0

    def put(self, rest: str) -> None:
        if rest:
            self._lines.insert(0, rest)

    def take(self) -> str:
        return self._lines.pop(0) if self._lines else ""

    def drop_rest(self) -> None:
        self.dropped += 1


class Models:
    """Two models that answer, and no other name."""

    async def list_models(self) -> tuple[FoundModel, ...]:
        names = ("scripted/one", "scripted/two")
        return tuple(
            FoundModel(ModelRef(name), ModelInfo(name, 8_000, 1_000), via="SOME_KEY")
            for name in names
        )

    def resolve(self, name: str) -> ModelRef:
        return ModelRef(name)

    def info(self, ref: ModelRef) -> ModelInfo:
        return ModelInfo(ref.name, 8_000, 1_000)


async def nothing() -> None:
    pass


def asker(*typed: Typed, pending: str = "") -> tuple[Asker, io.StringIO]:
    """Somebody to ask who answers with `typed`, and what they read."""
    out = io.StringIO()
    unread = Unread(pending)
    keyboard = Keyboard(TypedLines(typed, out, unread), nullcontext, unread, [])
    return Asker(LineWriter(out, tuple), keyboard), out


def talk(
    stage: Stage,
    runtime: AgentRuntime,
    *typed: Typed,
    first_prompt: str = "",
    resume: str = "",
    lists_sessions: bool = False,
    unread: Sequence[str] = (),
) -> str:
    """All that was written while `typed` was typed, what was typed with it."""
    out = io.StringIO()
    lines = LineWriter(out, lambda: runtime.conversation.services.secrets)
    keyboard = Keyboard(TypedLines(typed, out), nullcontext, Unread(*unread), [])
    options = PlainOptions(
        runtime,
        CommandServices(Models(), KnownModels()),
        nothing,
        nothing,
        stage.folder / "project" / "history.jsonl",
        first_prompt=first_prompt,
        resume=resume,
        lists_sessions=lists_sessions,
    )
    with AgentThread() as agent:
        front = PlainFront(
            runtime=runtime,
            services=options.services,
            registry=load_commands(),
            agent=agent,
            lines=lines,
            narrator=Narrator(lines, Progress(lambda: 0.0)),
            asker=Asker(lines, keyboard),
            warm=lambda: None,
        )
        try:
            PlainSession(front, options, PromptHistory(options.history_file)).run()
        finally:
            agent.wait(runtime.aclose())
    return out.getvalue()
