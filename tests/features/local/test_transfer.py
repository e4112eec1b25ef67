from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.local.model import PullProgress
from agent_tui.features.local.pull_screen import PACE_OVER_S, Pace, transfer_bar, transfer_text


def test_a_transfer_says_what_is_known():
    half = PullProgress("downloading", 40_000_000, 90_000_000)
    assert transfer_text(half, None) == "downloading · 40.0 MB of 90.0 MB"
    assert transfer_text(half, 2_500_000.0) == (
        "downloading · 40.0 MB of 90.0 MB · 2.5 MB/s · 20s left"
    )
    assert transfer_text(PullProgress("downloading", 5_000), None) == "downloading · 5.0 kB"
    assert transfer_text(PullProgress("looking for the file"), None) == "looking for the file"
    whole = PullProgress("downloading", 90_000_000, 90_000_000)
    assert transfer_text(whole, 1_000.0) == "downloading · 90.0 MB of 90.0 MB · 1.0 kB/s"


def paced(*seen: tuple[float, int], phase: str = "downloading") -> Pace:
    pace = Pace()
    for now_s, done in seen:
        pace.note(PullProgress(phase, done), now_s)
    return pace


def test_the_pace_is_told_after_a_second():
    assert paced((10.0, 0), (10.9, 900)).bytes_per_s is None
    assert paced((10.0, 0), (11.0, 900)).bytes_per_s == 900


def test_a_resumed_download_is_not_faster_for_what_was_there():
    assert paced((10.0, 50_000), (12.0, 52_000)).bytes_per_s == 1_000


def test_the_pace_forgets_what_is_long_ago():
    slow = [(float(second), second) for second in range(60)]
    fast = [(60.0 + second, 60 + 1_000 * second) for second in range(int(PACE_OVER_S) + 1)]
    assert paced(*slow, *fast).bytes_per_s == 1_000


def test_a_stalled_download_has_no_pace():
    assert paced(*((float(second), 700) for second in range(20))).bytes_per_s is None


def test_another_phase_begins_anew():
    pace = paced((0.0, 0), (2.0, 2_000))
    pace.note(PullProgress("checking", 0), 3.0)
    assert pace.bytes_per_s is None


@given(
    done=st.integers(0, 10**12),
    total=st.none() | st.integers(0, 10**12),
    width=st.integers(0, 200),
)
def test_a_bar_is_never_wider_than_its_room_and_full_only_at_the_end(
    done: int, total: int | None, width: int
):
    bar = transfer_bar(PullProgress("downloading", done, total), width)
    assert bar.cell_length <= max(width, 5)
    if "100%" in bar.plain:
        assert total is not None
        assert done >= total
    if total and done >= total:
        assert "╌" not in bar.plain
