"""The rows of the list as values: what each agent does, and how lists say it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias

from rich.cells import cell_len, set_cell_size

from agent_tui.commands.core.short_words import count_text, short_count, short_path
from agent_tui.commands.sessions import age
from agent_tui.messages import JsonObject
from agent_tui.safe_text import printable_line
from agent_tui.sessions.file.writer import SessionState

AgentState: TypeAlias = Literal["working", "asking", "limit", "done", "ended"]
"""What an agent does. The first three: a turn runs; it runs and waits for your answer; it waits for
a limit of its model. The others: no turn runs, and the last one came to its end, or did not."""

NEEDS_YOU: Final[frozenset[AgentState | None]] = frozenset({"asking", "limit"})
OURS: Final = "agent-tui"
_ACTIVE_S = 10.0
"""Seconds after a write within which an agent counts as active: replies come in pieces."""

_LINE_CHARS = 200
_LEAST_GOAL = 20
_MOST_PLACE, _MOST_PATH = 36, 8_000
_SEPARATOR = "  "
_NUMBERS = (2, 3)
"""Columns of a table that are aligned to the right."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """A session of any agent.

    Attributes:
        agent: The agent's usual name.
        format_name: The format of another agent's session; empty for ours.
        path: Its file, or ``DATABASE/ID``.
        cwd: Its folder; the empty path if unknown.
        goal: Its name, or what its first message asks for; empty if it has none.
        since: When its state began; without a state, when the session was last written.
        id: The session's id; empty for another agent's, which `path` names.
        branch: The branch there; empty if there is none, or it is unknown.
        worktree: The name of the git worktree that the folder is in; empty for a main one.
        last_line: The last line that the model wrote, or the call that it made; empty if unknown.
        cost_usd: US dollars, as far as prices are known; None if unknown.
        context_tokens: The size of its context; 0 if unknown.
        state: What it does; None if that is not known, as for most of other agents.
        pid: The process that has one of ours open; 0 if none has.
        problem: Why it cannot be imported; usually empty.
    """

    agent: str
    format_name: str
    path: Path
    cwd: Path
    goal: str
    since: datetime
    id: str = ""
    branch: str = ""
    worktree: str = ""
    last_line: str = ""
    cost_usd: float | None = None
    context_tokens: int = 0
    state: AgentState | None = None
    pid: int = 0
    problem: str = field(default="", compare=False)

    @property
    def is_ours(self) -> bool:
        """Whether it is a session of agent-tui."""
        return not self.format_name

    @property
    def needs_you(self) -> bool:
        """Whether it waits for something that only you can do or decide."""
        return self.state in NEEDS_YOU


def state_of_ours(
    doing: SessionState | None, *, is_cut_off: bool, waits_for_limit: bool
) -> AgentState:
    """The state of one of our sessions.

    Args:
        doing: What a program does with it; None if none has it open.
        is_cut_off: Whether its newest turn did not come to its end.
        waits_for_limit: Whether it ends in a wait for a model's limit.
    """
    match doing:
        case "waiting":
            return "asking"
        case "working":
            return "limit" if waits_for_limit else "working"
        case "idle" | None:
            return "ended" if is_cut_off else "done"


def state_of_other(*, is_done: bool | None) -> AgentState | None:
    """The state of another agent's session: only what its file says, as it may be left anyway."""
    return "done" if is_done else None


def newest_first(rows: Iterable[AgentRow]) -> list[AgentRow]:
    """`rows`, those whose state changed last first."""
    return sorted(rows, key=lambda row: (row.since, str(row.path)), reverse=True)


def last_line_of(text: str) -> str:
    """The last line of `text` that has words, for one line of a list."""
    return next((shown for line in _from_end(text) if (shown := printable_line(line))), "")


def _from_end(text: str) -> Iterable[str]:
    return reversed(text[-_LINE_CHARS * 20 :].splitlines())


def state_words(row: AgentRow, now: datetime) -> str:
    """What the agent does, and since when: ``working 5m``, ``quiet for 3 min``."""
    quiet_s = max((now - row.since).total_seconds(), 0.0)
    if row.state is not None:
        return f"{row.state} {age(row.since, now)}".removesuffix(" now")
    return "active now" if quiet_s < _ACTIVE_S else f"quiet for {_long_words(quiet_s)}"


