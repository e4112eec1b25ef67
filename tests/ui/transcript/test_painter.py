from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.theme import BUILTIN_THEMES

from agent_tui.commands.core.short_words import short_time
from agent_tui.events import NoticeSubject
from agent_tui.messages import Todo, TurnFacts
from agent_tui.safe_text import safe_text
from agent_tui.ui.theme.palette import make_palette
from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    BashBlock,
    Block,
    DividerBlock,
    NoticeBlock,
    StartRow,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    ToolStatus,
    TurnBlock,
    UserBlock,
    WelcomeBlock,
)
from agent_tui.ui.transcript.markdown import markdown_parser
from agent_tui.ui.transcript.painter import BlockPainter, short_tokens
from tests.support.rows import each_row

PALETTE = make_palette(BUILTIN_THEMES["textual-dark"].to_color_system().generate(), ansi=False)
PARSER = markdown_parser()


def rows(block: Block, width: int = 40, *, expanded: bool = False) -> list[str]:
    painter = BlockPainter(PALETTE, PARSER, width, show_thinking=False)
    return [line.row.rstrip() for line in painter.paint(block, is_expanded=expanded)]


hostile = st.text(
    st.sampled_from("ab \n\t日👩\u200d💻\u0301[]*`#-\x1b\x9b\r\u202e\u200b\ud800<>&|+"), max_size=40
)
statuses = st.sampled_from(["running", "ok", "error", "denied", "cancelled"])
blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(UserBlock, hostile, st.sampled_from([(), ("AAAA",)])),
    st.builds(AssistantBlock, hostile, mark=st.sampled_from(["", "error"]), note=hostile),
    st.builds(ThinkingBlock, hostile),
    st.builds(
        ToolBlock, hostile, hostile, hostile, statuses, hostile, hostile, hostile, st.just(2.0)
    ),
    st.builds(
        ToolBlock,
        hostile,
        hostile,
        hostile,
        statuses,
        hostile,
        printed_lines=st.integers(0, 999),
        kept_at=hostile,
        todos=st.tuples(st.builds(Todo, text=hostile)),
        is_new_plan=st.booleans(),
    ),
    st.builds(TurnBlock, st.builds(TurnFacts, changed=st.tuples(hostile, hostile))),
    st.builds(BashBlock, hostile, hostile, statuses, hostile, st.integers(0, 3), st.booleans()),
    st.builds(SummaryBlock, hostile, st.just(10), st.just(5), hostile),
    st.builds(NoticeBlock, st.just("info"), hostile, st.sampled_from(get_args(NoticeSubject))),
    st.builds(DividerBlock, hostile),
    st.builds(
        WelcomeBlock,
        hostile,
        st.tuples(st.tuples(hostile, hostile)),
        st.tuples(st.builds(StartRow, hostile, hostile, hostile, hostile)),
        is_begun=st.booleans(),
    ),
)


@settings(max_examples=300, deadline=None)
@given(blocks, st.integers(40, 120), st.booleans())
def test_no_block_sticks_out_or_lets_a_control_character_through(
    block: Block, width: int, expanded: bool
):
    painter = BlockPainter(PALETTE, PARSER, width, show_thinking=expanded)
    for line in painter.paint(block, is_expanded=expanded):
        assert line.cells <= width
        assert safe_text(line.row, keep_newlines=False) == line.row


def test_a_tool_call_is_one_line_until_it_is_unfolded():
    block = ToolBlock("1", "read", "read a.py", "ok", "one\ntwo", summary="2 lines")
    assert rows(block) == [" ● read a.py  2 lines"]
    assert rows(block, expanded=True) == [" ● read a.py  2 lines", "   │ one", "   │ two"]


def test_a_long_title_is_cut_and_the_result_stays():
    block = ToolBlock("1", "bash", "bash " + "x" * 100, "ok", summary="exit 0")
    assert rows(block) == [" ● bash " + "x" * 22 + "…  exit 0"]


@each_row(
    ("status", "head"),
    [
        ("running", " ◐ t x"),
        ("ok", " ● t x"),
        ("error", " ✗ t x"),
        ("denied", " ⊘ t x  denied"),
        ("cancelled", " ○ t x  cancelled"),
        ("nothing", " ◦ t x"),
    ],
)
def test_each_status_can_be_told_without_colour(status: ToolStatus, head: str):
    assert rows(ToolBlock("1", "t", "x", status)) == [head]


def test_a_failed_call_shows_the_end_of_its_output():
    output = "\n".join(f"line {n}" for n in range(20))
    shown = rows(ToolBlock("1", "bash", "bash x", "error", output, summary="exit 1"))
    assert shown[:2] == [" ✗ bash x  exit 1", "   … +15 lines · ctrl+o"]
    assert shown[-1] == "   │ line 19"


