"""The whole app over a real conversation; only the model plays a script.

All that the tests know of the app's inside is here.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from textual.pilot import Pilot
from textual.screen import Screen

from agent_tui.agent.prompt.context_files import ContextFile
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.demo import own_demo
from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.commands.core.plugins import Plugins
from agent_tui.commands.core.registry import CommandRegistry
from agent_tui.errors import SessionError
from agent_tui.events import AgentEvent
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    TextContent,
    ThinkingLevel,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agent_tui.permissions.rules import Rule
from agent_tui.providers.accounts import Account
from agent_tui.providers.base import FoundModel, ModelRef
from agent_tui.sessions.entries import Header, MessageEntry
from agent_tui.tokens import ContextUsage
from agent_tui.tools.tool_servers import ToolServers
from agent_tui.ui.app import AgentApp
from agent_tui.ui.approval_panel import ApprovalPanel
from agent_tui.ui.chat.lines_above_prompt import ActivityLine, PlanView, QueueView
from agent_tui.ui.options import FirstRun, KeyChoice, UiOptions
from agent_tui.ui.screens.picker import RowList
from agent_tui.ui.status.status_line import StatusFields
from agent_tui.ui.terminal.outcome import UiOutcome
from agent_tui.ui.transcript.blocks import Block, NoticeBlock
from agent_tui.ui.transcript.view import Transcript
from tests.support.models import MODEL, ListedModels
from tests.support.runtime import Stage

_QUICK_TURNS, _MOST_TURNS = 20, 6_000
NAMES = {" ": "space", "/": "slash", "@": "at", "\\": "backslash", "!": "exclamation_mark"}


class Gate(asyncio.Event):
    """Where a reply stands still until the test lets it go on."""

    is_reached = False

    async def wait(self) -> Literal[True]:
        self.is_reached = True
        return await super().wait()

    @property
    def holds(self) -> bool:
        """Whether a reply stands here."""
        return self.is_reached and not self.is_set()


def held(text: str = "", *calls: ToolCall, **more: object) -> Reply:
    """A reply that stands still after its text, until `Ui.let_go`."""
    return replace(Reply(text=text, tool_calls=calls, gate=Gate()), **more)


async def _at_no_server(_address: str) -> tuple[FoundModel, ...]:
    return ()


async def _signed_in(_account: Account, _show: object) -> None:
    pass


def ways_to_a_model(keys: tuple[KeyChoice, ...] = (), **changes: Any) -> FirstRun:
    """What the chooser offers; nobody keeps a key, no server answers, every sign-in succeeds."""
    ways = FirstRun(keys, lambda _name, _key: None, _at_no_server, (), _signed_in, demo=own_demo())
    return replace(ways, **changes)


def sized(tokens: int) -> Usage:
    """The usage of a request that filled `tokens` of the window."""
    return Usage(input=tokens, total_tokens=tokens)


async def wait_until(
    pilot: Pilot[Any], is_so: Callable[[], object], otherwise: Callable[[], str]
) -> None:
    """Wait for what may need a process, which on a busy machine takes its time."""
    for turn in range(_MOST_TURNS):
        if is_so():
            return
        await pilot.pause(0.01)
        if turn > _QUICK_TURNS:  # other processes need time that does not leap
            await asyncio.to_thread(time.sleep, 0.01)
    raise AssertionError(otherwise())


@dataclass
class Ui:
    """A running app, the conversation behind it, and what the model will answer."""

    app: AgentApp
    runtime: AgentRuntime
    pilot: Pilot[UiOutcome]
    stage: Stage
    replies: Sequence[Reply] = ()

    # What a person does

    async def write(self, text: str) -> None:
        await self.pilot.press(*(NAMES.get(letter, letter) for letter in text))
        await self.pilot.pause()

    async def submit(self, text: str) -> None:
        """Put `text` into the prompt and press Enter."""
        self.app.prompt.area.load_text(text)
        self.app.prompt.area.move_cursor(self.app.prompt.area.document.end)
        await self.pilot.pause()
        self.app.prompt.close_menu()
        await self.pilot.press("enter")

    async def send(self, text: str) -> None:
        """The same, and wait until it is done or something is waited for."""
        await self.submit(text)
        await self.settle()

    # What a test waits for

    async def settle(self) -> None:
        """Until everything is done or waits for the person or for the test, and is drawn."""
        await self.pilot.pause()
        await self.until(lambda: self._is_at_rest, "it does not come to rest")
        await self.drawn()

    async def drawn(self) -> None:
        """Until what was told to the screen stands there."""
        for _ in range(4):
            await self.pilot.pause()

    async def measured(self) -> None:
        """Until the heights of all blocks are known, which the scroll bar shows."""
        before: object = None
        unchanged = 0
        for _ in range(_MOST_TURNS):
            chat = self.chat
            is_measured = all(item.is_measured for item in chat._stack)
            place = (chat.size, chat.virtual_size, chat.scroll_y, chat.max_scroll_y)
            bar = chat.vertical_scrollbar
            shows_it = not chat.show_vertical_scrollbar or bar.position == chat.scroll_y
            is_still = is_measured and shows_it and chat.scroll_y == chat.scroll_target_y
            unchanged = unchanged + 1 if is_still and place == before else 0
            if unchanged == 5:  # a scroll bar that appears changes the width, and all heights
                break
            before = place
            await self.pilot.pause(0.01)
        else:
            raise AssertionError("the heights of the blocks are never known")
        await self.drawn()

    async def until(
        self, is_so: Callable[[], object], otherwise: str = "it did not come to that"
    ) -> None:
        def describe() -> str:
            shown = self.chat.to_text() if self.app.loaded is not None else "not there"
            return f"{otherwise}; the chat is:\n{shown}"

        await wait_until(self.pilot, is_so, describe)

    async def started(self) -> None:
        """Until the conversation is on the screen."""
        await self.until(lambda: self.app.loaded is not None, "it does not start")
        await self.settle()

    @property
    def _is_at_rest(self) -> bool:
        app = self.app
        if app.return_value is not None or len(app.screen_stack) > 1:
            return True
        if any(w.is_running and w.group in ("start", "command") for w in app.workers):
            return False
        return not self.is_running or self._stands or self.approval.display

    @property
    def _stands(self) -> bool:
        return any(isinstance(r.gate, Gate) and r.gate.holds for r in self.replies)

    # What the model does

    def let_go(self) -> None:
        """Let the reply that stands still come to its end."""
        gates = [r.gate for r in self.replies if isinstance(r.gate, Gate) and r.gate.holds]
        assert gates, "no reply stands still"
        for gate in gates:
            gate.set()

    async def finish(self) -> None:
        """The same, and wait for what comes of it."""
        self.let_go()
        await self.settle()

    async def asked(self) -> None:
        """Let it go on until something is to be allowed."""
        self.let_go()
        await self.until(lambda: self.approval.display, "nothing is asked")
        await self.settle()

    # What is there to see

    @property
    def text(self) -> str:
        """What is written in the prompt."""
        return self.app.prompt.area.text

    @property
    def chat(self) -> Transcript:
        return self.app.view.widgets.transcript

    @property
    def drawn_chat(self) -> str:
        """The rows of the chat that are in sight."""
        chat = self.chat
        return "\n".join(chat.render_line(y).text.rstrip() for y in range(chat.size.height))

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(self.chat.blocks)

    @property
    def notices(self) -> list[str]:
        return [block.text for block in self.blocks if isinstance(block, NoticeBlock)]

    @property
    def activity(self) -> ActivityLine:
        return self.app.view.widgets.activity

    @property
    def approval(self) -> ApprovalPanel:
        return self.app.view.widgets.approval

    @property
    def plan(self) -> PlanView:
        return self.app.view.widgets.plan

    @property
    def queue(self) -> QueueView:
        return self.app.view.widgets.queue

    @property
    def status(self) -> StatusFields:
        assert self.app.status.fields is not None
        return self.app.status.fields

    @property
    def toasts(self) -> list[str]:
        return [notification.message for notification in self.app._notifications]

    @property
    def registry(self) -> CommandRegistry:
        """The commands there are."""
        return self.app.controller.registry

    @property
    def clock(self) -> Callable[[], float]:
        return self.app.controller.options.clock

    @property
    def is_running(self) -> bool:
        """Whether a turn, a compaction or a command runs."""
        return self.app.controller.turns.is_running

    def show(self, screen: Screen[Any]) -> None:
        """Lay `screen` over the chat, as commands do."""
        self.app.run_worker(self.app.window.ask(screen))

    def show_events(self, *events: AgentEvent) -> None:
        """Show what no real conversation would tell so badly."""
        self.app.controller.front.show_events(events)

    def redraw(self) -> None:
        """Show the session as it is when it is opened."""
        self.app.view.redraw()
        self.app.view.refresh_status()

    # What became of it

    @property
    def workspace(self) -> Path:
        return self.stage.workspace

    @property
    def model(self) -> ModelRef:
        return self.runtime.conversation.model

    @property
    def thinking(self) -> ThinkingLevel:
        return self.runtime.conversation.thinking

    @property
    def context_files(self) -> tuple[ContextFile, ...]:
        """The AGENTS.md files in force."""
        return self.runtime.conversation.context_files

    @property
    def system_prompt(self) -> str:
        """What the next request tells the model first."""
        return self.runtime.conversation.prompt.system

    @property
    def header(self) -> Header:
        """The first line of the session file."""
        return self.runtime.conversation.log.header

    @property
    def path(self) -> Path:
        """The session file."""
        path = self.runtime.conversation.log.path
        assert path is not None
        return path

    @property
    def usage(self) -> ContextUsage:
        return self.runtime.conversation.usage

    @property
    def messages(self) -> list[Message]:
        """The messages of the session file."""
        path = self.runtime.conversation.log.path_entries()
        return [entry.message for entry in path if isinstance(entry, MessageEntry)]

    @property
    def sent(self) -> list[str]:
        """What the person said, as the session has it."""
        return [message.text for message in self.user_messages]

    @property
    def user_messages(self) -> list[UserMessage]:
        return [m for m in self.messages if isinstance(m, UserMessage)]

    @property
    def queued(self) -> tuple[str, ...]:
        """What waits to be said, as it is shown."""
        return self.runtime.conversation.queue.shown

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What is allowed and denied by rules."""
        return tuple(self.runtime.conversation.permissions.book.rules)

    @property
    def is_closed(self) -> bool:
        """Whether the session takes nothing any more."""
        try:
            self.runtime.sessions.rename("still open")
        except SessionError:
            return True
        return False

    @property
    def answers(self) -> list[str]:
        """The model's replies, as the session has them."""
        return [m.text for m in self.messages if isinstance(m, AssistantMessage)]

    @property
    def results(self) -> list[ToolResultMessage]:
        return [m for m in self.messages if isinstance(m, ToolResultMessage)]

    @property
    def commands(self) -> list[BashExecutionMessage]:
        """What the person ran themselves."""
        return [m for m in self.messages if isinstance(m, BashExecutionMessage)]