def _long_words(seconds: float) -> str:
    for unit, size_s in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size_s:
            return f"{seconds // size_s:,.0f} {unit}"
    return f"{seconds:.0f} s"


def place_words(row: AgentRow, home: Path, most_chars: int = _MOST_PLACE) -> str:
    """The folder, and in brackets the worktree and branch: ``~/app (main)``.

    One that is longer than `most_chars` begins with ``…``, as its end tells folders apart.
    """
    if row.cwd == Path():
        return ""
    known = dict.fromkeys(filter(None, (row.worktree, row.branch)))
    where = short_path(row.cwd, home)
    whole = printable_line(f"{where} ({', '.join(known)})" if known else where, _MOST_PATH)
    return whole if len(whole) <= most_chars else f"…{whole[1 - most_chars :]}"


def cost_words(row: AgentRow) -> str:
    """``$0.12``; empty if unknown."""
    return "" if row.cost_usd is None else f"${row.cost_usd:,.2f}"


def context_words(row: AgentRow) -> str:
    """The size of the context in tokens: ``12.3k``; empty if unknown."""
    return short_count(row.context_tokens) if row.context_tokens else ""


def is_in(row: AgentRow, folders: Sequence[Path]) -> bool:
    """Whether a session works in one of `folders`, or below."""
    return row.cwd != Path() and any(map(row.cwd.is_relative_to, folders))


def count_line(rows: Sequence[AgentRow], shown: int) -> str:
    """How many sessions there are, and how many of them need the user: ``3 sessions: 1 needs you``.

    Args:
        rows: All of them.
        shown: How many of them are listed.
    """
    waiting = sum(row.needs_you for row in rows)
    text = count_text(len(rows), "session")
    text += f" (the newest {shown} are listed)" * (shown < len(rows))
    return f"{text}: {waiting} {'needs' if waiting == 1 else 'need'} you" if waiting else text


def table_lines(rows: Sequence[AgentRow], width: int, now: datetime, home: Path) -> list[str]:
    """`rows` as lines of at most `width` columns, if that is enough for the facts.

    Args:
        rows: The rows, in order.
        width: Columns of the terminal.
        now: The present time.
        home: The user's home folder, which is written as ``~``.
    """
    facts = [
        (
            state_words(row, now),
            row.agent,
            cost_words(row),
            context_words(row),
            place_words(row, home),
        )
        for row in rows
    ]
    widths = [max(map(cell_len, column)) for column in zip(*facts, strict=True)]
    lines: list[str] = []
    for row, cells in zip(rows, facts, strict=True):
        gaps = [" " * (size - cell_len(cell)) for cell, size in zip(cells, widths, strict=True)]
        aligned = [
            f"{gaps[number]}{cell}" if number in _NUMBERS else f"{cell}{gaps[number]}"
            for number, cell in enumerate(cells)
            if widths[number]
        ]
        start = _SEPARATOR.join(aligned)
        said = " – ".join(filter(None, (row.goal, row.last_line))) or "(no message yet)"
        room = max(width - len(start) - len(_SEPARATOR), _LEAST_GOAL)
        lines.append(f"{start}{_SEPARATOR}{_cut(printable_line(said), room)}")
    return lines


def _cut(text: str, most_cells: int) -> str:
    """`text` in at most `most_cells` cells of a terminal."""
    is_short = cell_len(text) <= most_cells
    return text if is_short else f"{set_cell_size(text, most_cells - 1).rstrip()}…"


def row_json(row: AgentRow) -> JsonObject:
    """A row as ``--json`` prints it; what is unknown is null."""
    return {
        "agent": row.agent,
        "id": row.id or None,
        "path": str(row.path),
        "cwd": str(row.cwd) if row.cwd != Path() else None,
        "branch": row.branch or None,
        "worktree": row.worktree or None,
        "goal": row.goal or None,
        "lastLine": row.last_line or None,
        "costUsd": row.cost_usd,
        "contextTokens": row.context_tokens or None,
        "state": row.state,
        "since": row.since.isoformat(timespec="milliseconds"),
        "needsYou": row.needs_you,
        "pid": row.pid or None,
    }
