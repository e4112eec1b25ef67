"""Reading the chat in the whole app: finding text, and what came while one reads above."""

from pathlib import Path

from agent_tui.features.tour.scripted import call
from agent_tui.ui.transcript.blocks import AssistantBlock, NoticeBlock, ToolBlock, UserBlock
from tests.ui.app_support import Ui, held, running_app


def fill(ui: Ui) -> None:
    ui.chat.load(
        [
            block
            for number in range(40)
            for block in (
                UserBlock(f"Question {number}"),
                AssistantBlock(f"An answer about topic {number}.\n\nWith two paragraphs."),
                ToolBlock(f"c{number}", "read", f"read f{number}.py", "ok", f"secret {number}"),
            )
        ]
    )


def find_state(ui: Ui) -> str:
    return str(ui.app.query_one("#find-state").render())


async def test_ctrl_f_searches_the_chat_and_esc_leaves_everything_as_it_was(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        fill(ui)
        await ui.write("a draft")
        chat = ui.chat
        await ui.pilot.press("ctrl+f")
        await ui.write("secret 7")
        await ui.until(lambda: "1 of 1 in the read call" in find_state(ui))
        await ui.pilot.press("down", "up", "ctrl+f", "escape")
        await ui.settle()
        assert not ui.app.query("#find")
        assert chat.is_following
        assert chat.render_line(chat.size.height - 2).text.startswith(" ● read f39.py")
        await ui.write("!")
        assert ui.text == "a draft!"


async def test_the_find_command_takes_the_text_and_capitals_count(tmp_path: Path):
    async with running_app(tmp_path, size=(120, 40)) as ui:
        fill(ui)
        await ui.send("/find Question 3")
        await ui.until(lambda: "of 11 in your message" in find_state(ui))
        await ui.pilot.press("escape")
        await ui.send("/find QUESTION")
        await ui.until(lambda: "no match" in find_state(ui))


async def test_keys_typed_into_the_search_answer_no_question(tmp_path: Path):
    touch = call("c1", "bash", command="touch made.txt")
    async with running_app(tmp_path, held("", touch), approval_quiet_s=3_600.0) as ui:
        await ui.send("hello")
        await ui.pilot.press("ctrl+f")
        await ui.asked()
        timer = ui.approval._timer
        await ui.write("y")
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.approval._timer is not timer
        assert ui.approval.display
        assert not (ui.workspace / "made.txt").exists()


async def test_what_comes_while_one_reads_above_is_counted_and_a_click_goes_there(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        fill(ui)
        await ui.settle()
        await ui.pilot.press("pageup")
        chat = ui.chat
        line = ui.activity
        await ui.until(lambda: "↓ more" in str(line.render()))
        chat.append(NoticeBlock("info", "one"))
        chat.append(NoticeBlock("info", "two"))
        await ui.until(lambda: "↓ 2 new" in str(line.render()))
        await ui.pilot.click(line, offset=(line.size.width - 4, 0))
        await ui.settle()
        assert chat.is_following
        assert "new" not in str(line.render())
        await ui.pilot.press("pageup")
        await ui.until(lambda: "↓ more" in str(line.render()))
        await ui.pilot.press("ctrl+end")
        assert chat.is_following
