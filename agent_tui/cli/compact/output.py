"""What ``agent-tui compact`` says: the result to standard output, all else to standard error."""

import sys

from agent_tui.cli.compact.tiers import CompactionReport
from agent_tui.cli.output import write_text
from agent_tui.safe_text import strip_control_characters
from agent_tui.sessions.replay.changes import describe_statistics

_TIER_NAMES = ("superseded", "shortened", "one line each", "summary")
_FEWER_WORDS = "fewer words"


class PhaseLines:
    """A line for each step of the work, where a person waits at a terminal."""

    def __init__(self) -> None:
        self._phase = ""

    def __call__(self, phase: str, summary_chars: int) -> None:
        """As `OnProgress`; the characters written so far would need a line that changes."""
        if phase != self._phase and sys.stderr.isatty():
            print(f"Compacting context: {phase} ...", file=sys.stderr)
        self._phase = phase


def print_report(report: CompactionReport) -> None:
    """The path of the new session, or of a dry run the summary; figures beside it."""
    saved = 100 * (report.tokens_before - report.tokens_after) // max(report.tokens_before, 1)
    figures = f"{report.tokens_before:,} -> {report.tokens_after:,} tokens"
    lines = [f"{figures} (-{saved} %) in {report.seconds:.1f} s"]
    names = _TIER_NAMES
    if said := describe_statistics(report.strategy if report.statistics else "", report.statistics):
        lines.append(f"  {said}")
        names = (*_TIER_NAMES[:-1], _FEWER_WORDS)
    for tier, (name, tokens) in enumerate(zip(names, report.freed, strict=True)):
        lines.append(f"  tier {tier}  {name:<14} {tokens:>12,}")
    if report.tokens_after > report.target_tokens:
        lines.append(f"  This is more than the {report.target_tokens:,} tokens aimed at.")
    print("\n".join(lines), file=sys.stderr)
    if report.path is None:
        write_text(strip_control_characters(report.carryover.summary) + "\n")
    else:
        write_text(f"{report.path}\n")
