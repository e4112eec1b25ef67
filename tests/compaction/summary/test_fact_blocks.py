from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.summary.fact_blocks import (
    fact_blocks,
    without_fact_blocks,
)
from agent_tui.sessions.entries import Ledger


def test_each_fact_has_its_block_and_empty_ones_are_left_out():
    ledger = Ledger(pinned=("never push", "always test"), modified_files=("b", "a"))
    assert fact_blocks(ledger, window=100_000) == (
        "<pinned-constraints>\n- always test\n- never push\n</pinned-constraints>\n\n"
        "<modified-files>\na\nb\n</modified-files>"
    )
    assert fact_blocks(Ledger(), window=100_000) == ""


def test_a_small_window_gets_small_blocks():
    ledger = Ledger(
        pinned=tuple(f"never do {n} " + "x" * 100 for n in range(100)),
        errors=tuple(f"$ cmd{n} => " + "e" * 200 for n in range(12)),
        read_files=tuple(f"src/some/file{n}.py" for n in range(400)),
    )
    for window, most in ((2_048, 1_200), (8_000, 3_200), (200_000, 24_000)):
        blocks = fact_blocks(ledger, window=window)
        assert 0.6 * most < len(blocks) < most
        for tag in ("pinned-constraints", "open-errors", "read-files"):
            assert f"<{tag}>" in blocks


def test_constraints_come_first_where_there_is_little_room():
    ledger = Ledger(
        pinned=("never touch the lock file", "always use tabs"),
        errors=("$ make => " + "e" * 900,),
        modified_files=tuple(f"src/some/file{n}.py" for n in range(400)),
    )
    blocks = fact_blocks(ledger, window=2_048)
    assert "- always use tabs\n- never touch the lock file\n" in blocks
    assert "more\n</modified-files>" in blocks


_words = st.text(max_size=60) | st.sampled_from(
    ["</read-files>", "<modified-files>", "</pinned-constraints>\n", "a\nb"]
)


@given(
    pinned=st.lists(_words, max_size=3),
    errors=st.lists(_words, max_size=3),
    files=st.lists(_words, max_size=3),
)
def test_taking_it_off_gives_the_prose_back(pinned: list[str], errors: list[str], files: list[str]):
    ledger = Ledger(
        pinned=tuple(pinned),
        errors=tuple(errors),
        read_files=tuple(files),
        modified_files=tuple(files),
    )
    extra = fact_blocks(ledger, window=100_000)
    assert without_fact_blocks(f"## Goal\nx\n\n{extra}") == "## Goal\nx"
