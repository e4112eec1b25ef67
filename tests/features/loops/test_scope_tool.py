"""The model marking stretches of its work."""

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.loops.tool import ScopeAction, Scopes
from agent_tui.messages import JsonObject
from agent_tui.tools.base import ToolContext, ToolOutput
from tests.support.tool_calls import call_tool, intent_of


async def test_what_was_asked_goes_to_the_conversation_on_one_line(context: ToolContext) -> None:
    asked: list[tuple[ScopeAction, str, str]] = []

    class Conversation(Scopes):
        async def answer_call(self, action: ScopeAction, label: str, focus: str) -> ToolOutput:
            asked.append((action, label, focus))
            return ToolOutput("Done.")

    context.abilities = (Conversation(),)
    wordy: JsonObject = {
        "action": "enter",
        "label": " find\nthe parser " + "x" * 90,
        "focus": " which file\n",
    }
    assert await call_tool(context, "scope", wordy) == ToolOutput("Done.")
    await call_tool(context, "scope", {"action": "exit"})
    assert asked == [("enter", f"find the parser {'x' * 44}", "which file"), ("exit", "", "")]


async def test_without_a_conversation_it_is_refused(context: ToolContext) -> None:
    with pytest.raises(ToolError, match="Scopes are not available here"):
        await call_tool(context, "scope", {"action": "exit"})


def test_a_call_is_shown_with_its_label_and_needs_no_approval(context: ToolContext) -> None:
    entered = intent_of(context, "scope", {"action": "enter", "label": "find\nthe parser"})
    assert (entered.title, entered.access) == ("enter find the parser", "none")
    assert intent_of(context, "scope", {"action": "break"}).title == "break"
    with pytest.raises(ToolError, match="needs a label"):
        intent_of(context, "scope", {"action": "enter", "label": " "})
