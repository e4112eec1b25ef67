"""What programs record when their user refuses a call, and what the user said."""

import pytest

from agent_tui.messages import ToolDetails
from agent_tui.sessions.importers.refusals import note_refusal
from tests.support.rows import each_row


@each_row(
    ("text", "words"),
    [
        (
            "The user doesn't want to take this action right now. STOP what you are doing and "
            "wait for the user to tell you how to proceed.",
            "",
        ),
        ("The user rejected permission to use this specific tool call.", ""),
        (
            "The user rejected permission to use this specific tool call with the following "
            "feedback: never touch a.py",
            "never touch a.py",
        ),
        ("The tool call is rejected by the user. User feedback: use rg", "use rg"),
        ("patch rejected by user", ""),
        ("[Operation Cancelled] Reason: User denied execution.", ""),
    ],
)
def test_a_refusal_is_recognized_with_its_reason(text: str, words: str) -> None:
    noted = note_refusal(ToolDetails(exit_code=1), text)
    assert noted == ToolDetails(exit_code=1, ending="declined", user_words=words)


@pytest.mark.parametrize(
    "text", ["No such file.", "Found: The user rejected permission to use this specific tool call."]
)
def test_anything_else_is_an_ordinary_failure(text: str) -> None:
    assert note_refusal(ToolDetails(), text) == ToolDetails()
