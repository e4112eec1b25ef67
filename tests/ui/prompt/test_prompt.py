from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Static

from agent_tui.drafts.draft import Draft
from agent_tui.drafts.history import PromptHistory
from tests.support.images import png
from tests.ui.prompt.conftest import PromptApp


async def write(pilot: Pilot[None], text: str) -> None:
    names = {" ": "space", "/": "slash", "@": "at", "\\": "backslash", "!": "exclamation_mark"}
    await pilot.press(*(names.get(letter, letter) for letter in text))
    await pilot.pause()


async def paste(pilot: Pilot[None], text: str) -> None:
    pilot.app.post_message(events.Paste(text))
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def test_enter_sends_and_empties_the_prompt(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "fix it")
    await pilot.press("enter")
    assert app.sent == [Draft("fix it")]
    assert app.text == ""


async def test_enter_on_blanks_sends_nothing(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "  ")
    await pilot.press("enter")
    assert app.sent == []


@pytest.mark.parametrize(
    "key", ["shift+enter", "ctrl+j", "alt+enter", "ctrl+enter", "shift+\r", "ctrl+\r"]
)
async def test_every_new_line_key_makes_a_new_line(pilot: Pilot[None], app: PromptApp, key: str):
    await write(pilot, "a")
    app.prompt.area.post_message(events.Key(key, None))
    await pilot.pause()
    await write(pilot, "b")
    assert app.text == "a\nb"
    assert app.sent == []


async def test_a_trailing_backslash_makes_a_new_line(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "a\\")
    await pilot.press("enter", "b")
    assert app.text == "a\nb"


async def test_the_prompt_grows_to_ten_lines(pilot: Pilot[None], app: PromptApp):
    for _ in range(15):
        await pilot.press("x", "ctrl+j")
    await pilot.pause()
    assert app.prompt.area.size.height == 10


async def test_up_and_down_walk_the_history_and_bring_the_draft_back(
    pilot: Pilot[None], app: PromptApp
):
    for text in ("one", "two"):
        await write(pilot, text)
        await pilot.press("enter")
    await write(pilot, "draft")
    await pilot.press("up")
    assert app.text == "two"
    await pilot.press("up", "up")
    assert app.text == "one"
    await pilot.press("down", "down")
    assert app.text == "draft"
    await pilot.press("down")
    assert app.text == "draft"


async def test_up_in_the_middle_of_a_text_moves_the_cursor(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "one")
    await pilot.press("enter", "a", "ctrl+j", "b", "up")
    assert app.text == "a\nb"
    await pilot.press("up")
    assert app.text == "one"


async def test_a_command_from_the_history_does_not_open_the_menu(
    pilot: Pilot[None], app: PromptApp
):
    app.history.add(Draft("/compact"))
    app.history.add(Draft("later"))
    await pilot.press("up", "up")
    await pilot.pause()
    assert app.text == "/compact"
    assert app.labels == []
    await pilot.press("down")
    assert app.text == "later"


async def test_a_slash_opens_the_menu_and_tab_completes(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "/")
    assert "/compact" in app.labels
    await write(pilot, "com")
    assert app.labels[0] == "/compact"
    await pilot.press("tab")
    assert app.text == "/compact "
    assert app.sent == []


async def test_resources_of_a_server_are_offered_behind_its_name(
    pilot: Pilot[None], app: PromptApp
):
    app.resources = {"docs:memo://a": "The memo", "docs:memo://other": "Another"}
    await write(pilot, "see @do")
    assert app.labels[-1] == "docs:"
    await pilot.press("tab")
    await pilot.pause()
    assert (app.text, app.labels) == ("see @docs:", ["docs:memo://a", "docs:memo://other"])
    await write(pilot, "other")
    await pilot.press("tab")
    assert app.text == "see @docs:memo://other "
    assert app.sent == []


@pytest.mark.parametrize("name", ["docs/", "src/", "a plan/"])
async def test_enter_sends_a_message_that_ends_in_a_folder(
    pilot: Pilot[None], app: PromptApp, name: str
):
    app.file_names = [name, f"{name}deep/", f"{name}guide.md"]
    written = f'see @"{name}' if " " in name else f"see @{name}"
    await write(pilot, written)
    await pilot.pause()
    assert app.labels[0] == name
    await pilot.press("enter")
    await pilot.pause()
    assert app.sent == [Draft(written)]


async def test_no_blank_follows_a_completed_path_in_brackets(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "(@src/ma")
    await pilot.pause()
    await pilot.press("tab")
    await write(pilot, ")")
    assert app.text == "(@src/main.py)"


