from dataclasses import replace

from agent_tui.compaction.outcome import CompactionPreview
from agent_tui.features.context.compact import fact_sections, preview_sections, verdict
from agent_tui.features.context.contents import request_cost, savings_of
from agent_tui.sessions.entries import Ledger

PREVIEW = CompactionPreview(
    tokens_before=144_000,
    tokens_after=78_600,
    compact_tokens=27_400,
    summarised=412,
    window=200_000,
    target_tokens=80_000,
    messages={0: 12, 2: 1},
    freed={0: 31_200, 2: 34_200},
    ledger=Ledger(),
)
NOTHING = replace(
    PREVIEW,
    tokens_after=144_000,
    compact_tokens=None,
    summarised=0,
    messages={},
    freed={},
    problem="Nothing to compact: the context is small enough.",
)


def test_a_request_s_cost_is_said_with_what_a_compaction_saves():
    preview = replace(PREVIEW, tokens_before=100_000, compact_tokens=20_000)
    assert request_cost(preview, 0.000001) == (
        "Each request reads 100,000 tokens ($0.1000); "
        "compacting now would save 80,000 tokens ($0.0800)."
    )
    assert request_cost(NOTHING, 0) == (
        "Each request reads 144,000 tokens. Nothing to compact: the context is small enough."
    )


def test_what_would_be_saved_is_what_the_rows_say():
    """An automatic compaction that is not due yet does not make a summary worthless."""
    early = replace(NOTHING, compact_tokens=143_682, summarised=2, problem="")
    assert savings_of(early) == (("/compact: a summary of 2 messages", 318),)
    assert request_cost(early, 0).endswith("would save 318 tokens.")
    assert savings_of(NOTHING) == ()


def test_the_preview_says_what_goes_and_what_stays():
    sizes, asked, automatic = preview_sections(PREVIEW, "[ctx: 72%]")
    assert sizes.rows == (
        ("now", "144,000 tokens [ctx: 72%]"),
        ("after /compact", "27,400 tokens [ctx: ~14%]"),
    )
    assert asked.rows == (
        ("goes", "412 messages: a summary replaces them, frees 116,600 tokens"),
        ("stays", "newer messages, and the facts below"),
    )
    assert automatic.rows == (
        ("goes", "12 messages: repeats and thinking are dropped, frees 31,200 tokens"),
        ("goes", "1 message: old outputs are cut to a line, frees 34,200 tokens"),
        ("", "Would leave 78,600 tokens; its target is 80,000 (40%)."),
    )
    assert preview_sections(NOTHING, "")[1].rows == (("", NOTHING.problem),)


def test_the_verdict_names_the_outcome_the_target_and_whether_it_is_reached():
    assert verdict(NOTHING) == "Would change nothing now; its target is 80,000 (40%)."
    assert verdict(replace(PREVIEW, tokens_after=90_000)) == (
        "Would leave 90,000 tokens, more than its target of 80,000 (40%)."
    )


def test_an_unknown_window_has_no_percent_to_divide_by():
    assert "(0%)" in verdict(replace(PREVIEW, window=0))


def test_only_lists_with_something_in_them_are_shown_and_each_is_bounded():
    assert fact_sections(Ledger()) == ()
    (section,) = fact_sections(Ledger(modified_files=tuple(f"{n}.py" for n in range(1_000))))
    assert section.heading == "Files changed (1,000)"
    assert section.rows[0] == ("·", "0.py")
    assert section.rows[-1] == ("", "+992 more")
    assert len(section.rows) == 9
