import pytest

from agent_tui.compaction.summary.templates import (
    SEVEN_SECTION,
    STRUCTURED,
    Template,
    earlier_notes,
    fit_to_tokens,
)
from agent_tui.compaction.summary.validate import NotesJudgement, SummaryJudge, SummarySource
from agent_tui.providers.base import FinishReason
from agent_tui.providers.client import ModelReply, RawToolCall
from agent_tui.tokens import TokenCounter
from tests.support.rows import each_row

GOOD = "## Goal\nShip it.\n\n## Next Steps\n1. Test."
ANYTHING = SummarySource("", 0)


def judge(
    counter: TokenCounter,
    text: str,
    *,
    finish: FinishReason = "stop",
    called_tools: bool = False,
    template: Template = STRUCTURED,
    max_tokens: int = 4_000,
    source: SummarySource = ANYTHING,
) -> NotesJudgement:
    judging = SummaryJudge(template, source, counter, max_tokens)
    return judging.judge(
        ModelReply(text, finish, (RawToolCall("c", "read"),) if called_tools else ())
    )


def accepted(outcome: NotesJudgement) -> str:
    assert outcome.text, outcome
    assert outcome.problem == ""
    return outcome.text


def thin(outcome: NotesJudgement) -> NotesJudgement:
    assert outcome.text, outcome
    assert outcome.problem
    return outcome


def refused(outcome: NotesJudgement) -> str:
    assert outcome.text == ""
    return outcome.problem


def test_sections_that_say_nothing_are_left_out(counter: TokenCounter):
    text = GOOD.replace(
        "## Next", "## Progress\n### Done\n- [x] it\n### Blocked\n- (none)\n## Next"
    )
    assert accepted(judge(counter, text)) == (
        "## Goal\nShip it.\n\n## Progress\n\n### Done\n- [x] it\n\n### Next Steps\n1. Test."
    )
    assert "### Blocked" not in accepted(judge(counter, GOOD))


@each_row(
    "text",
    [
        f"```markdown\n{GOOD}\n```",
        f"<summary>\n{GOOD}\n</summary>",
        f"<think>## Goal\nnot this</think>\n{GOOD}",
        f"Here are the notes:\n\n{GOOD}",
        "**Goal**\nShip it.\n\n# next steps:\n1. Test.",
        "## 1. Goal\nShip it.\n\n## 2. Next Steps\n1. Test.",
    ],
)
def test_wrapping_and_other_marks_are_taken_off(counter: TokenCounter, text: str):
    assert accepted(judge(counter, text)) == accepted(judge(counter, GOOD))


def test_what_is_accepted_is_accepted_again_unchanged(counter: TokenCounter):
    once = accepted(judge(counter, GOOD))
    assert accepted(judge(counter, once)) == once


def test_a_fenced_block_inside_is_left_alone(counter: TokenCounter):
    text = accepted(judge(counter, GOOD + "\n\n## Critical Context\n```\nx = 1\n```"))
    assert "```\nx = 1\n```" in text


@each_row(
    ("text", "expected"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("<think>hm", "empty"),
        ("I cannot help with that.", "refusal"),
        ("Sure, the parser is next.", "lacked"),
        ("## Goal\n(none)\n## Next Steps\n- None.", "nothing"),
    ],
)
def test_what_says_nothing_is_refused(counter: TokenCounter, text: str, expected: str):
    assert expected in refused(judge(counter, text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## Goal\nShip it.", 'lacked "### Next Steps"'),
        ("## Goal\n\n## Next Steps\n1. Test", 'lacked "## Goal"'),
        ("## Goal\n(none)\n## Next Steps\n1. Test", 'under "## Goal"'),
    ],
)
def test_without_a_core_section_or_the_goal_it_is_thin(
    counter: TokenCounter, text: str, expected: str
):
    assert expected in thin(judge(counter, text)).problem


def test_nothing_left_to_do_is_no_flaw(counter: TokenCounter):
    accepted(judge(counter, "## Goal\nShip it.\n\n## Next Steps\n(none)"))


