from agent_tui.attachments import approving_message
from agent_tui.ui.terminal.scrollback import last_screens
from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    NoticeBlock,
    SummaryBlock,
    ToolBlock,
    UserBlock,
    WelcomeBlock,
)
from tests.support.terminal_attacks import ATTACKS, what_is_left


def test_a_short_conversation_is_left_whole_and_in_order():
    blocks = [
        WelcomeBlock("agent-tui"),
        UserBlock("hi"),
        ToolBlock("c", "read", "read a.py", "ok", summary="3 lines"),
        AssistantBlock("# Done\n\nall of it"),
    ]
    said = "> hi\n\n* read a.py  3 lines\n\nDone\n\nall of it"
    assert last_screens(blocks, 80, 24) == said


def test_markdown_is_written_as_it_is_read_on_the_screen():
    reply = """## Done

**Both** tests of `a.py` pass, and this sentence is longer than a row of a narrow terminal.

1. one
   - [x] two

```python
if True:
    pass
```
"""
    assert last_screens([AssistantBlock(reply)], 60, 24).split("\n") == [
        "Done",
        "",
        "Both tests of a.py pass, and this sentence is longer than a row of a narrow terminal.",
        "",
        "1. one",
        "   ☑ two",
        "",
        "  if True:",
        "      pass",
    ]


def test_a_plan_that_the_model_wrote_out_is_left_once():
    plan = "1. **Read** it\n2. Fix it"
    approval = UserBlock(approving_message(plan))
    assert last_screens([AssistantBlock(f"Here it is:\n\n{plan}"), approval], 80, 24) == (
        "Here it is:\n\n1. Read it\n2. Fix it\n\n> I approve this plan."
    )
    assert last_screens([approval], 80, 24) == (
        "> I approve this plan.\n> \n> 1. Read it\n> 2. Fix it"
    )


def test_what_the_title_of_a_call_says_is_not_said_again():
    blocks = [
        ToolBlock("c", "todo", "plan: 4 of 4 done", "ok", summary="4 of 4 done"),
        ToolBlock("d", "edit", "edit a.py (+1 -1)", "ok", summary="+1 -1"),
    ]
    assert last_screens(blocks, 80, 24) == "* plan: 4 of 4 done\n\n* edit a.py (+1 -1)"


def test_a_summary_stays_folded():
    blocks = [SummaryBlock("## Goal\n\nship it", 9_000, 2_000), UserBlock("go on")]
    assert last_screens(blocks, 80, 24) == "--- context compacted ---\n\n> go on"


def test_of_a_long_one_two_screens_are_left():
    blocks = [NoticeBlock("info", f"line {number}") for number in range(1_000)]
    lines = last_screens(blocks, 80, 10).split("\n")
    assert lines[-1] == "line 999"
    assert lines[0] == "[…]"
    assert len(lines) == 21


def test_wrapped_and_wide_lines_count_as_the_rows_they_take():
    blocks = [AssistantBlock("x" * 400), AssistantBlock("工" * 100)]
    assert last_screens(blocks, 20, 5) == f"[…]\n{'工' * 100}"  # 10 rows; nothing else fits
    assert last_screens([AssistantBlock("a" * 1_000)], 20, 5) == "[…]"


def test_an_empty_conversation_leaves_nothing():
    assert last_screens([WelcomeBlock("agent-tui")], 80, 24) == ""
    assert last_screens([], 80, 24) == ""


def test_nothing_in_it_steers_the_terminal():
    blocks = [UserBlock(attack) for attack in ATTACKS.values()]
    assert what_is_left(last_screens(blocks, 80, 500)) == set()
