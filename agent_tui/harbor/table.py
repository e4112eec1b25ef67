"""Jobs of Harbor side by side: ``python -m agent_tui.harbor.table JOB ...``."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

_HINT = "Name a folder that `harbor run` created in jobs/."


class _Read(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Verified(_Read):
    rewards: dict[str, float] | None = None


class _Told(_Read):
    replies: int | None = None
    compactions: int | None = None


class _Used(_Read):
    n_input_tokens: int | None = None
    n_cache_tokens: int | None = None
    n_output_tokens: int | None = None
    cost_usd: float | None = None
    metadata: _Told | None = None


class _Span(_Read):
    started_at: datetime | None = None
    finished_at: datetime | None = None


class _Trial(_Read):
    """The part of a trial's ``result.json`` that is read; a job's has no `trial_name`."""

    trial_name: str
    verifier_result: _Verified | None = None
    agent_result: _Used | None = None
    agent_execution: _Span | None = None
    exception_info: dict[str, object] | None = None

    @property
    def reward(self) -> float:
        """The reward; 0 if nothing was verified, as Harbor counts it."""
        rewards = (self.verifier_result and self.verifier_result.rewards) or {}
        return rewards.get("reward", next(iter(rewards.values()), 0.0))

    @property
    def used(self) -> _Used:
        return self.agent_result or _Used()

    @property
    def told(self) -> _Told:
        return self.used.metadata or _Told()

    @property
    def seconds(self) -> float | None:
        span = self.agent_execution or _Span()
        if span.started_at is None or span.finished_at is None:
            return None
        return (span.finished_at - span.started_at).total_seconds()


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its value for one trial, and the format of the mean."""

    title: str
    value: Callable[[_Trial], float | None]
    form: str = ",.0f"

    def mean(self, trials: Sequence[_Trial]) -> str:
        known = [value for trial in trials if (value := self.value(trial)) is not None]
        return format(sum(known) / len(known), self.form) if known else "?"


_COLUMNS = (
    _Column("reward", lambda trial: trial.reward, ".2f"),
    _Column("failed", lambda trial: trial.exception_info is not None, ".2f"),
    _Column("replies", lambda trial: trial.told.replies, ".1f"),
    _Column("compactions", lambda trial: trial.told.compactions, ".1f"),
    _Column("input tokens", lambda trial: trial.used.n_input_tokens),
    _Column("cached", lambda trial: trial.used.n_cache_tokens),
    _Column("output tokens", lambda trial: trial.used.n_output_tokens),
    _Column("dollars", lambda trial: trial.used.cost_usd, ".4f"),
    _Column("seconds", lambda trial: trial.seconds),
)


def table(jobs: Sequence[Path]) -> str:
    """A Markdown table with one row for each of `jobs`: means over their trials, ``?``: unknown.

    Args:
        jobs: Folders that ``harbor run`` created in ``jobs/``.

    Raises:
        ValueError: A folder has no result of a trial.
    """
    rows: list[tuple[str, ...]] = [("job", "trials", *(column.title for column in _COLUMNS))]
    for job in jobs:
        trials = _trials(job)
        means = (column.mean(trials) for column in _COLUMNS)
        rows.append((job.name, str(len(trials)), *means))
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    rows.insert(1, tuple(rule))
    return "\n".join(_line(row, widths) for row in rows) + "\n"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    name, *numbers = row
    cells = (cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True))
    return f"| {name.ljust(widths[0])} | {' | '.join(cells)} |"


def _trials(job: Path) -> list[_Trial]:
    read: list[_Trial] = []
    for path in sorted(job.glob("*/result.json")):
        try:
            read.append(_Trial.model_validate(json.loads(path.read_text(encoding="utf-8"))))
        except (ValidationError, ValueError) as error:
            raise ValueError(f"{path} is not a trial result. {_HINT}") from error
    if not read:
        raise ValueError(f"{job} contains no trials. {_HINT}")
    return read


def main(arguments: Sequence[str]) -> int:
    """Print the table of the named jobs; returns the exit code."""
    if not arguments or arguments[0].startswith("-"):
        sys.stderr.write("usage: python -m agent_tui.harbor.table JOB ...\n")
        return 2
    try:
        text = table([Path(argument) for argument in arguments])
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