def test_five_lines_of_what_a_command_printed_stand_below_its_call():
    printed = "\n".join(f"line {n}" for n in range(40))
    block = ToolBlock("1", "bash", "make", "ok", printed, summary="40 lines", printed_lines=40)
    assert rows(block) == [
        " ● bash make  40 lines",
        "   … +35 lines · ctrl+o",
        *(f"   │ line {n}" for n in range(35, 40)),
    ]
    short = ToolBlock("1", "bash", "make", "ok", "a\nb", summary="2 lines", printed_lines=2)
    assert rows(short)[1:] == ["   │ a", "   │ b"]
    assert rows(block, expanded=True)[1:] == [f"   │ line {n}" for n in range(40)]


def test_an_interrupted_command_keeps_its_last_lines_and_says_so_once():
    printed = "\n".join(f"line {number}" for number in range(1, 41))
    summary = "interrupted after 8 s"
    block = ToolBlock("1", "bash", "make", "cancelled", printed, summary=summary, printed_lines=40)
    shown = rows(block)
    assert shown[0] == f" ○ bash make  {summary}"
    assert shown[-1] == "   │ line 40"
    assert rows(ToolBlock("1", "bash", "make", "cancelled")) == [" ○ bash make  cancelled"]


def test_lines_that_the_model_did_not_get_are_counted_and_where_they_are_is_told():
    printed = "1\n2\n3\n[... 4307 lines, 20000 bytes left out ...]\n4311\n4312\n" + "x\n" * 9
    block = ToolBlock("1", "bash", "seq", "ok", printed, printed_lines=4_321, kept_at="/o/b.log")
    assert rows(block)[1] == "   … +4,316 lines · ctrl+o"
    assert rows(block, expanded=True)[-1] == "   full output: /o/b.log"
    own = BashBlock("1", "seq", "ok", printed, 0, printed_lines=4_321)
    assert "   … +4,311 lines · ctrl+o" in rows(own)


def test_of_a_failed_command_the_error_comes_first_and_then_the_end():
    printed = "\n".join(["cc a.c", "a.c:3: error: no foo", *(f"note {n}" for n in range(40))])
    block = ToolBlock("1", "bash", "make", "error", printed, printed_lines=42)
    assert rows(block)[1:4] == [
        "   │ a.c:3: error: no foo",
        "   … +37 lines · ctrl+o",
        "   │ note 36",
    ]
    told = ToolBlock("1", "bash", "make", "error", f"{printed}\nError: gone", printed_lines=43)
    assert rows(told)[1] == "   … +38 lines · ctrl+o"
    assert rows(told)[-1] == "   │ Error: gone"


def test_a_new_plan_is_shown_with_its_steps_and_one_that_only_goes_on_is_not():
    todos = (
        Todo(text="Read", status="completed"),
        Todo(text="Write", status="in_progress"),
        Todo(text="Test"),
    )
    block = ToolBlock("1", "todo", "plan: 1 of 3 done", "ok", todos=todos, is_new_plan=True)
    steps = ["   ✓ Read", "   ▸ Write", "   · Test"]
    assert rows(block) == [" ● todo plan: 1 of 3 done", *steps]
    ticked = replace(block, is_new_plan=False)
    assert rows(ticked) == [" ● todo plan: 1 of 3 done"]
    assert rows(ticked, expanded=True)[1:] == steps
    long = replace(block, todos=todos * 5)
    assert rows(long)[-1] == "   … +5 steps · ctrl+o"


def test_the_end_of_a_turn_names_as_many_files_as_fit_on_a_row():
    facts = TurnFacts(elapsed_ms=125_000, changed=("src/a.py", "tests/test_a.py", "b.py"), more=2)
    assert rows(TurnBlock(facts), 40) == [" ─ 2m 05s · changed src/a.py +4"]
    everything = " ─ 2m 05s · changed src/a.py, tests/test_a.py, b.py +2"
    assert rows(TurnBlock(facts), 80) == [everything]
    assert rows(TurnBlock(TurnFacts(elapsed_ms=47_400))) == [" ─ 47s"]


def test_a_long_diff_is_folded_and_counted():
    diff = "@@ -0,0 +1,50 @@\n" + "".join(f"+line {n}\n" for n in range(50))
    shown = rows(ToolBlock("1", "write", "write a.py", "ok", diff=diff))
    assert shown[0] == " ● write a.py  +50 -0"
    assert shown[-1] == "   … +39 lines · ctrl+o"
    assert rows(ToolBlock("1", "write", "", "ok", diff=diff), expanded=True)[-1] == (
        "   50 + line 49"
    )


