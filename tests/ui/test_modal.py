"""What holds for every screen above the chat."""

from pathlib import Path

from textual.events import Key

from agent_tui.commands.core.questions import Choice, Question
from agent_tui.ui.screens.choice import ChoiceScreen
from tests.ui.app_support import running_app


async def test_keys_typed_on_after_an_answer_close_nothing_else(tmp_path: Path):
    question = Question("Which?", (), (Choice(1, "read", "r"), Choice(2, "fork", "f")))
    async with running_app(tmp_path) as ui:
        answers: list[int | None] = []
        ui.app.push_screen(ChoiceScreen(question), answers.append)
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        screen = ui.app.screen
        for key in "rff":
            screen.post_message(Key(key, key))
        await ui.until(lambda: answers)
        await ui.settle()
        assert answers == [1]
        assert len(ui.app.screen_stack) == 1
        assert ui.app.return_value is None
