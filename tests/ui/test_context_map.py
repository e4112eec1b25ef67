from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.context.contents import PART_LABELS, Part
from agent_tui.features.context.screen import SIGNS, STYLES, bar_cells


@given(
    st.lists(st.integers(min_value=0, max_value=1_000_000), min_size=1, max_size=8),
    st.integers(min_value=10, max_value=200),
)
def test_the_bar_is_exactly_as_wide_as_it_may_be(tokens: list[int], width: int):
    parts = tuple(Part(kind, count) for kind, count in zip(PART_LABELS, tokens, strict=False))
    cells = bar_cells(parts, width)
    assert sum(count for _, count in cells) == width
    assert all(count >= 0 for _, count in cells)


def test_every_part_has_a_colour_and_a_sign_of_its_own():
    assert STYLES.keys() == SIGNS.keys() == PART_LABELS.keys()
    assert len(set(SIGNS.values())) == len(SIGNS)
