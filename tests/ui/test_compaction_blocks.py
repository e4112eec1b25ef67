"""A compaction in the chat: the same words when it happens and when the log is read again."""

from agent_tui.agent.compaction.reports import outcome_event
from agent_tui.compaction.outcome import Outcome
from agent_tui.events import CompactionFinished
from agent_tui.sessions.entries import (
    CompactionDetails,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    Entry,
)
from agent_tui.sessions.replay.changes import EditReport, report_entry, report_of, undo_mark
from agent_tui.ui.chat.compaction_blocks import compaction_block, readable_piece, readable_summary
from agent_tui.ui.chat.history_blocks import blocks_of
from agent_tui.ui.transcript.blocks import NoticeBlock, SummaryBlock

FREED, MESSAGES = {0: 31_200, 1: 24_500}, {0: 12, 1: 1}


def edits_and_report() -> tuple[Entry, ...]:
    report = EditReport(
        batch="b", tokens_before=150_000, tokens_after=62_000, freed=FREED, messages=MESSAGES
    )
    edits = (ContextEditEntry(target_id=str(n), tier=0, batch="b") for n in range(13))
    return (*edits, report_entry(report))


def test_edits_are_one_line_and_the_same_live_and_from_the_log():
    event = CompactionFinished(
        "e1", "threshold", "", 150_000, 62_000, "", False, freed=FREED, messages=MESSAGES
    )
    block = compaction_block(event)
    assert blocks_of(edits_and_report()) == [block]
    assert block.summary.splitlines()[:2] == [
        "- 12 messages: thinking and repeated outputs left out (about 31,200 tokens)",
        "- 1 message: long outputs and arguments shortened (about 24,500 tokens)",
    ]
    assert "recall" in block.summary


def test_what_a_strategy_did_stands_in_the_line_live_and_from_the_log():
    counts = {"tool_results": 1_200, "user_messages": 0, "protected": 5, "before": 9, "after": 3}
    edit = ContextEditEntry(target_id="1", replacement="short", tier=3, batch="b")
    outcome = Outcome((edit,), 90, 30, counts, "One was cut.", strategy="hybrid")
    block = compaction_block(outcome_event("e1", "manual", outcome, 9_000))
    entries = outcome.entries("manual", 9_000)
    assert blocks_of(entries) == [block]
    report = report_of(entries[-1])
    assert report is not None
    assert block.note == "hybrid: 1,200 tool results, 5 protected. One was cut."
    assert (block.tokens_before, block.tokens_after) == (9_000, 3_000)
    assert report.statistics["after"] == 3_000
    assert block.summary.splitlines()[0] == "- 1 message: old messages rewritten in fewer words"


def test_a_summary_without_a_model_says_so_live_and_from_the_log():
    event = CompactionFinished("e1", "manual", "## Goal", 9, 3, "", is_fallback=True)
    entry = CompactionEntry(
        summary="## Goal",
        first_kept_entry_id="x",
        tokens_before=9,
        tokens_after=3,
        details=CompactionDetails(is_fallback=True),
    )
    assert (
        [compaction_block(event)]
        == blocks_of((entry,))
        == [SummaryBlock("## Goal", 9, 3, "written without a model")]
    )


def test_an_undone_compaction_is_a_quiet_line():
    undone = CustomEntry(id="e1", custom_type="x")
    notice = NoticeBlock("info", "The compaction was undone.")
    assert blocks_of((undone, undo_mark(("e1",)))) == [notice]
    assert blocks_of((undo_mark(("e1",)),)) == [], "that compaction is in another session"


def test_state_of_other_features_is_not_shown():
    assert blocks_of((CustomEntry(custom_type="scope", data={"a": 1}),)) == []


def test_the_facts_in_a_summary_are_readable():
    summary = (
        "## Goal\nx\n\n"
        "<pinned-constraints>\n- never a\n- only b\n</pinned-constraints>\n\n"
        "<modified-files>\nsrc/__init__.py\n+3 more\n</modified-files>"
    )
    assert readable_summary(summary) == (
        "## Goal\nx\n\n"
        "## Your rules\n- never a\n- only b\n\n"
        "## Changed files\n- `src/__init__.py`\n- +3 more"
    )


def test_what_code_wrote_stands_under_headings_and_code_stays_code():
    summary = (
        "<said-by-the-person>\n(1) fix it\n</said-by-the-person>\n\n"
        "<commands-run>\n$ make *all*\n</commands-run>\n\n"
        "<files-now>\n### src/a.py (changed; whole)\n# no heading\n"
        "### b.md (read 2 times; whole)\n### a heading of its own\n</files-now>"
    )
    shown = readable_summary(summary)
    assert "## What you said\n(1) fix it" in shown
    assert "````\n$ make *all*\n````" in shown
    assert "### src/a.py (changed; whole)\n````\n# no heading\n````" in shown
    assert "````\n### a heading of its own\n````" in shown


def test_no_tag_is_left_where_a_block_was_cut_or_of_a_piece_that_was_found():
    cut = "<said-by-the-person>\n(1) fix it\n\n## Goal\nx\n</work-state>\nand on"
    assert readable_summary(cut) == "(1) fix it\n\n## Goal\nx\nand on"
    assert readable_piece("… fix it </said-by-the-person> ## Goal") == "… fix it ## Goal"


def test_what_a_model_kept_stands_under_its_source_as_it_is():
    summary = (
        '## Goal\nx\n\n<kept>\n<excerpt file="a.py" lines="8-9" '
        'state="as it is now">\n# no heading\n- no list\n</excerpt>\n'
        '<excerpt of="$ make">\ndone\n</excerpt>\n</kept>'
    )
    assert readable_summary(summary) == (
        "## Goal\nx\n\n## Kept word for word\n### file a.py, lines 8-9\n````\n# no heading\n"
        "- no list\n````\n### $ make\n````\ndone\n````"
    )
