from agent_tui.durations import seconds_of, shortest
from tests.support.rows import each_row


@each_row(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("10m", 600), ("1h", 3600), ("1.5h", 5400), ("0.5", 0.5)],
)
def test_a_duration_is_seconds_minutes_or_hours(text, seconds):
    assert seconds_of(text) == seconds


@each_row("text", ["", "0", "0s", "-1", "x", "1d", "1h30m", "inf", "nan", "1e3"])
def test_what_is_no_duration_is_none(text):
    assert seconds_of(text) is None


def test_it_is_written_in_its_largest_whole_unit():
    assert [shortest(s) for s in (3600, 600, 90, 0.5)] == ["1h", "10m", "90s", "0.5s"]
