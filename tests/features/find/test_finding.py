from functools import partial

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input

from agent_tui.features.find.bar import FindBar
from agent_tui.ui.chat.bar import BarDesk
from agent_tui.ui.transcript.blocks import AssistantBlock, Block, NoticeBlock, ToolBlock, UserBlock
from agent_tui.ui.transcript.view import Transcript
from tests.ui.app_support import wait_until


class FindApp(App[None]):
    CSS = "Screen { layout: vertical; } Transcript { height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self.events: list[str] = []

    def compose(self) -> ComposeResult:
        yield Transcript()

    @property
    def chat(self) -> Transcript:
        return self.query_one(Transcript)

    @property
    def rows(self) -> list[str]:
        return [self.chat.render_line(y).text.rstrip() for y in range(self.chat.size.height)]

    @property
    def state(self) -> str:
        return str(self.query_one("#find-state").render())

    @property
    def current(self) -> list[str]:
        """The words in the style of the current match."""
        style = self.chat.palette.found_current
        return [
            segment.text
            for y in range(self.chat.size.height)
            for segment in self.chat.render_line(y)
            if segment.style and segment.style.bgcolor == style.bgcolor and segment.style.bold
        ]


def conversation(turns: int) -> list[Block]:
    output = "\n".join(f"line {line}" for line in range(40))
    blocks: list[Block] = []
    for number in range(turns):
        blocks += [
            UserBlock(f"question {number}"),
            AssistantBlock(f"Answer **number** {number}\n\n" + "many words to wrap " * 9),
            ToolBlock(f"c{number}", "bash", f"bash run {number}", "ok", f"{output} of {number}"),
        ]
    return blocks


async def settle(pilot: Pilot[None]) -> None:
    def is_counted() -> bool:
        bars = pilot.app.query(FindBar)
        return all(bar._counting is None and not bar._finder.is_stale for bar in bars)

    await pilot.pause(0.01)
    await wait_until(pilot, is_counted, lambda: "counting never ended")


async def search(pilot: Pilot[None], text: str) -> FindApp:
    app = app_of(pilot)
    typed, closed = (partial(app.events.append, event) for event in ("typed", "closed"))
    bar = FindBar(BarDesk(app.chat, typed, closed))
    await app.mount(bar)
    bar.open(text)
    await pilot.pause()
    await settle(pilot)
    return app


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await settle(pilot)


def app_of(pilot: Pilot[None]) -> FindApp:
    assert isinstance(pilot.app, FindApp)
    return pilot.app


@pytest.fixture
async def pilot():
    async with FindApp().run_test(size=(78, 16)) as pilot:
        app_of(pilot).chat.load(conversation(30))
        await pilot.pause()
        yield pilot


async def test_matches_are_counted_marked_and_gone_through(pilot: Pilot[None]):
    app = await search(pilot, "question 1")
    assert "11 of 11 in your message" in app.state
    assert app.current == ["question 1"]
    await press(pilot, "down")
    assert "1 of 11" in app.state
    await press(pilot, "enter")
    assert "2 of 11" in app.state
    await press(pilot, "up", "up", "shift+enter")
    assert "10 of 11" in app.state
    assert any("question 18" in row for row in app.rows)
    await press(pilot, "x")
    assert "no match" in app.state


async def test_escape_goes_back_and_after_enter_it_stays(pilot: Pilot[None]):
    app = await search(pilot, "number 2")
    before = app.rows
    assert app.chat.is_following is False
    await press(pilot, "down", "down")
    assert app.rows != before
    await pilot.press("escape")
    await pilot.pause()
    assert app.rows[-2].startswith(" ● bash run 29")
    assert app.chat.is_following
    assert app.events[-1] == "closed"
    app = await search(pilot, "number 2")
    await press(pilot, "down", "enter")
    there = app.rows[:-1]
    await pilot.press("escape")
    await pilot.pause()
    assert app.rows[: len(there)] == there
    assert not app.chat.is_following
    assert app.current == []


async def test_what_is_folded_is_found_and_unfolded_while_it_is_current(pilot: Pilot[None]):
    app = await search(pilot, "line 39 of 7")
    assert "1 of 1 in the bash call" in app.state
    assert "   │ line 39 of 7" in app.rows
    await press(pilot, "ctrl+u")
    for letter in "question 7":
        await pilot.press("space" if letter == " " else letter)
    await settle(pilot)
    assert app.chat._stack[7 * 3 + 2].is_expanded is False
    app.query_one(Input).value = "line 39 of 7"
    await pilot.pause()
    await press(pilot, "enter")
    await pilot.press("escape")
    await pilot.pause()
    assert app.chat._stack[7 * 3 + 2].is_expanded


async def test_the_chat_stays_still_while_it_is_searched(pilot: Pilot[None]):
    app = await search(pilot, "question 29")
    before = app.rows
    app.chat.start_reply()
    app.chat.stream_text("a new answer to question 29\n" * 40)
    app.chat.append(NoticeBlock("info", "news"))
    app.chat.finish_reply()
    await settle(pilot)
    assert app.rows == before
    assert "1 of 41" in app.state
    await pilot.press("escape")
    await pilot.pause()
    assert app.rows[-2] == " • news"
