"""A whole conversation with a model behind the real client, and what it left behind."""

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.events import AgentEvent, TextDelta, TurnFinished
from agent_tui.messages import AssistantMessage, TextContent, ToolResultMessage, UserMessage
from agent_tui.providers.base import ModelRef
from agent_tui.providers.host import ProviderHost
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.log import SessionLog
from tests.faults.table import Row, Wire
from tests.support.openai_server import Answer, OpenAiServer, Reply
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind, only

FINE = Reply(text="Fine.")
SUMMARY = Reply(text=GOOD_SUMMARY)
_LONG = "A long answer. " * 200


class Waits:
    """A sleep that notes what was asked for and is over at once."""

    def __init__(self) -> None:
        self.delays_s: list[float] = []

    async def sleep(self, delay_s: float) -> None:
        self.delays_s.append(delay_s)


class Conversation:
    """A runtime whose model is the server, spoken to in the protocol of `wire`."""

    def __init__(
        self,
        stage: Stage,
        server: OpenAiServer,
        host: ProviderHost,
        wire: Wire,
        *,
        window: int = 100_000,
    ) -> None:
        self.waits = Waits()
        self.server = server
        self.wire: Wire = wire
        self.model = model_at(server, wire)
        self.runtime: AgentRuntime = stage.runtime(
            host, model=self.model, sleep=self.waits.sleep, window=window
        )
        self.workspace = stage.workspace

    def of(self, row: Row) -> Answer:
        """What the server answers in `row`."""
        return row.answers[self.wire]

    async def say(self, text: str = "hello", *answers: Answer) -> list[AgentEvent]:
        self.server.play(*answers)
        return await collect(self.runtime.submit(text))

    async def go_on(self, *answers: Answer) -> list[AgentEvent]:
        self.server.play(*answers)
        return await collect(self.runtime.continue_turn())

    async def compact(self, *answers: Answer) -> list[AgentEvent]:
        self.server.play(*answers)
        return await collect(self.runtime.compact())

    def remember(self) -> None:
        """Put talk into the log that is worth a summary."""
        for number in range(3):
            reply = AssistantMessage(content=(TextContent(text=_LONG),), stop_reason="stop")
            self.runtime.conversation.log.append(
                MessageEntry(message=UserMessage(content=f"Why {number}?"))
            )
            self.runtime.conversation.log.append(MessageEntry(message=reply))

    async def is_usable(self) -> bool:
        """Whether the conversation goes on as if nothing had happened."""
        return succeeded(await self.say("and now?", FINE))

    @property
    def stored(self) -> list[MessageEntry]:
        """The messages in the session file, read anew."""
        path = self.runtime.conversation.log.path
        assert path is not None
        with SessionLog.open(path, read_only=True) as log:
            assert log.warnings == ()
            return [entry for entry in log.path_entries() if isinstance(entry, MessageEntry)]

    @property
    def replies(self) -> list[AssistantMessage]:
        return [e.message for e in self.stored if isinstance(e.message, AssistantMessage)]

    @property
    def results(self) -> list[ToolResultMessage]:
        return [e.message for e in self.stored if isinstance(e.message, ToolResultMessage)]

    @property
    def times_run(self) -> int:
        """How often `NOTE` was run."""
        file = self.workspace / "ran.txt"
        return file.read_text().count("ran") if file.exists() else 0


def model_at(server: OpenAiServer, wire: Wire) -> ModelRef:
    """A model that `server` has, by the protocol it is asked in."""
    if wire == "anthropic":
        address = server.base_url.removesuffix("/v1")
        return ModelRef("anthropic/claude-sonnet-4-5", address, "THE_KEY")
    return ModelRef("some-model", server.base_url, "THE_KEY")


def failed(events: list[AgentEvent]) -> str:
    """The error of a turn that failed and can be continued."""
    end = only(events, TurnFinished)
    assert (end.outcome, end.can_continue) == ("error", True)
    return end.error


def succeeded(events: list[AgentEvent]) -> bool:
    return only(events, TurnFinished).outcome == "done"


def shown_text(events: list[AgentEvent]) -> str:
    return "".join(event.text for event in of_kind(events, TextDelta))