def said(runtime: AgentRuntime, *messages: Message) -> AgentRuntime:
    """`runtime` with `messages` in its session, as an earlier run would have left them."""
    log = runtime.conversation.log
    log.append_many([MessageEntry(message=message) for message in messages])
    return runtime


def answer(text: str, usage: Usage | None = None) -> AssistantMessage:
    """A whole reply of the model."""
    return AssistantMessage(content=(TextContent(text=text),), usage=usage or Usage())


@asynccontextmanager
async def running_app(
    root: Path,
    *replies: Reply,
    size: tuple[int, int] = (80, 24),
    stage: Stage | None = None,
    runtime: AgentRuntime | None = None,
    models: ListedModels | None = None,
    burst_s: float = 0.0,
    **changes: Any,
) -> AsyncGenerator[Ui, None]:
    """The app on a terminal of `size` over a model that gives `replies`, one after the other.

    Args:
        root: Where everything is, if there is no `stage`.
        replies: Played to the model's requests; a `runtime` has its own, and these are of them.
        size: Columns and rows.
        stage: Folders and sessions that are there already.
        runtime: A conversation that was begun.
        models: What can be chosen.
        burst_s: Within which time a letter behind an answer makes both of them text.
        changes: Other fields of `UiOptions`, and of its services: `known_models`, `servers`,
            `settings_editor` and `plugins`.
    """
    stage = stage or Stage(root)
    models = models or ListedModels()
    clocks = {name: changes[name] for name in ("clock",) if name in changes}
    runtime = runtime or asking(stage, *replies, models=models, **clocks)
    services = CommandServices(
        models,
        changes.pop("known_models", None) or KnownModels(),
        changes.pop("servers", None) or ToolServers(),
        changes.pop("settings_editor", None),
        changes.pop("plugins", None) or Plugins(),
    )
    options = replace(UiOptions(runtime, services), **changes)
    app = AgentApp(lambda: options)
    app.prompt.area.burst_s = burst_s
    async with app.run_test(size=size) as pilot:
        ui = Ui(app, runtime, pilot, stage, replies)
        await ui.started()
        yield ui


def asking(
    stage: Stage, *replies: Reply, models: ListedModels | None = None, **more: Any
) -> AgentRuntime:
    """A conversation that asks before it changes anything, over a model that gives `replies`."""
    more.setdefault("model", MODEL)
    return stage.runtime(list(replies), mode="ask", models=models or ListedModels(), **more)


def listed(screen: Screen[Any]) -> list[str]:
    """The rows of a picker, each as it is drawn."""
    rows = screen.query_one(RowList)
    return [rows.line(number).plain for number in range(rows.count)]
