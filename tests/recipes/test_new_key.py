"""New key: its name in the settings, a binding, its action, and a row in what ``/keys`` shows."""

import pytest

from tests.recipes.program_copy import ProgramCopy

NAME = '    KeyAction("list_tools", ("f9",), "See what the model can do"),\n'
BINDING = '    _binding("list_tools", "list_tools"),\n'
ACTION = '''\
    def action_list_tools(self) -> None:
        """F9: the tools the model has."""
        self.controller.dispatch("/tools")

'''
ROW = '            ("{list_tools}", "see what the model can do"),\n'


@pytest.fixture
def copy(tmp_path) -> ProgramCopy:
    made = ProgramCopy(tmp_path, "New key")
    made.insert_before("agent_tui/key_actions.py", '    KeyAction("find"', NAME)
    made.insert_before("agent_tui/ui/keys.py", '    _binding("find"', BINDING)
    made.insert_before("agent_tui/ui/app.py", "    async def action_find(self)", ACTION)
    made.insert_before("agent_tui/ui/keys.py", '            ("{find}", "search', ROW)
    return made


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("keys", "shown"),
    [("\x1b[20~", "The model's tools"), ("/keys\r", "see what the model can do")],
)
def test_it_does_what_the_page_of_keys_says(copy, keys, shown):
    with copy.typing("--demo", rows=90) as screen:
        screen.wait_for("scripted tour")
        screen.wait_for("ctx:")
        screen.send(keys)
        screen.wait_for(shown)


@pytest.mark.thorough
def test_the_palette_offers_what_it_does(copy):
    with copy.typing("--demo") as screen:
        screen.wait_for("scripted tour")
        screen.wait_for("ctx:")
        screen.send("\x10")
        screen.wait_for("Type to search")
        screen.send("what the model can")
        screen.wait_for("See what the model can do")
