"""What a compaction keeps of what the agent goes on to use, beside simpler ways to save space.

    python -m tests.benchmarks.compaction [FOLDER...] [--json FILE]

No model is asked: the summary is the one made by code. Every session is cut at each tenth after
which 60 calls follow and where it was really compacted; the context before the cut is compacted
and compared with what the calls after it use. `callable 20`, `callable 60`: of what the next 20 or
60 calls repeat of what was known before the cut (whole lines of the text they replace, neighbouring
words of their commands, whole paths), the share that can be read in the context, call by call.
"""

import argparse
import json
import os
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from agent_tui.tokens import ExactCounter, TokenCounter
from tests.benchmarks import compaction_methods as methods
from tests.benchmarks.compaction_cases import RecordedSession, cuts, recorded_sessions
from tests.benchmarks.compaction_methods import Compacted, HybridCost, Saving, tier_savings
from tests.benchmarks.compaction_truth import (
    Known,
    file_truth,
    known_in,
    needs_of,
    next_calls,
    open_errors,
    relative,
    said,
    squeezed,
    stated_rules,
    user_lines,
)

BUDGET_TOKENS = 20_000
SHARE = 0.10
METHODS = {
    "ours20k": "ours (tiered), at most 20k tokens",
    "hybrid20k": "ours with hybrid first, at most 20k tokens",
    "agent20k": "ours with agent first, at most 20k tokens",
    "hybrid": "hybrid alone, as far as it goes",
    "ours10": "ours, at most 10 % of the tokens",
    "tail20k": "newest 20k tokens",
    "tail10": "newest 10 % of the tokens",
    "mask10": "all but the newest 10 outputs masked",
    "cut2000": "outputs cut to 2,000 characters",
    "real": "the summary in the file",
}


@dataclass(frozen=True)
class Row:
    """One way at one cut. Shares are None where there was nothing to keep."""

    session: str
    cut: int
    method: str
    tokens_before: int
    tokens_after: int
    seconds: float
    callable_20: float | None
    callable_60: float | None
    modified_kept: float | None
    read_kept: float | None
    rules_kept: float | None
    errors_kept: float | None
    user_text_kept: float | None


def measure(session: RecordedSession, counter: TokenCounter) -> Iterator[Row]:
    """All ways at all cuts of one session."""
    for cut in cuts(session):
        judge = _Judge(session, cut, counter)
        for method, compacted in _ways(session, cut, counter):
            if compacted is not None:
                yield judge.row(method, compacted)


def _ways(
    session: RecordedSession, cut: int, counter: TokenCounter
) -> Iterator[tuple[str, Compacted | None]]:
    messages, path = session.messages[:cut], session.entries[:cut]
    before = counter.count_messages(messages)
    if before > BUDGET_TOKENS:
        yield (
            "ours20k",
            methods.ours(path, cwd=session.cwd, counter=counter, max_tokens=BUDGET_TOKENS),
        )
        for name, alone in (("hybrid20k", methods.by_hybrid), ("agent20k", methods.by_agent)):
            given = {"cwd": session.cwd, "counter": counter, "max_tokens": BUDGET_TOKENS}
            yield name, methods.then_tiers(alone(path, **given), path, **given)
        yield "hybrid", methods.by_hybrid(path, cwd=session.cwd, counter=counter, max_tokens=1)
        yield "tail20k", methods.newest_within(messages, counter, BUDGET_TOKENS)
    tenth = int(before * SHARE)
    yield "ours10", methods.ours(path, cwd=session.cwd, counter=counter, max_tokens=tenth)
    yield "tail10", methods.newest_within(messages, counter, tenth)
    yield "mask10", methods.mask_outputs(messages, counter, 10)
    yield "cut2000", methods.cut_outputs(messages, counter, 2_000)
    for real in session.compactions:
        if real.cut == cut:
            yield "real", methods.real_summary(messages, counter, real)


class _Judge:
    """Knows what there was before one cut and what was used after it."""

    def __init__(self, session: RecordedSession, cut: int, counter: TokenCounter) -> None:
        self._session, self._cut = session, cut
        before = session.messages[:cut]
        self._tokens = counter.count_messages(before)
        known = known_in("\n".join(said(message) for message in before))
        self._needs = {
            count: tuple(known.of(needs_of(call)) for call in calls)
            for count in (20, 60)
            if (calls := next_calls(session.messages, cut, count)) is not None
        }
        self._files = file_truth(before, session.cwd)
        self._rules = stated_rules(before)
        self._errors = open_errors(before)
        self._user_lines = user_lines(before)

    def row(self, method: str, compacted: Compacted) -> Row:
        """The figures of one way."""
        text = compacted.text.replace("&lt;", "<")
        flat = squeezed(text)
        known = known_in(text)
        return Row(
            session=self._session.name,
            cut=self._cut,
            method=method,
            tokens_before=self._tokens,
            tokens_after=compacted.tokens,
            seconds=round(compacted.seconds, 3),
            callable_20=self._callable(known, 20),
            callable_60=self._callable(known, 60),
            modified_kept=_share(self._files.modified, lambda path: self._names(flat, path)),
            read_kept=_share(self._files.read, lambda path: self._names(flat, path)),
            rules_kept=_share(self._rules, lambda rule: rule in text),
            errors_kept=_share(self._errors, lambda error: error in flat),
            user_text_kept=_share(self._user_lines, lambda line: line in flat),
        )

    def _callable(self, known: Known, count: int) -> float | None:
        """The mean over the calls that need something of what was known before."""
        needs = [need for need in self._needs.get(count, ()) if need.count]
        return round(statistics.fmean(map(known.share_of, needs)), 4) if needs else None

    def _names(self, text: str, path: str) -> bool:
        """Whether `path` is said, relative to the working folder or with it."""
        return bool(re.search(rf"(?<![\w.-]){re.escape(relative(path, self._session.cwd))}", text))