async def test_enter_runs_the_highlighted_command(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "/con")
    await pilot.press("enter")
    await pilot.pause()
    assert app.sent == [Draft("/context")]


async def test_down_moves_in_the_menu_and_not_in_the_history(pilot: Pilot[None], app: PromptApp):
    app.history.add(Draft("old"))
    await write(pilot, "/")
    second = app.labels[1]
    await pilot.press("down", "enter")
    await pilot.pause()
    assert app.sent == [Draft(second)]


async def test_a_command_that_needs_an_argument_waits_for_it(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "/nam")
    await pilot.press("enter")
    await pilot.pause()
    assert app.text == "/name "
    assert app.sent == []


async def test_escape_closes_the_menu_and_keeps_the_text(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "/co")
    await pilot.press("escape")
    await pilot.pause()
    assert (app.labels, app.text) == ([], "/co")
    await write(pilot, "m")
    assert app.labels == []


async def test_arguments_are_offered_but_what_was_written_counts(
    pilot: Pilot[None], app: PromptApp
):
    await write(pilot, "/thinking o")
    assert app.labels == ["off", "low"]
    await pilot.press("enter")
    assert app.sent == [Draft("/thinking o")]


async def test_an_argument_that_was_moved_to_is_taken(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "/thinking o")
    await pilot.press("down", "enter")
    await pilot.pause()
    assert app.sent == [Draft("/thinking low")]


async def test_an_unknown_command_names_the_nearest_and_keeps_the_text(
    pilot: Pilot[None], app: PromptApp
):
    await write(pilot, "/compcat now")
    await pilot.press("enter")
    assert app.refused == ["Unknown command /compcat. Did you mean /compact?"]
    assert app.text == "/compcat now"
    assert app.sent == []


async def test_enter_does_not_run_a_command_that_was_mistyped(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "/cmpact")
    assert "/compact" in app.labels, "the menu still offers what is like it"
    await pilot.press("enter")
    assert app.refused == ["Unknown command /cmpact. Did you mean /compact?"]
    assert (app.text, app.sent) == ("/cmpact", [])


async def test_what_the_menu_offers_for_a_mistyped_command_can_be_chosen(
    pilot: Pilot[None], app: PromptApp
):
    await write(pilot, "/cmpact")
    await pilot.press("tab")
    assert app.text.strip() == "/compact"


async def test_the_menu_lies_above_the_prompt_and_moves_nothing(pilot: Pilot[None], app: PromptApp):
    before = app.query_one(Static).region
    await write(pilot, "/")
    assert app.query_one(Static).region == before
    assert app.prompt.menu.region.bottom == app.prompt.region.y
    await pilot.press("escape", "ctrl+u")
    for _ in range(3):
        await pilot.press("ctrl+j")
    await write(pilot, "@")
    assert app.prompt.menu.region.bottom == app.prompt.region.y


async def test_an_at_sign_offers_files_and_inserts_the_path(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "see @main")
    await app.workers.wait_for_complete()
    await pilot.pause()
    assert app.labels == ["src/main.py"]
    await pilot.press("enter")
    assert app.text == "see @src/main.py "
    await write(pilot, "and @plan")
    await app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.press("tab")
    assert app.text == 'see @src/main.py and @"notes/a plan.md" '


async def test_a_click_in_the_menu_chooses(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "/com")
    await pilot.click(app.prompt.menu, offset=(4, 1))
    await pilot.pause()
    assert app.text == "/compact "
    assert app.focused is app.prompt.area


async def test_a_large_paste_is_a_mark_and_is_sent_whole(pilot: Pilot[None], app: PromptApp):
    pasted = "\n".join(str(n) for n in range(10_000))
    await paste(pilot, pasted)
    assert app.text == "[paste #1 +9,999 lines]"
    assert app.sent == []
    await pilot.press("enter")
    assert app.sent[0].full_text == pasted


async def test_a_paste_never_sends_itself(pilot: Pilot[None], app: PromptApp):
    await paste(pilot, "rm -rf /\n")
    assert app.text == "rm -rf /\n"
    assert app.sent == []


async def test_backspace_takes_a_mark_as_a_whole(pilot: Pilot[None], app: PromptApp):
    await paste(pilot, "x" * 2_000)
    await pilot.press("backspace")
    assert app.text == ""


async def test_a_paste_is_opened_in_its_place(pilot: Pilot[None], app: PromptApp):
    pasted = "\n".join(str(n) for n in range(20))
    await write(pilot, "see ")
    await paste(pilot, pasted)
    frame = app.prompt.query_one("#prompt-frame")
    assert frame.border_subtitle == "ctrl+o opens the paste"
    await write(pilot, " end")
    assert frame.border_subtitle is None
    await pilot.press("home", *["right"] * 6, "ctrl+o")
    await pilot.pause()
    assert app.text == f"see {pasted} end"
    await pilot.press("enter")
    assert [draft.full_text for draft in app.sent] == [f"see {pasted} end"]


