"""A long session, and a compression agent that plays a script on it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.compaction.outcome import Outcome
from agent_tui.compaction.request import Asking, CompactionRequest, ContextSizes
from agent_tui.compaction.strategies.base import StrategyServices
from agent_tui.config import CompactionSettings
from agent_tui.features.strategies.agent.actions import METADATA, RESULT, SEGMENT, VERIFY
from agent_tui.features.strategies.agent.strategy import TIME_LIMIT_S, CompressionAgent
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import ToolCall, Usage, UserMessage
from agent_tui.providers.base import ModelRef, ModelRequest, Provider
from agent_tui.sessions.entries import Entry
from agent_tui.tokens import TokenCounter
from tests.compaction.writer import Models, client_of
from tests.support.talk import Talk

SETTINGS = CompactionSettings(protected_messages=4, keep_recent_tokens=2_000)
RULE = "Never touch the lock file."
USED = Usage(input=100, output=10, total_tokens=110)

ACCOUNT = (
    "The person asked for a look at src/part3.py and others and for a fix of the parser. The "
    "files were read and the tests were run; they passed. The parser was found to be right, and "
    "its callers were listed one after the other, so that nothing is left to do there for now."
)


RESULTS_ALONE = 8_300
"""A target that is reached by making results short."""

WITH_SEGMENTS = 6_700
"""A target that is not."""


def account(part: int) -> str:
    """An account that can stand for a segment with that part."""
    return ACCOUNT.replace("part3", f"part{part}")


def good_run() -> list[Reply]:
    return [
        Reply(tool_calls=(shorten("1-40"), verify())),
        Reply(tool_calls=(segment(1, 6), segment(7, 12, call_id="s2"))),
        Reply(tool_calls=(segment(1, 6, account(0)), segment(7, 12, account(1)), verify())),
    ]


def metadata(**arguments: object) -> ToolCall:
    return call("m1", METADATA, **arguments)


def shorten(*ids: str, keep: str = "line", call_id: str = "r1") -> ToolCall:
    return call(call_id, RESULT, ids=list(ids), keep=keep)


def segment(first: int, last: int, text: str | None = None, call_id: str = "s1") -> ToolCall:
    if text is None:
        return call(call_id, SEGMENT, first=first, last=last)
    return call(call_id, SEGMENT, first=first, last=last, text=text)


def verify() -> ToolCall:
    return call("v1", VERIFY)


def long_session(turns: int = 8, results_lines: int = 150) -> tuple[Entry, ...]:
    """Turns of six messages: a request, two calls with results, an answer."""
    talk = Talk()
    for turn in range(turns):
        rule = f" {RULE}" if turn == 1 else ""
        talk.user(f"Please look at src/part{turn}.py and fix the parser.{rule} " + "Go on. " * 60)
        path = f"src/part{turn}.py"
        text = "def parse(value): ...\n" * results_lines
        talk.tool("read", {"path": path}, text, is_foreign=True)
        talk.tool("bash", {"command": f"pytest -q tests/part{turn}"}, "a line of output\n" * 120)
        talk.reply(
            f"I looked at src/part{turn}.py, part {turn} of the parser. " + "It works. " * 90
        )
    return talk.path


@dataclass
class Scene:
    """One conversation to compress; `target_tokens` 0 is what the settings say."""

    counter: TokenCounter
    script: list[Reply] | Callable[[ModelRequest], Reply]
    path: tuple[Entry, ...] = field(default_factory=long_session)
    target_tokens: int = 6_000
    window: int = 20_000
    models: Models = field(default_factory=Models)
    settings: CompactionSettings = SETTINGS
    focus: str = ""
    limit_s: float = TIME_LIMIT_S
    has_provider: bool = True
    phases: list[str] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.provider = ScriptedProvider(self.script)

    @property
    def request(self) -> CompactionRequest:
        return CompactionRequest(
            path=self.path,
            previous=None,
            model=ModelRef("scripted/one"),
            cwd=Path("/project"),
            settings=self.settings,
            sizes=ContextSizes(
                window=self.window, used=10_000, overhead=500, target=self.target_tokens
            ),
            asking=Asking(focus=self.focus),
        )

    async def plan(self, provider: Provider | None = None) -> Outcome:
        client = client_of((provider or self.provider) if self.has_provider else None)
        services = StrategyServices(client, self.counter, self.models, self.decisions.extend)
        agent = CompressionAgent(services, self.limit_s)
        return await agent.plan(
            self.request,
            on_progress=lambda phase, chars: self.phases.append(phase),
            on_usage=self.usages.append,
        )

    @property
    def shown(self) -> list[str]:
        """What each request began with."""
        firsts = [request.messages[0] for request in self.provider.requests]
        return [message.text for message in firsts if isinstance(message, UserMessage)]

    def answers(self, request: int) -> list[str]:
        """What the calls of the reply before the request of that number were answered."""
        return [message.text for message in self.provider.requests[request].messages[2:]]