def test_a_command_of_the_person_shows_its_last_lines_and_its_exit_code():
    output = "\n".join(f"line {n}" for n in range(300))
    block = BashBlock("1", "make\nall", "error", output, 2, in_context=False)
    shown = rows(block)
    assert shown[:3] == [" $ make", "   all", "   … +290 lines · ctrl+o"]
    assert shown[-2:] == ["   │ line 299", "   exit 2 · not in the model's context"]


def test_a_pasted_message_is_folded_and_what_was_typed_around_it_shows():
    pasted = "\n".join(f"row {n}" for n in range(10_000))
    block = UserBlock(f"Look at this:\n{pasted}\n\nWhy is it so long?")
    shown = rows(block)
    assert (shown[0], shown[-1]) == (" ▌ Look at this:", " ▌ Why is it so long?")
    assert shown[6] == " ▌ … +9,991 lines · ctrl+o"
    assert len(shown) == 13
    assert len(rows(block, expanded=True)) == 10_003


def test_a_single_line_of_ten_megabytes_is_bounded():
    text = "x" * 10_000_000
    for block in (UserBlock(text), AssistantBlock(text), ToolBlock("1", "t", text, "error", text)):
        assert 0 < len(rows(block, 80)) < 500


def test_where_folded_lines_take_too_many_rows_each_is_cut_to_one():
    short = ToolBlock("1", "bash", "bash x", "error", "y" * 200 + "\nend")
    assert len(rows(short, 80)) == 5
    long = ToolBlock("1", "bash", "bash x", "error", "y" * 1_000 + "\nend")
    assert rows(long, 80)[1:] == [f"   │ {'y' * 72}…", "   │ end"]
    assert len(rows(long, 80, expanded=True)) > 10


def test_a_folded_diff_shows_what_changed_rather_than_the_lines_around_it():
    def hunk(start: int, *changed: str) -> str:
        near = [f" line {n}" for n in range(start, start + 3)]
        below = [f" line {n}" for n in range(start + 4, start + 7)]
        old, new = (6 + sum(c[0] == sign for c in changed) for sign in "-+")
        return "\n".join([f"@@ -{start},{old} +{start},{new} @@", *near, *changed, *below])

    three = ("--- a.py", "+++ a.py", *(hunk(n, "-old", "+new") for n in (1, 21, 41)))
    shown = rows(ToolBlock("1", "edit", "edit a.py", diff="\n".join(three)))
    assert sum("- old" in row for row in shown) == sum("+ new" in row for row in shown) == 3
    assert shown[-1].startswith("   … +")
    assert len(shown) <= 14
    first = ("--- a.py", "+++ a.py", hunk(1, *(f"+new {n}" for n in range(9)), *["-old"] * 9))
    shown = rows(ToolBlock("1", "edit", "edit a.py", diff="\n".join(first)))
    assert "+ new 0" in shown[1]
    assert shown[-1] == "   … +13 lines · ctrl+o"


@pytest.mark.parametrize("status", ["running", "ok"])
def test_an_unfolded_call_shows_its_whole_command(status: ToolStatus):
    script = "cat > /tmp/cmp.py <<'X'\nimport sys\nX\npython3 /tmp/cmp.py"
    block = ToolBlock("1", "bash", " ".join(script.split()), status, command=script)
    assert rows(block, 60)[1:] == []
    assert rows(block, 60, expanded=True)[1:] == [f"   {line}" for line in script.split("\n")]
    short = ToolBlock("1", "bash", "make all", status, command="make all")
    assert len(rows(short, 60, expanded=True)) == 1


def test_what_no_key_unfolds_names_no_key():
    output = "\n".join(f"line {n}" for n in range(5_000))
    shown = rows(ToolBlock("1", "read", "read x", "ok", output), expanded=True)
    assert shown[1] == "   … +3,000 lines"
    block = ToolBlock("1", "bash", "bash x", "running", "a\nb", lines_before=70)
    assert rows(block)[1] == "   … +70 lines · ctrl+o"


def test_of_a_helper_only_what_it_does_now_is_shown_until_it_is_unfolded():
    block = ToolBlock("1", "explore", "explore x", "running", "read a\nread b\nread c\n")
    assert rows(block) == [" ◐ explore x", "   … +2 lines · ctrl+o", "   │ read c"]
    assert "   │ read a" in rows(block, expanded=True)


def test_a_branch_summary_has_its_own_title():
    assert rows(SummaryBlock("x", 0, 0, "a branch"))[0].startswith(" ── a branch ──")