async def test_a_paste_too_long_for_the_screen_says_what_opens_it(
    pilot: Pilot[None], app: PromptApp
):
    await paste(pilot, "wide 宽\t\r\n\x1b[31mred\x00\x9b" * 25_000)
    assert app.text == "[paste #1 +25,000 lines]"
    await pilot.press("ctrl+o")
    await pilot.pause()
    assert app.refused == ["This paste is too long to show here; ctrl+g opens it in your editor."]
    await pilot.press("enter")
    assert app.sent[0].full_text == ("wide 宽\t\nred" * 25_000)


async def test_delete_and_ctrl_w_take_a_mark_as_a_whole(pilot: Pilot[None], app: PromptApp):
    await paste(pilot, "x" * 2_000)
    await pilot.press("home", "delete")
    assert app.text == ""
    await paste(pilot, "x" * 2_000)
    await pilot.press("ctrl+w")
    assert app.text == ""


async def test_images_that_are_dropped_or_mentioned_are_marks(
    pilot: Pilot[None], app: PromptApp, tmp_path: Path
):
    app.folder = tmp_path
    (tmp_path / "my shot.png").write_bytes(png(800, 600))
    await paste(pilot, f"'{tmp_path}/my shot.png'")
    app.file_names = ["my shot.png"]
    await write(pilot, "@shot")
    await app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.press("tab")
    await app.workers.wait_for_complete()
    await pilot.pause()
    assert app.text == "[image #1 my shot.png 800x600] [image #2 my shot.png 800x600] "
    await pilot.press("enter")
    assert [image.mime_type for image in app.sent[0].sent_images] == ["image/png"] * 2
    app.image_refusal = "It sees no images."
    await paste(pilot, f"'{tmp_path}/my shot.png'")
    assert (app.text, app.refused) == (f"'{tmp_path}/my shot.png'", ["It sees no images."])


async def test_a_split_mouse_report_leaves_no_trace(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "hi")
    for letter in "[<35;67;12M":
        app.prompt.area.post_message(events.Key(letter, letter))
    await pilot.pause()
    await pilot.pause()
    assert app.text == "hi"


async def test_queued_messages_come_back_above_the_draft(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "draft")
    app.prompt.put_before((Draft("first"), Draft("second")))
    await pilot.pause()
    assert app.text == "first\n\nsecond\n\ndraft"


async def test_a_shell_command_is_marked(pilot: Pilot[None], app: PromptApp):
    await write(pilot, "!ls")
    assert app.prompt.has_class("-shell")
    assert str(app.prompt.query_one("#prompt-sign", Static).render()) == "$"
    await pilot.press("ctrl+u")
    await pilot.pause()
    assert not app.prompt.has_class("-shell")


async def test_a_line_feed_before_the_program_is_ready_is_an_enter():
    app = PromptApp(PromptHistory(None), is_ready=False)
    async with app.run_test() as pilot:
        await write(pilot, "hi")
        await pilot.press("ctrl+j")
        assert app.sent == [Draft("hi")]


async def test_an_earlier_draft_is_written_on_and_down_brings_back_the_present_one(
    pilot: Pilot[None], app: PromptApp
):
    await write(pilot, "half a thought")
    app.prompt.go_back_to(Draft("make the tests pass"))
    await pilot.pause()
    assert app.text == "make the tests pass"
    await pilot.press("down")
    assert app.text == "half a thought"


async def test_a_menu_that_lags_behind_fast_typing_chooses_nothing_else(
    pilot: Pilot[None], app: PromptApp
):
    await write(pilot, "/co")
    assert app.labels[0] == "/compact"
    for key in (*"ntext", "enter"):
        app.prompt.area.post_message(events.Key(key, key if len(key) == 1 else None))
    await pilot.pause()
    assert app.sent == [Draft("/context")]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (("ctrl+u", *"xyz"), "xyz"),
        (("ctrl+a", *"xyz"), "xyzabc"),
        (("left", "x", "end", "y"), "abxcy"),
        (("backspace", "x", "backspace", "y"), "aby"),
    ],
)
async def test_what_is_typed_at_once_is_done_in_its_order(
    pilot: Pilot[None], app: PromptApp, keys: tuple[str, ...], text: str
):
    await write(pilot, "abc")
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))
    await pilot.pause()
    await pilot.pause()
    assert app.text == text
