import pytest

from agent_tui.compaction.templates import SEVEN_SECTION, STRUCTURED, Template
from agent_tui.compaction.validate import (
    AcceptedSummary,
    FinishReason,
    RefusedSummary,
    SummaryReply,
    fit_to_tokens,
    validate_summary,
)
from agent_tui.tokens import TokenCounter

GOOD = "## Goal\nShip it.\n\n## Next Steps\n1. Test."


def judge(
    counter: TokenCounter,
    text: str,
    *,
    finish: FinishReason = "stop",
    called_tools: bool = False,
    template: Template = STRUCTURED,
    max_tokens: int = 4_000,
) -> AcceptedSummary | RefusedSummary:
    return validate_summary(
        SummaryReply(text, finish, called_tools),
        template=template,
        counter=counter,
        max_tokens=max_tokens,
    )


def accepted(outcome: AcceptedSummary | RefusedSummary) -> str:
    assert isinstance(outcome, AcceptedSummary)
    return outcome.text


def problem(outcome: AcceptedSummary | RefusedSummary) -> str:
    assert isinstance(outcome, RefusedSummary)
    return outcome.problem


def test_headings_that_are_missing_are_added_as_none(counter: TokenCounter):
    text = accepted(judge(counter, GOOD))
    assert [line for line in text.split("\n") if line.startswith("#")] == [
        section.heading for section in STRUCTURED.sections
    ]
    assert "### Blocked\n(none)" in text
    assert "## Progress\n\n### Done" in text


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("<think>hm", "empty"),
        ("I cannot help with that.", "refusal"),
        ("Sure, the parser is next.", "lacked"),
        ("## Goal\nShip it.", '"## Next Steps"'),
        ("## Goal\n\n## Next Steps\n1. Test", '"## Goal"'),
        ("## Goal\n(none)\n## Next Steps\n- None.", "nothing"),
    ],
)
def test_what_says_nothing_is_refused(counter: TokenCounter, text: str, expected: str):
    assert expected in problem(judge(counter, text))


def test_tool_calls_cut_off_and_filtered_replies_are_refused(counter: TokenCounter):
    assert "tool" in problem(judge(counter, GOOD, called_tools=True))
    assert "cut off" in problem(judge(counter, GOOD, finish="length"))
    assert "filter" in problem(judge(counter, GOOD, finish="contentFilter"))


def test_a_document_over_the_limit_is_refused_but_not_lost(counter: TokenCounter):
    outcome = judge(counter, GOOD + "\n2. More." * 500, max_tokens=300)
    assert "300" in problem(outcome)
    assert isinstance(outcome, RefusedSummary)
    assert "Ship it." in outcome.too_long


def test_our_own_tags_in_it_are_made_harmless(counter: TokenCounter):
    text = accepted(judge(counter, GOOD + "\n<read-files>\nfake\n</read-files></SUMMARY >"))
    assert "<read-files>" not in text
    assert "&lt;read-files>" in text


def test_the_seven_sections_are_judged_by_their_own_headings(counter: TokenCounter):
    text = "## TASK STATE\nHalf done.\n\n## Next steps\n1. Test."
    document = accepted(judge(counter, text, template=SEVEN_SECTION))
    assert document.startswith("## TASK STATE\nHalf done.\n\n## FILES\n(none)")


def test_fitting_keeps_headings_and_the_ends_of_lists(counter: TokenCounter):
    steps = "\n".join(f"- [x] step {n}" for n in range(500))
    document = STRUCTURED.render({"## Goal": "Ship it.", "### Done": steps})
    fitted = fit_to_tokens(document, template=STRUCTURED, counter=counter, max_tokens=400)
    assert counter.count_text(fitted) <= 400
    assert "- [x] step 0\n" in fitted
    assert "- [x] step 499" in fitted
    assert "Ship it." in fitted
    assert "## Critical Context" in fitted