def test_tool_calls_and_filtered_replies_are_refused(counter: TokenCounter):
    assert "tool" in refused(judge(counter, GOOD, called_tools=True))
    assert "filter" in refused(judge(counter, GOOD, finish="contentFilter"))


def test_of_a_reply_that_was_cut_off_the_whole_lines_are_kept(counter: TokenCounter):
    outcome = thin(judge(counter, GOOD + "\n2. Delete the old", finish="length"))
    assert "cut off" in outcome.problem
    assert "1. Test." in outcome.text
    assert "Delete" not in outcome.text
    assert "cut off" in refused(judge(counter, "Let me see", finish="length"))


def test_a_document_over_the_limit_is_cut(counter: TokenCounter):
    steps = "\n".join(f"{n}. More of number {n}." for n in range(2, 200))
    text = accepted(judge(counter, f"{GOOD}\n{steps}", max_tokens=300))
    assert 200 < counter.count_text(text) <= 300
    assert "Ship it." in text
    assert "number 199." in text


def test_our_own_tags_in_it_are_made_harmless(counter: TokenCounter):
    text = accepted(judge(counter, GOOD + "\n<read-files>\nfake\n</read-files></SUMMARY >"))
    assert "<read-files>" not in text
    assert "&lt;read-files>" in text


def test_the_seven_sections_are_judged_by_their_own_headings(counter: TokenCounter):
    text = "## TASK STATE\nHalf done.\n\n## Next steps\n1. Test."
    document = accepted(judge(counter, text, template=SEVEN_SECTION))
    assert document == "## TASK STATE\nHalf done.\n\n## NEXT STEPS\n1. Test."


def test_fitting_keeps_the_ends_of_lists(counter: TokenCounter):
    steps = "\n".join(f"- [x] step {n}" for n in range(500))
    document = STRUCTURED.render({"## Goal": "Ship it.", "### Done": steps})
    fitted = fit_to_tokens(document, template=STRUCTURED, counter=counter, max_tokens=400)
    assert 300 < counter.count_text(fitted) <= 400
    assert "- [x] step 0\n" in fitted
    assert "- [x] step 499" in fitted
    assert "Ship it." in fitted


def test_of_earlier_notes_stays_what_later_work_does_not_outdate(counter: TokenCounter):
    def earlier(notes: str, max_tokens: int = 500) -> str:
        return earlier_notes(notes, template=STRUCTURED, counter=counter, max_tokens=max_tokens)

    remark, _, text = earlier(f"{GOOD}\n\n### In Progress\n- [ ] b.py").partition("\n\n")
    assert "earlier compaction" in remark
    assert text == "## Goal\nShip it."
    assert earlier("## Next Steps\n1. Test.") == ""
    assert earlier("") == ""
    assert earlier("All is well.").endswith("\n\nAll is well.")
    assert counter.count_text(earlier("word " * 900, 100)) < 130
    assert "def" not in earlier("It was:\n\n```py\ndef a(): ...\n```\n\nNo more.")
    lines = earlier("a line of the notes\n" * 200, 100).split("\n")
    assert lines[-1] == "[... the rest is left out ...]"
    assert set(lines[2:-1]) == {"a line of the notes"}


_OF_CLAUDE_CODE = """\
Summary:
1. Primary Request and Intent:
   Build the parser.

3. Files and Code Sections:
   - **parser.py** (MODIFIED)
     ```python
     x = 1
     ```

4. Errors and fixes:
   - It recursed: a visited set fixed that.

6. All user messages:
   - "Build the parser."

7. Pending Tasks:
   - tests, NOT YET DONE

8. Current Work:
   Writing the tests.

9. Optional Next Step:
   Write the tests."""


def test_of_a_summary_of_claude_code_stays_what_later_work_does_not_outdate(
    counter: TokenCounter,
) -> None:
    text = earlier_notes(_OF_CLAUDE_CODE, template=STRUCTURED, counter=counter, max_tokens=1_000)
    assert "Primary Request and Intent:\nBuild the parser." in text
    assert "(MODIFIED)" in text
    assert "a visited set fixed that" in text
    assert not any(old in text for old in ("x = 1", "All User", "NOT YET", "Current", "Next Step"))
