"""Generated sessions, and checking something for every one of them.

A history is read off one drawn text of bytes, which is ten times as quick as drawing every
choice, and shrinks to the first, plainest options.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_tui.messages import Message, ToolResultMessage, UserMessage
from agent_tui.sessions.entries import Entry, MessageEntry
from tests.support.drawn_history import RULES, Choices, History
from tests.support.talk import Talk

ExampleT = TypeVar("ExampleT")

_LONG_REPORT = pytest.mark.filterwarnings("ignore:Generating overly large repr")

SOME_OR_ALL = pytest.mark.parametrize(
    "examples",
    [
        pytest.param(40, id="some", marks=[_LONG_REPORT]),
        pytest.param(
            2_000, id="all", marks=[pytest.mark.slow, pytest.mark.timeout(1_200), _LONG_REPORT]
        ),
    ],
)
"""Over how many histories a property is checked."""


def for_every(
    drawn: st.SearchStrategy[ExampleT], examples: int, check: Callable[[ExampleT], None]
) -> None:
    """Run `check` over that many `examples`, and shrink what it fails on."""

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(drawn)
    def checked(example: ExampleT) -> None:
        check(example)

    checked()


def histories(max_turns: int = 5) -> st.SearchStrategy[tuple[Entry, ...]]:
    """Entries from the root to the leaf: messages alone, as they were said."""
    return _drawn(lambda choices: History(choices).talked(max_turns))


def changed_histories(max_turns: int = 4) -> st.SearchStrategy[tuple[Entry, ...]]:
    """The same with everything else that a file can hold: edits, compactions, their undoing."""
    return _drawn(lambda choices: History(choices, is_plain=False).talked(max_turns))


def continued(path: Sequence[Entry], drawn: bytes) -> tuple[Entry, ...]:
    """`path` with one more turn, its messages alone."""
    history = History(Choices(drawn))
    history.talk.entries = list(path)
    history.talk.prefix = f"more{len(path)}-{drawn[:4].hex()}-"
    return history.talked(1)


def drawn_bytes(count: int = 240) -> st.SearchStrategy[bytes]:
    """What a history is read off."""
    return st.binary(min_size=count, max_size=count)


def _drawn(
    read: Callable[[Choices], tuple[Entry, ...]],
) -> st.SearchStrategy[tuple[Entry, ...]]:
    return drawn_bytes().map(lambda drawn: read(Choices(drawn)))


def rules_said(path: Iterable[Entry]) -> set[str]:
    """Those of `RULES` that the person stated anywhere on `path`."""
    texts = [message.text for message in _messages(path) if isinstance(message, UserMessage)]
    return {rule for rule in RULES if any(rule in text for text in texts)}


def files_touched(path: Iterable[Entry], cwd: str = Talk.cwd) -> set[str]:
    """Files in `cwd` that the results of successful calls on `path` name themselves."""
    touches = [
        message.tool_details.files
        for message in _messages(path)
        if isinstance(message, ToolResultMessage) and not message.is_error
    ]
    paths = (p for touch in touches for p in (*touch.read, *touch.written, *touch.edited))
    return {path.removeprefix(f"{cwd}/") for path in paths}


def _messages(path: Iterable[Entry]) -> list[Message]:
    return [entry.message for entry in path if isinstance(entry, MessageEntry)]
