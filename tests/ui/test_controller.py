"""The controller over a real conversation; there is no screen."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from agent_tui.commands.core.front import Level
from agent_tui.commands.core.registry import load_commands
from agent_tui.drafts.draft import Draft, join_drafts
from agent_tui.events import AgentEvent, SessionChanged, TurnFinished
from agent_tui.features.print.printer import HeadlessFront
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import JsonObject
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.entries import Header
from agent_tui.sessions.log import SessionLog
from agent_tui.tools.form import CANCELLED, Elicitation
from agent_tui.ui.controller import GO_BACK_WITHIN_S, Controller, ControllerPorts
from agent_tui.ui.options import UiOptions
from agent_tui.ui.turns import TurnRunner
from tests.support.models import ListedModels, listed_services
from tests.support.patience import PATIENCE_S
from tests.support.runtime import Stage, roles
from tests.support.session_values import entry, user


class Seen:
    """A view that only remembers what it was told."""

    is_drafting = False

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []
        self.said: list[str] = []
        self.given_back: list[str] = []
        self.sent: list[str] = []
        self.last_outcome = ""
        self.follows = 0

    def begin(self, label: str) -> None:
        self.last_outcome = ""

    def show(self, event: AgentEvent) -> None:
        self.events.append(event)
        if isinstance(event, SessionChanged):
            self.redraw()
        if isinstance(event, TurnFinished):
            self.last_outcome = event.outcome

    def idle(self) -> None: ...

    def say(self, text: str, level: Level = "info") -> None:
        self.said.append(text)

    def see(self, event: AgentEvent) -> None:
        self.show(event)

    def tell(self, text: str, level: Level) -> None:
        self.say(text, level)

    def redraw(self) -> None:
        self.said.clear()  # as on the screen, which is drawn anew from the session

    def refresh_status(self) -> None: ...

    def follow_end(self) -> None:
        self.follows += 1

    def message_sent(self, draft: Draft) -> None:
        self.sent.append(draft.text)

    def give_back(self, drafts: Sequence[Draft]) -> None:
        self.given_back += [draft.text for draft in drafts]


class Room:
    """A controller and what it acts through."""

    def __init__(self, stage: Stage, *replies: Reply, model: str = "test/model") -> None:
        self.seen, self.now = Seen(), 0.0
        self.runtime = stage.runtime(list(replies), model=ModelRef(model), models=ListedModels())
        self._tasks: set[asyncio.Task[None]] = set()
        registry = load_commands()
        front = HeadlessFront(
            self.runtime,
            listed_services(),
            registry,
            cast(Any, self.seen),
        )
        ports = ControllerPorts(
            fill_form=self._fill_none,
            view=self.seen,
            front=front,
            front_for=lambda _draft: front,
            turns=TurnRunner(self.runtime, self.seen, self._start, self.seen.give_back),
            start_work=self._start,
            read_files=self._nothing,
            refresh_commands=self._no_news,
            set_up_model=self._nothing,
            close=self._nothing,
        )
        options = UiOptions(self.runtime, listed_services(), clock=lambda: self.now)
        self.controller = Controller(options, registry, ports)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _fill_none(self, _form: Elicitation) -> JsonObject:
        return CANCELLED

    async def _nothing(self) -> None: ...

    async def _no_news(self) -> bool:
        return False

    async def done(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks)


@pytest.fixture
def room(tmp_path: Path) -> Callable[..., Room]:
    return lambda *replies, **more: Room(Stage(tmp_path), *replies, **more)


async def test_the_program_ends_although_a_turn_was_cancelled_before_it_began(
    room: Callable[..., Room],
):
    here = room(Reply("Hi."))
    here.controller.submit(Draft("hello"))
    here.cancel()
    await asyncio.wait_for(here.controller.aclose(), PATIENCE_S)
    assert here.controller.turns.waiting == (Draft("hello"),)
    assert roles(here.runtime) == []


async def test_a_message_becomes_a_turn_whose_end_is_shown(room: Callable[..., Room]):
    here = room(Reply("Hi."))
    here.controller.submit(Draft("hello"))
    await here.done()
    assert roles(here.runtime) == ["user", "assistant"]
    assert here.seen.last_outcome == "done"
    assert (here.seen.sent, here.seen.follows) == (["hello"], 1)


async def test_an_unknown_command_comes_back_and_is_no_message(room: Callable[..., Room]):
    here = room(Reply("Hi."))
    here.controller.submit(Draft("/compakt"))
    await here.done()
    assert here.seen.given_back == ["/compakt"]
    assert "Did you mean /compact?" in here.seen.said[0]
    assert roles(here.runtime) == []


async def test_a_command_runs_on_the_front(room: Callable[..., Room]):
    here = room()
    here.controller.dispatch("/permissions plan")
    await here.done()
    assert here.runtime.conversation.permissions.mode == "plan"


def starting(here: Room, **more: str | bool) -> Controller:
    """The controller as it starts where a setting could not be used."""
    options = dataclasses.replace(here.controller.options, notices=("A notice.",), **more)
    here.controller.options = options
    return here.controller


async def test_what_is_wrong_at_the_start_is_told_after_a_session_was_opened(
    tmp_path: Path, room: Callable[..., Room]
):
    with SessionLog.create(tmp_path / "s.jsonl", Header(cwd=str(tmp_path))) as log:
        log.append(entry(user("earlier")))
    here = room()
    await starting(here, resume=str(tmp_path / "s.jsonl")).begin(["A warning."])
    assert roles(here.runtime) == ["user"]
    assert {"A warning.", "A notice."} <= set(here.seen.said)


async def test_a_session_that_cannot_be_opened_at_the_start_is_told_with_what_is_wrong(
    room: Callable[..., Room],
):
    here = room()
    await starting(here, resume="nosuch").begin(["A warning."])
    assert "There is no session" in here.seen.said[0]
    assert {"A warning.", "A notice."} <= set(here.seen.said)


async def test_what_is_wrong_at_the_start_is_told_after_a_session_was_picked(
    room: Callable[..., Room],
):
    here = room()
    await starting(here, opens_picker=True).begin(["A warning."])
    await here.done()
    assert here.seen.said[-2:] == ["A warning.", "A notice."]


async def test_without_a_model_the_message_comes_back(room: Callable[..., Room]):
    here = room(model="")
    here.controller.submit(Draft("hello"))
    await here.done()
    assert here.seen.given_back == ["hello"]
    assert here.seen.said == ["No model is selected. Use /model."]


async def test_what_is_sent_while_a_turn_runs_is_delivered_to_it(room: Callable[..., Room]):
    here = room(Reply("Both."))
    here.controller.submit(Draft("first"))
    here.controller.submit(Draft("second"))
    await here.done()
    assert roles(here.runtime) == ["user", "user", "assistant"]
    assert here.seen.follows == 1  # the reader is not moved by what waits


async def test_esc_stops_the_turn_and_gives_what_waited_back(room: Callable[..., Room]):
    here = room(Reply("One.", gate=asyncio.Event()))
    here.controller.submit(Draft("first"))
    here.controller.submit(Draft("second"))
    here.controller.interrupt()
    await here.done()
    assert here.seen.given_back[-1] == "second"
    assert not here.controller.turns.is_running


async def test_a_command_typed_while_a_turn_runs_waits_for_its_end_in_order(
    room: Callable[..., Room],
):
    here = room(Reply("One."), Reply("Two."))
    for text in ("first", "!echo between", "second"):
        here.controller.submit(Draft(text))
    assert here.runtime.conversation.queue.shown == ("!echo between", "second")
    await here.done()
    assert roles(here.runtime) == ["user", "assistant", "bashExecution", "user", "assistant"]
    assert here.runtime.conversation.queue.shown == ()


async def test_a_command_that_comes_back_does_not_run_the_messages_around_it(
    room: Callable[..., Room],
):
    here = room(Reply("One.", gate=asyncio.Event()))
    for text in ("first", "!echo between", "second"):
        here.controller.submit(Draft(text))
    here.controller.interrupt()
    await here.done()
    assert here.seen.given_back == ["first", "!echo between", "second"]
    assert join_drafts(map(Draft, here.seen.given_back)).text == "first\n\nsecond\n\n!echo between"


async def test_esc_goes_back_only_twice_in_time_and_with_nothing_typed_between(
    room: Callable[..., Room],
):
    here = room(Reply("Hi."))
    here.controller.submit(Draft("hello"))
    await here.done()

    async def escapes(*, wait_s: float = 0.0, typed: bool = False) -> bool:
        here.controller.note_typing()
        here.seen.said.clear()
        here.controller.interrupt()
        if typed:
            here.controller.note_typing()
        here.now += wait_s
        here.controller.interrupt()
        await here.done()
        return bool(here.seen.said)  # /tree says what it can without a screen

    assert not await escapes(wait_s=GO_BACK_WITHIN_S + 0.1)
    assert not await escapes(typed=True)
    assert await escapes(wait_s=GO_BACK_WITHIN_S)


async def test_esc_right_after_one_that_left_a_screen_stops_nothing(room: Callable[..., Room]):
    here = room(Reply("One.", gate=asyncio.Event()))
    here.controller.submit(Draft("first"))
    here.controller.note_screen_left()
    here.now += GO_BACK_WITHIN_S
    here.controller.interrupt()
    assert not here.controller.turns.is_stopping
    here.now += 0.1
    here.controller.interrupt()
    assert here.controller.turns.is_stopping
    await here.done()


async def test_shift_tab_goes_through_the_modes(room: Callable[..., Room]):
    here = room()
    seen = []
    for mode in ("ask", "accept-edits", "full"):
        here.runtime.conversation.permissions.mode = mode
        here.controller.next_permission_mode()
        seen.append(here.runtime.conversation.permissions.mode)
    assert seen == ["accept-edits", "plan", "ask"]
