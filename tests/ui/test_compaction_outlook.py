from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.commands.compaction import kept_facts, last_tier, verdict
from agent_tui.commands.context import request_cost
from agent_tui.compaction.preview import CompactionPreview, TierPreview
from agent_tui.sessions.entries import Ledger
from agent_tui.ui.screens.preview import tier_rows

PREVIEW = CompactionPreview(
    tokens_before=144_000,
    tokens_after=78_600,
    window=200_000,
    target_tokens=80_000,
    tiers=(
        TierPreview(0, 12, 112_800, 31_200, is_used=True),
        TierPreview(1, 31, 88_300, 24_500, is_used=True),
        TierPreview(2, 140, 61_900, 26_400, is_used=True),
        TierPreview(3, 412, 27_400, 116_600, is_used=False),
    ),
    ledger=Ledger(),
)


def test_a_request_s_cost_is_said_with_what_a_compaction_saves():
    preview = replace(PREVIEW, tokens_before=100_000, tokens_after=20_000)
    assert request_cost(preview, 0.000001) == (
        "Each request reads 100,000 tokens ($0.1000); "
        "compacting now would save 80,000 tokens ($0.0800)."
    )
    assert request_cost(replace(preview, tokens_after=100_000), 0) == (
        "Each request reads 100,000 tokens; compacting now would save nothing."
    )


def test_the_verdict_names_the_outcome_the_target_and_whether_it_is_reached():
    assert verdict(PREVIEW) == (
        "Automatic compaction would leave 78,600 tokens (▸); its target is 80,000 (40%)."
    )
    unused = tuple(replace(tier, is_used=False) for tier in PREVIEW.tiers)
    assert verdict(replace(PREVIEW, tiers=unused)) == (
        "Automatic compaction would change nothing; its target is 80,000 (40%)."
    )
    assert verdict(replace(PREVIEW, tokens_after=90_000)) == (
        "Automatic compaction would leave 90,000 tokens (▸), more than its target of 80,000 (40%)."
    )


def test_an_unknown_window_has_no_percent_to_divide_by():
    assert "(0%)" in verdict(replace(PREVIEW, window=0))


def test_only_lists_with_something_in_them_are_shown_and_each_is_bounded():
    assert kept_facts(Ledger()) == ()
    (section,) = kept_facts(Ledger(modified_files=tuple(f"{n}.py" for n in range(1_000))))
    assert section.heading == "Files changed (1,000)"
    assert section.rows[0] == ("·", "0.py")
    assert section.rows[-1] == ("", "+992 more")
    assert len(section.rows) == 9


def test_the_mark_stands_at_the_last_tier_that_is_used():
    assert last_tier(PREVIEW) is PREVIEW.tiers[2]
    marked = [
        row.plain for row in tier_rows(PREVIEW, "[ctx: 72%]", 30) if row.plain.startswith("▸")
    ]
    assert len(marked) == 1
    assert marked[0].startswith("▸ 2")


COUNTS = st.integers(min_value=0, max_value=3_000_000)


@given(
    st.lists(st.tuples(COUNTS, COUNTS, COUNTS, st.booleans()), max_size=4),
    st.integers(min_value=12, max_value=34),
)
def test_the_rows_of_the_table_are_equally_wide(
    counts: list[tuple[int, int, int, bool]], label_width: int
):
    tiers = tuple(TierPreview(tier, *values) for tier, values in enumerate(counts))
    preview = CompactionPreview(3_000_000, 700_000, 2_000_000, 800_000, tiers, Ledger())
    assert len({row.cell_length for row in tier_rows(preview, "[ctx: ~1%]", label_width)}) == 1