@each_row(
    ("tokens", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (6_240, "6.2k"),
        (9_960, "10k"),
        (150_000, "150k"),
        (999_600, "1M"),
        (1_250_000, "1.2M"),
        (12_000_000, "12M"),
    ],
)
def test_tokens_are_short(tokens: int, text: str):
    assert short_tokens(tokens) == text


@pytest.mark.parametrize(("seconds", "text"), [(3.21, "3.2s"), (47.4, "47s"), (125, "2m 05s")])
def test_times_are_short(seconds: float, text: str):
    assert short_time(seconds) == text


def test_the_head_of_a_tool_says_nothing_twice():
    diff = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"
    edit = ToolBlock("c", "edit", "edit greet.py (+1 -1)", status="ok", summary="+1 -1", diff=diff)
    assert rows(edit)[0] == " ● edit greet.py  +1 -1"
    todo = ToolBlock("c", "todo", "plan: 0 of 4 done", status="ok", summary="0 of 4 done")
    assert rows(todo) == [" ● todo plan: 0 of 4 done"]
    denied = ToolBlock("c", "bash", "make", status="denied", elapsed_s=26.0)
    assert rows(denied) == [" ⊘ bash make  denied"]


@each_row("width", [40, 80, 200])
@each_row("is_expanded", [True, False])
def test_why_a_summary_failed_is_never_cut(width: int, is_expanded: bool):
    why = "written without a model: its summary was unusable, it says nothing of the last request"
    shown = rows(SummaryBlock("All.", 150_000, 62_000, why), width, expanded=is_expanded)
    assert why in " ".join(" ".join(shown).replace("•", "").split())


def test_text_keeps_to_one_column_on_a_wide_screen():
    text = "word " * 200
    blocks = (AssistantBlock(text, mark="error", note=text), NoticeBlock("info", text))
    assert {max(map(len, rows(block, 200))) // 10 for block in blocks} == {10}


@pytest.mark.parametrize("longest", [10, 400])
def test_a_diff_ends_where_all_else_does(longest: int):
    diff = f"@@ -0,0 +1,2 @@\n+a\n+{'x' * longest}\n"
    painter = BlockPainter(PALETTE, PARSER, 100, show_thinking=False)
    said = UserBlock("hello"), AssistantBlock("```\ncode\n```"), DividerBlock("end")
    blocks = (ToolBlock("1", "write", "w", "ok", diff=diff), *said)
    drawn = [painter.paint(block, is_expanded=True) for block in blocks]
    assert [max(line.cells for line in lines) for lines in drawn] == [99] * len(blocks)


HELP = StartRow("/help", "every command and key", "/help")
RESUMED = StartRow("Why is the parser slow, and what is to be done about it", "3d", "/resume 1")


def test_a_greeting_stands_in_the_middle_in_columns():
    block = WelcomeBlock("agent", (("mode", "ask"),), (HELP,), (RESUMED,))
    assert rows(block, 60) == [
        "   ◆ agent",
        "",
        "     mode    ask",
        "",
        "     try     /help                 every command and key",
        "",
        "     resume  Why is the parser s…  3d",
    ]


def test_a_greeting_is_left_with_its_facts_once_something_was_said():
    block = WelcomeBlock("agent", (("mode", "ask"),), (HELP,), (RESUMED,), is_begun=True)
    assert rows(block, 60) == [" ◆ agent", "", "   mode  ask"]


def test_a_row_to_begin_with_can_be_clicked():
    block = WelcomeBlock("agent", (), (HELP,))
    painter = BlockPainter(PALETTE, PARSER, 60, show_thinking=False)
    drafts = [line.draft for line in painter.paint(block, is_expanded=False)]
    assert drafts == ["", "", "/help"]


def test_each_kind_of_notice_has_its_mark_and_an_answer_is_markdown():
    marked = [rows(NoticeBlock("info", "text", about))[0] for about in get_args(NoticeSubject)]
    assert marked == [" • text", " ? text", " » text", " & text", " ◇ text", " ▤ text"]
    answer = NoticeBlock("info", "It is **bold**.\n\n- one", "answer")
    assert rows(answer) == [" » It is bold.", "", "   • one"]
    assert rows(NoticeBlock("warning", "text", "job")) == [" ▲ text"]


def test_a_refusal_is_broken_between_words():
    why = "The user does not allow this: deny edit(src/*)."
    block = ToolBlock("1", "edit", "edit a.py", "denied", output=why)
    assert rows(block, 30)[1:] == ["   │ The user does not allow", "   │ this: deny edit(src/*)."]
