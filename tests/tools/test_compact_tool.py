"""The model asking for a compaction."""

from agent_tui.messages import ToolDetails
from agent_tui.tools.base import ToolContext, ToolOutput
from tests.support.tool_calls import call_tool, intent_of


async def test_the_focus_goes_to_the_conversation_and_its_answer_to_the_model(
    context: ToolContext,
) -> None:
    asked: list[str] = []

    async def compact(focus: str) -> ToolOutput:
        asked.append(focus)
        return ToolOutput("Kept 3 files.", ToolDetails(summary="150k -> 62k tokens"))

    context.compact = compact
    output = await call_tool(context, "compact", {"focus": " the parser \n"})
    assert output == ToolOutput("Kept 3 files.", ToolDetails(summary="150k -> 62k tokens"))
    await call_tool(context, "compact", {})
    assert asked == ["the parser", ""]


async def test_a_refusal_is_given_as_it_is(context: ToolContext) -> None:
    output = await call_tool(context, "compact", {})
    assert output.is_error
    assert output.for_model == "Compaction is not available here."


def test_a_call_is_shown_with_its_focus_and_needs_no_approval(context: ToolContext) -> None:
    plain = intent_of(context, "compact", {})
    focused = intent_of(context, "compact", {"focus": "the\nparser"})
    assert (plain.title, plain.access) == ("compact", "none")
    assert (focused.title, focused.access) == ("compact: the parser", "none")