def _share(wanted, is_kept) -> float | None:
    if not wanted:
        return None
    return round(sum(map(is_kept, wanted)) / len(wanted), 4)


def median(values: Sequence[float | None]) -> float | None:
    """The median of the values that are there."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Medians over all cuts, as a Markdown table; file lists and rules as means."""
    yield (
        "| way | cuts | tokens before | after | s | callable 20 | callable 60 | worst 60 "
        "| modified | read | rules | errors | user text |"
    )
    yield "|---|" + "---:|" * 12
    for method, title in METHODS.items():
        some = [row for row in rows if row.method == method]
        if some:
            yield _line(title, some)


def _line(title: str, rows: Sequence[Row]) -> str:
    worst = min((row.callable_60 for row in rows if row.callable_60 is not None), default=None)
    cells = [
        title,
        str(len(rows)),
        f"{median([row.tokens_before for row in rows]) or 0:,.0f}",
        f"{median([row.tokens_after for row in rows]) or 0:,.0f}",
        f"{median([row.seconds for row in rows]) or 0:.2f}",
        _percent(median([row.callable_20 for row in rows])),
        _percent(median([row.callable_60 for row in rows])),
        _percent(worst),
        _percent(_mean([row.modified_kept for row in rows])),
        _percent(_mean([row.read_kept for row in rows])),
        _percent(_mean([row.rules_kept for row in rows])),
        _percent(_mean([row.errors_kept for row in rows])),
        _percent(_mean([row.user_text_kept for row in rows])),
    ]
    return "| " + " | ".join(cells) + " |"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def saving_table(savings: Sequence[Saving]) -> Iterator[str]:
    """What each tier frees of each session, as a Markdown table."""
    yield "| session | messages | tokens | tier 0 | tier 1 | tier 2 | after | s | ledger s |"
    yield "|---|" + "---:|" * 8
    for saving in savings:
        freed = " | ".join(_percent(tokens / saving.tokens_before) for tokens in saving.freed)
        yield (
            f"| {saving.session} | {saving.messages} | {saving.tokens_before:,} | {freed}"
            f" | {_percent(saving.tokens_after / saving.tokens_before)}"
            f" | {saving.seconds:.2f} | {saving.ledger_seconds:.2f} |"
        )


def hybrid_table(costs: Sequence[HybridCost]) -> Iterator[str]:
    """What `hybrid` leaves of each session, and what it costs, as a Markdown table."""
    yield "| session | results | tokens | after hybrid | s | ms a result |"
    yield "|---|" + "---:|" * 5
    for cost in costs:
        yield (
            f"| {cost.session} | {cost.results} | {cost.tokens_before:,}"
            f" | {_percent(cost.tokens_after / cost.tokens_before)}"
            f" | {cost.seconds:.2f} | {cost.ms_a_result:.2f} |"
        )


def default_folder() -> Path:
    """Recorded sessions beside the repository, or where ``AGENT_TUI_TRAJECTORIES`` says."""
    beside = Path(__file__).parents[2].parent / "shared" / "trajectories"
    return Path(os.environ.get("AGENT_TUI_TRAJECTORIES") or beside)


def main(argv: list[str] | None = None) -> int:
    """Measure, print tables and, with ``--json FILE``, write every row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--json", type=Path, help="write the rows here")
    arguments = parser.parse_args(argv)
    counter = ExactCounter()
    rows: list[Row] = []
    savings: list[Saving] = []
    costs: list[HybridCost] = []
    folders = [folder for folder in (default_folder(), *arguments.folders) if folder.exists()]
    for session in recorded_sessions(folders):
        savings.append(tier_savings(session, counter))
        if (cost := methods.hybrid_cost(session, counter)) is not None:
            costs.append(cost)
        rows.extend(measure(session, counter))
    print("\n".join(saving_table(savings)), "\n")
    print("\n".join(hybrid_table(costs)), "\n")
    for name in dict.fromkeys(row.session for row in rows):
        print(f"\n{name}\n\n" + "\n".join(table([row for row in rows if row.session == name])))
    print("\nall sessions\n\n" + "\n".join(table(rows)))
    if arguments.json:
        figures = {"tiers": [asdict(s) for s in savings], "cuts": [asdict(row) for row in rows]}
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
