"""New event: a dataclass in ``events.py`` and a case in the screen and in the lines."""

import json

import pytest

from tests.recipes.program_copy import ProgramCopy

EVENTS = "agent_tui/events.py"
LINES, SCREEN = "agent_tui/commands/event_lines.py", "agent_tui/ui/event_view.py"
EVENT = '''\
@dataclass(frozen=True, slots=True)
class Sighted:
    """Something came into view."""

    what: str


'''
SENDER = '''\
"""A command that has something come into view."""

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front
from agent_tui.events import Sighted


@command("<what>")
async def sight(front: Front, argument: str) -> None:
    """Have something come into view."""
    front.show_events((Sighted(argument),))
'''
SHOWN = 'chat.append(NoticeBlock("info", f"{event.what} ahoy!"))'
SAID = 'return f"{event.what} ahoy!"'


@pytest.fixture
def unread(tmp_path) -> ProgramCopy:
    """The event is there, and nobody reads it yet."""
    made = ProgramCopy(tmp_path, "New event")
    made.insert_before(EVENTS, "AgentEvent: TypeAlias", EVENT)
    made.insert_before(EVENTS, "    | TurnFinished\n)", "    | Sighted\n")
    return made


@pytest.fixture
def copy(unread) -> ProgramCopy:
    for reader, line, next_case in (
        (LINES, SAID, "        case events.WentBack(text=text):\n"),
        (SCREEN, SHOWN, "            case events.TurnFinished():\n"),
    ):
        indent = next_case.partition("case")[0]
        case = f"{indent}case events.Sighted():\n{indent}    {line}\n"
        unread.insert_before(reader, next_case, case)
    unread.add_file("agent_tui/commands/sight.py", SENDER)
    return unread


@pytest.mark.thorough
def test_the_type_checker_names_the_places_that_miss_it_and_no_others(unread):
    assert unread.type_errors("agent_tui.events") == {LINES, SCREEN}


@pytest.mark.thorough
def test_with_its_cases_the_types_are_right(copy):
    assert copy.type_errors("agent_tui.events") == set()


@pytest.mark.thorough
@pytest.mark.parametrize("front", [(), ("--plain",)], ids=["screen", "plain"])
def test_it_is_shown_in_a_conversation(copy, front):
    with copy.typing("--demo", *front) as person:
        person.wait_for("scripted tour")
        person.wait_for("ctx:")
        person.send("/sight Land\r")
        person.wait_for("Land ahoy!")


@pytest.mark.thorough
def test_a_script_reads_it_as_json(copy):
    argv = ("-m", "scripted/tour", "--output-format", "stream-json", "-p", "/sight Land")
    done = copy.run(*argv)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"type": "Sighted", "what": "Land"} in events, done.stderr
