"""What rows say of an agent, and in which order they come."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agent_tui.features.agents.rows import (
    AgentRow,
    AgentState,
    count_line,
    is_in,
    last_line_of,
    newest_first,
    place_words,
    row_json,
    state_of_other,
    state_of_ours,
    state_words,
    table_lines,
)
from agent_tui.sessions.file.writer import SessionState

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
HOME = Path("/home/sam")


def row(path: str = "/s/a.jsonl", *, quiet_s: float = 0, **facts: object) -> AgentRow:
    usual: dict[str, object] = {
        "agent": "agent-tui",
        "format_name": "",
        "cwd": HOME / "app",
        "goal": "Fix the parser",
        "since": NOW - timedelta(seconds=quiet_s),
    }
    return AgentRow(path=Path(path), **{**usual, **facts})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("doing", "is_cut_off", "waits", "state"),
    [
        ("working", True, False, "working"),
        ("working", True, True, "limit"),
        ("waiting", True, False, "asking"),
        ("waiting", True, True, "asking"),
        ("idle", False, False, "done"),
        ("idle", True, False, "ended"),
        (None, False, False, "done"),
        (None, True, False, "ended"),
        (None, True, True, "ended"),
    ],
)
def test_the_state_of_ours(
    doing: SessionState | None, is_cut_off: bool, waits: bool, state: AgentState
):
    assert state_of_ours(doing, is_cut_off=is_cut_off, waits_for_limit=waits) == state


def test_of_others_only_an_end_is_believed():
    assert [state_of_other(is_done=told) for told in (True, False, None)] == ["done", None, None]


@pytest.mark.parametrize(
    ("state", "quiet_s", "words"),
    [
        (None, 2, "active now"),
        (None, 45, "quiet for 45 s"),
        (None, 190, "quiet for 3 min"),
        (None, 7_300, "quiet for 2 h"),
        (None, 200_000, "quiet for 2 d"),
        (None, -5, "active now"),
        ("asking", 300, "asking 5m"),
        ("working", 3, "working"),
        ("done", 90_000, "done 1d"),
    ],
)
def test_what_an_agent_does_and_since_when(state: AgentState | None, quiet_s: float, words: str):
    assert state_words(row(state=state, quiet_s=quiet_s), NOW) == words


def test_only_questions_and_limits_need_the_user():
    states: tuple[AgentState | None, ...] = ("working", "asking", "limit", "done", "ended", None)
    needing = [state for state in states if row(state=state).needs_you]
    assert needing == ["asking", "limit"]
    rows = [row(state=state) for state in states]
    assert count_line(rows, 6) == "6 sessions: 2 need you"
    assert count_line(rows[:2], 1) == "2 sessions (the newest 1 are listed): 1 needs you"
    assert count_line(rows[:1], 1) == "1 session"


@given(st.lists(st.integers(min_value=0, max_value=10**6), max_size=20))
def test_the_newest_come_first(ages: list[int]):
    rows = [row(f"/s/{number}.jsonl", quiet_s=age) for number, age in enumerate(ages)]
    ordered = newest_first(rows)
    assert sorted(ordered, key=lambda one: one.since, reverse=True) == ordered
    assert {*ordered} == {*rows}


@given(st.text())
def test_the_last_line_is_one_line_that_is_safe_to_show(text: str):
    line = last_line_of(text)
    assert line == line.strip()
    assert len(line) <= 200
    assert not any(ord(char) < 32 for char in line)


def test_the_last_line_has_words():
    assert last_line_of("First.\n\n  Second \x1b[31mred\x1b[0m.  \n\n") == "Second red."


def test_a_place_names_worktree_and_branch_once():
    assert place_words(row(), HOME) == "~/app"
    assert place_words(row(branch="main"), HOME) == "~/app (main)"
    assert place_words(row(branch="fix", worktree="fix"), HOME) == "~/app (fix)"
    assert place_words(row(branch="fix", worktree="side"), HOME) == "~/app (side, fix)"
    assert place_words(row(cwd=Path()), HOME) == ""
    long = place_words(row(cwd=HOME / ("x" * 50) / "end", branch="main"), HOME)
    assert long.startswith("…")
    assert long.endswith("/end (main)")
    assert len(long) == 36


def test_sessions_in_and_below_a_folder_are_here():
    assert is_in(row(), (HOME,))
    assert is_in(row(), (Path("/x"), HOME / "app"))
    assert not is_in(row(), (HOME / "application",))
    assert not is_in(row(cwd=Path()), (Path("/"),))


TEXTS = st.text(max_size=60)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5), st.integers(100, 200))
def test_a_line_of_the_table_keeps_its_width(said: list[tuple[str, str]], width: int):
    rows = [
        row(goal=goal, last_line=line, cost_usd=0.5, context_tokens=9_000, state="asking")
        for goal, line in said
    ]
    lines = table_lines(rows, width, NOW, HOME)
    assert len(lines) == len(rows)
    assert all(cell_len(line) <= width for line in lines)
    assert not any(ord(char) < 32 for line in lines for char in line)


def test_a_table_leaves_out_what_no_row_knows():
    rows = [
        row(state="working", cost_usd=0.125, context_tokens=12_300, last_line="Running pytest."),
        row(agent="Codex", format_name="codex", quiet_s=190, cwd=HOME),
    ]
    assert table_lines(rows, 100, NOW, HOME) == [
        "working          agent-tui  $0.12  12.3k  ~/app  Fix the parser – Running pytest.",
        "quiet for 3 min  Codex                    ~      Fix the parser",
    ]
    assert table_lines(rows[1:], 100, NOW, HOME) == ["quiet for 3 min  Codex  ~  Fix the parser"]
    assert table_lines([], 100, NOW, HOME) == []


TEXT = {"type": ["string", "null"]}
SCHEMA = {
    "type": "object",
    "properties": {
        "agent": {"type": "string"},
        "id": TEXT,
        "path": {"type": "string"},
        "cwd": TEXT,
        "branch": TEXT,
        "worktree": TEXT,
        "goal": TEXT,
        "lastLine": TEXT,
        "costUsd": {"type": ["number", "null"]},
        "contextTokens": {"type": ["integer", "null"]},
        "state": {"enum": ["working", "asking", "limit", "done", "ended", None]},
        "since": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$"},
        "needsYou": {"type": "boolean"},
        "pid": {"type": ["integer", "null"]},
    },
    "additionalProperties": False,
}
SCHEMA["required"] = [*SCHEMA["properties"]]  # pyright: ignore[reportGeneralTypeIssues]
"""What scripts may rely on."""


def test_what_is_unknown_is_null():
    unknown = row_json(row(agent="Codex", format_name="codex", cwd=Path(), goal=""))
    jsonschema.validate(unknown, SCHEMA)
    assert [key for key, value in unknown.items() if value is not None] == [
        *("agent", "path", "since", "needsYou")
    ]
    known = row_json(
        row(
            *("/s/a.jsonl",),
            id="a1",
            branch="main",
            worktree="side",
            last_line="Ok.",
            cost_usd=0.0,
            context_tokens=7,
            state="limit",
            pid=42,
        )
    )
    jsonschema.validate(known, SCHEMA)
    assert None not in known.values()
