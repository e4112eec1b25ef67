"""Plan mode's tool: which tools it comes with, and what of a plan becomes the to-do list."""

from agent_tui.tools.base import ToolContext
from agent_tui.tools.plan import plan_steps, plan_title
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.selection import select_tools
from tests.support.tool_calls import call_tool

PLAN = """\
# Make it shout

Two things matter:
- no new dependency
- the old flag stays

## Steps
1. Read `greet.py`
   - look at the callers
2) [ ] Change **greet**
```
1. not a step
```
3. Run the tests
"""


def names(*, is_planning: bool) -> set[str]:
    specs = select_tools(default_toolbox().specs, "any", is_planning=is_planning)
    return {spec.name for spec in specs}


def test_in_plan_mode_a_plan_can_be_handed_over_and_nothing_is_written():
    planning, working = names(is_planning=True), names(is_planning=False)
    assert planning - working == {"plan"}
    assert working - planning == {"edit", "write"}


def test_the_numbered_items_are_the_steps():
    steps = plan_steps(PLAN)
    assert [step.text for step in steps] == ["Read greet.py", "Change greet", "Run the tests"]
    assert {step.status for step in steps} == {"pending"}


def test_without_numbers_the_outermost_items_are_the_steps():
    assert [step.text for step in plan_steps("- one\n  - within\n* two")] == ["one", "two"]
    assert plan_steps("Just do it.") == ()


def test_a_plan_is_called_by_its_first_line():
    assert plan_title(PLAN) == "Make it shout"
    assert plan_title("\n\n") == "plan"
    assert plan_title("**Goal:** `HexParamType` reads\nhex") == "Goal: HexParamType reads hex"


async def test_without_a_conversation_nobody_decides(context: ToolContext):
    assert (await call_tool(context, "plan", {"plan": "x"})).is_error
