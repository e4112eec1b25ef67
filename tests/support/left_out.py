"""Which tests a run leaves out, and what the others are called."""

from collections.abc import Sequence

import pytest

from tests.support.cpu_times import ALWAYS_RUN

MARKS = ("real_model", "thorough", "slow", "interop")
"""Kinds of tests that download, take long or need more; ``-m`` chooses them."""

MANY_TESTS = 2_000
"""More than these are a whole run."""

_MOST_NAME_CHARS = 80


def marks_left_out(config: pytest.Config) -> Sequence[str]:
    """The kinds that this run leaves out."""
    return [mark for mark in MARKS if mark not in config.option.markexpr]


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the kinds out that ``-m`` does not name.

    Of few tests, each is skipped and says why. A whole run drops them: to send thousands of tests
    to workers, and to be told of each that it was skipped, takes a tenth of its time. It begins
    with what takes longest, so that no worker has that left at the end.
    """
    marks = marks_left_out(config)
    left: dict[pytest.Item, str] = {}
    for item in items:
        own = {marker.name for marker in item.iter_markers()}
        if mark := next(filter(own.__contains__, marks), ""):
            left[item] = mark
    if len(items) > MANY_TESTS:
        kept = (item for item in items if item not in left)
        items[:] = sorted(kept, key=lambda item: not item.nodeid.startswith(ALWAYS_RUN))
        config.hook.pytest_deselected(items=[*left])
        return
    for item, mark in left.items():
        item.add_marker(pytest.mark.skip(reason=f"choose it with -m {mark}"))


def short_name(value: object) -> str | None:
    """A name for a long text that is a parameter; None for any other value.

    Workers send the name of a test with all that they tell of it: once, 70 names had 3 MB.
    """
    if not isinstance(value, str | bytes) or len(value) <= _MOST_NAME_CHARS:
        return None
    return f"{ascii(value[:_MOST_NAME_CHARS])[:_MOST_NAME_CHARS]}...{len(value)}"
