"""The keys of the app that no other test presses, from the prompt, as a person would."""

from pathlib import Path

import pytest
from textual import events
from textual.screen import ModalScreen

from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import UserMessage
from tests.ui.app_support import Ui, answer, held, running_app, said


async def test_ctrl_q_leaves(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.pilot.press("ctrl+q")
        await ui.settle()
        assert ui.app._exit
    assert ui.is_closed


@pytest.mark.parametrize("key", ["ctrl+c", "escape"])
@pytest.mark.parametrize("typed", ["", "o"])
async def test_a_message_that_is_sent_and_stopped_at_once_is_not_lost(
    tmp_path: Path, key: str, typed: str
):
    async with running_app(tmp_path, Reply(text="Done."), Reply(text="Well.")) as ui:
        await ui.write("go")
        for letter in typed:
            ui.app.post_message(events.Key(letter, letter))
        ui.app.post_message(events.Key("enter", "\r"))
        ui.app.post_message(events.Key(key, None))
        await ui.settle()
        message = f"go{typed}"
        assert message in (ui.text, *ui.sent)
        assert not ui.answers or ui.answers != ["Done."]
        assert ui.app.return_value is None


async def test_ctrl_z_hands_the_terminal_to_the_shell_and_draws_again_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with running_app(tmp_path) as ui:
        done: list[str] = []
        monkeypatch.setattr(
            "textual.app.App.action_suspend_process", lambda _app: done.append("suspended")
        )
        monkeypatch.setattr(ui.app.screen, "refresh", lambda **_: done.append("drawn"))
        await ui.write("draft")
        await ui.pilot.press("ctrl+z")
        assert done[:2] == ["suspended", "drawn"]
        assert ui.text == "draft"


@pytest.mark.thorough
async def test_ctrl_t_shows_and_hides_thinking(tmp_path: Path):
    reply = held(thinking="A secret thought.\nAnd another.")
    async with running_app(tmp_path, reply) as ui:
        await ui.send("go")

        def shown() -> str:
            chat = ui.chat
            return "\n".join(chat.render_line(y).text for y in range(chat.size.height))

        assert "And another." not in shown()
        await ui.pilot.press("ctrl+t")
        await ui.settle()
        assert "And another." in shown()
        await ui.pilot.press("ctrl+t")
        await ui.settle()
        assert "And another." not in shown()


def talk_at_length(ui: Ui) -> None:
    for number in range(40):
        said(ui.runtime, UserMessage(content=f"question {number}"), answer(f"answer {number}"))
    ui.redraw()


@pytest.mark.thorough
async def test_the_chat_is_read_from_the_prompt(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        chat = ui.chat
        talk_at_length(ui)
        await ui.settle()
        await ui.write("draft")
        places = [chat.scroll_offset.y]
        for key in ("pageup", "pageup", "pagedown", "ctrl+home", "ctrl+end", "ctrl+home", "ctrl+l"):
            await ui.pilot.press(key)
            await ui.settle()
            places.append(chat.scroll_offset.y)
        end, one_up, two_up, down, *jumps = places
        assert two_up < one_up == down < end
        assert jumps == [0, end, 0, end]
        assert chat.is_following
        assert ui.text == "draft"
        assert ui.app.focused is ui.app.prompt.area


async def test_a_long_question_is_scrolled_by_letters(tmp_path: Path):
    long = call("c1", "bash", command="\n".join(f"touch line{n}" for n in range(200)))
    async with running_app(tmp_path, held("", long), approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        await ui.asked()
        panel = ui.approval
        panel.arm()
        await ui.settle()
        text = panel.query_one("#approval-text")
        scrolled = text if text.max_scroll_y else panel.query_one("#approval-scroll")
        places: list[int] = []
        for key in ("j", "j", "k", "k"):
            await ui.pilot.press(key)
            await ui.settle()
            places.append(int(scrolled.scroll_offset.y))
        assert places == [1, 2, 1, 0]
        assert ui.approval.display


async def test_after_a_click_in_the_chat_typing_still_goes_into_the_prompt(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.pilot.click("Transcript", offset=(5, 3))
        await ui.settle()
        await ui.write("hey")
        assert ui.text == "hey"


async def test_a_terminal_that_had_no_room_for_the_prompt_leaves_it_as_it_was(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.write("he")
        for height in (2, 1, 3):
            await ui.pilot.resize_terminal(80, height)
            await ui.settle()
        await ui.pilot.resize_terminal(80, 24)
        await ui.settle()
        await ui.write("y")
        assert ui.text == "hey"
        assert ui.app.prompt.area.size.height == 1


async def test_ctrl_underscore_takes_back_and_alt_moves_by_words(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.write("one two")
        await ui.pilot.press("alt+b", "x")
        assert ui.text == "one xtwo"
        await ui.pilot.press("ctrl+underscore")
        assert ui.text == "one two"
        await ui.pilot.press("home", "alt+f", "y")
        assert ui.text == "oney two"


async def test_a_question_leaves_the_keys_to_a_search_that_is_open(tmp_path: Path):
    touch = call("c1", "bash", command="touch made.txt")
    script = (held("", touch), Reply(text="Done."))
    async with running_app(tmp_path, *script, approval_quiet_s=3_600.0) as ui:
        await ui.send("go")
        await ui.pilot.press("ctrl+f")
        await ui.asked()
        ui.approval.arm()
        await ui.pilot.press("y", "escape")
        await ui.settle()
        assert ui.approval.display
        assert not (ui.workspace / "made.txt").exists()
        assert ui.is_running
        ui.approval.arm()
        await ui.pilot.press("y")
        await ui.settle()
        assert (ui.workspace / "made.txt").exists()


async def test_escape_in_the_prompt_closes_a_search_before_it_stops_anything(tmp_path: Path):
    async with running_app(tmp_path, held()) as ui:
        await ui.send("go")
        await ui.pilot.press("ctrl+f")
        await ui.settle()
        await ui.pilot.click("PromptArea")
        await ui.pilot.press("escape")
        await ui.settle()
        assert not ui.app.query("#find")
        assert ui.is_running
        await ui.pilot.press("escape")
        await ui.settle()
        assert not ui.is_running


async def test_what_one_sends_is_in_sight_wherever_one_was_reading(tmp_path: Path):
    async with running_app(tmp_path, Reply(text="Hi.")) as ui:
        talk_at_length(ui)
        await ui.settle()
        await ui.pilot.press("ctrl+home")
        await ui.settle()
        assert not ui.chat.is_following
        await ui.send("hello")
        assert ui.chat.is_following


async def test_keys_that_nothing_has_belong_to_the_prompt(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        ui.app.screen.set_focus(None)
        await ui.write("hey")
        assert ui.text == "hey"


async def test_a_screen_is_never_drawn_in_the_looks_of_another_size(tmp_path: Path):
    drawn: list[set[str]] = []

    class Watched(ModalScreen[None]):
        def on_mount(self) -> None:
            drawn.append({name for name in self.classes if name.startswith("-")})

    async with running_app(tmp_path, size=(80, 24)) as ui:
        for size in ((80, 24), (89, 30), (90, 29)):
            await ui.pilot.resize_terminal(*size)
            await ui.settle()
            ui.show(Watched())
            await ui.settle()
            wide, tall = size[0] >= 90, size[1] >= 30
            assert drawn.pop() == {"-wide" if wide else "-narrow", "-tall" if tall else "-short"}
            await ui.app.pop_screen()
