"""What a whole session costs, by when the context is made smaller and how deep.

    python -m tests.benchmarks.compaction_price [FOLDER...]

Every recorded session is replayed request by request as if it had never been compacted. A request
pays for its context: the part that the provider has in its cache, the new part, the reply. A
compaction breaks the cache behind the system prompt, has a summary written, and makes the agent
look again at some of what it took. No model is asked. Costs are in units of a million uncached
input tokens, for the local server in processor time of that many.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from agent_tui.compaction.policy import output_reserve_tokens, usable_window
from agent_tui.messages import AssistantMessage
from agent_tui.tokens import TokenCounter
from tests.benchmarks.compaction_cases import RecordedSession, recorded_sessions

OVERHEAD_TOKENS = 5_000
"""System prompt and tools: no compaction takes them, and their cache survives it."""

LEAST_LEFT_TOKENS = OVERHEAD_TOKENS + 3_000
SUMMARY_TOKENS = 2_000
FETCH_OUTPUT_TOKENS = 80
HORIZON_CALLS = 60

LOOKED_AT_AGAIN = (
    (0.1, 12_170, 12.2),
    (0.2, 9_780, 10.7),
    (0.3, 8_860, 8.9),
    (0.4, 8_150, 8.0),
    (0.5, 6_990, 7.2),
    (0.7, 4_750, 5.0),
    (1.0, 0, 0.0),
)
"""Share of a context that was left; tokens and calls to look at again in the next 60 calls.

Means of 11 cuts through two sessions of Claude Code and one of pi, at 25k to 250k tokens, four
characters counted as a token: what the real next calls needed of what they knew, and a context of
facts and the newest messages of that size did not show. They vary widely (at 0.2 from
1,650 to 16,145 tokens), without a trend by the size before. Four cuts of mini-swe-agent
needed 19% of the tokens at 0.2.
"""


@dataclass(frozen=True)
class Prices:
    """Of one token, an uncached one of the input being 1; `summary`: of the summary's model."""

    name: str
    read: float
    write: float
    output: float
    summary: float


PRICES = (
    Prices("cached", 0.1, 1.25, 5.0, 0.33),
    Prices("uncached", 1.0, 1.0, 5.0, 0.33),
    Prices("local", 0.01, 1.0, 20.0, 1.0),
)


@dataclass(frozen=True)
class Policy:
    """Fire at the share `trigger` and come down to the share `target` of what may be used.

    That is the window less the reply's reserve, and no more than `most_tokens` (0: no limit).
    """

    trigger: float
    target: float
    most_tokens: int = 0

    @property
    def name(self) -> str:
        """As in the tables."""
        most = f" of {self.most_tokens // 1000}k" if self.most_tokens else ""
        return f"{self.trigger:.0%} -> {self.target:.0%}{most}"

    def working_tokens(self, window: int) -> int:
        """What both shares are of."""
        usable = usable_window(window, output_reserve_tokens(window, 32_000))
        return min(usable, self.most_tokens or usable)


POLICIES = (
    *(Policy(trigger, target) for trigger in (0.5, 0.8) for target in (0.1, 0.2, 0.3, 0.4)),
    *(
        Policy(0.8, target, most)
        for most in (64_000, 96_000, 130_000, 192_000)
        for target in (0.2, 0.3, 0.4)
    ),
)
NEVER = Policy(1.0, 0.5)


@dataclass(frozen=True)
class Round:
    """One request: what was new since the reply before, the reply's tokens, its calls."""

    new: int
    output: int
    calls: int


@dataclass(frozen=True)
class Paid:
    """What a session cost, and how often it was compacted."""

    units: float
    firings: int


def rounds_of(session: RecordedSession, counter: TokenCounter) -> Iterator[Round]:
    """The requests of `session`, in order."""
    new = OVERHEAD_TOKENS
    for message in session.messages:
        tokens = counter.count_message(message)
        if isinstance(message, AssistantMessage):
            yield Round(new, tokens, len(message.tool_calls))
            new = 0
        else:
            new += tokens


def replay(rounds: Sequence[Round], policy: Policy, prices: Prices, window: int) -> Paid:
    """What `rounds` cost with `policy` in a model of `window` tokens."""
    working = policy.working_tokens(window)
    trigger, target = policy.trigger * working, policy.target * working
    context = cached = cost = fetch_tokens = fetch_calls = 0.0
    firings = calls_left = 0
    for one in rounds:
        context += one.new
        if context >= trigger and context > max(target, LEAST_LEFT_TOKENS):
            left = max(target, LEAST_LEFT_TOKENS)
            fetch_tokens, fetch_calls = looked_at_again(left / context)
            cost += prices.summary * (context + prices.output * SUMMARY_TOKENS)
            context, cached, calls_left = left, OVERHEAD_TOKENS, HORIZON_CALLS
            firings += 1
        cost += prices.read * cached + prices.write * (context - cached)
        cost += prices.output * one.output
        cached = context
        context += one.output
        share = min(one.calls, calls_left) / HORIZON_CALLS
        calls_left -= min(one.calls, calls_left)
        again = prices.read * context + prices.output * FETCH_OUTPUT_TOKENS
        cost += share * fetch_calls * again
        context += share * (fetch_tokens + fetch_calls * FETCH_OUTPUT_TOKENS)
    return Paid(cost / 1_000_000, firings)


def looked_at_again(share: float) -> tuple[float, float]:
    """Tokens and calls after a compaction that left `share` of the context."""
    least, *_ = LOOKED_AT_AGAIN
    if share <= least[0]:
        return least[1], least[2]
    for (low, low_tokens, low_calls), (high, tokens, calls) in pairwise(LOOKED_AT_AGAIN):
        if share <= high:
            part = (share - low) / (high - low)
            return (
                low_tokens + part * (tokens - low_tokens),
                low_calls + part * (calls - low_calls),
            )
    return 0.0, 0.0


def main() -> None:
    """Print a table for each price list: policies down, windows and sizes of sessions across."""
    parser = argparse.ArgumentParser(description=__doc__)
    root = Path(__file__).parents[2]
    parser.add_argument(
        "folders",
        nargs="*",
        type=Path,
        default=[root.parent / "shared" / "trajectories", root / "sessions.example"],
    )
    counter = TokenCounter()
    sessions: list[tuple[RecordedSession, list[Round], int]] = []
    for session in recorded_sessions(parser.parse_args().folders):
        rounds = list(rounds_of(session, counter))
        sessions.append((session, rounds, sum(one.new + one.output for one in rounds)))
    sessions.sort(key=lambda one: one[2])
    for prices in PRICES:
        for window in (32_000, 128_000, 200_000, 1_000_000):
            table(prices, window, sessions)


def table(
    prices: Prices, window: int, sessions: Sequence[tuple[RecordedSession, list[Round], int]]
) -> None:
    """Policies that fire at all, beside the same sessions without any limit."""
    largest = [one for one in sessions if one[2] >= 0.5 * window or one[2] >= 50_000][-6:]
    print(f"\n## {prices.name}, window {window:,}\n")
    print("| policy | " + " | ".join(f"{size // 1000}k" for _, _, size in largest) + " | all |")
    print("|---|" + "---:|" * (len(largest) + 1))
    for policy in (*POLICIES, NEVER):
        limit = 10**9 if policy is NEVER else window
        paid = [replay(rounds, policy, prices, limit) for _, rounds, _ in largest]
        cells = [f"{one.units:.2f} ({one.firings})" for one in paid]
        total = sum(one.units for one in paid)
        name = "never" if policy is NEVER else policy.name
        print(f"| {name} | {' | '.join(cells)} | {total:.2f} |")


if __name__ == "__main__":
    main()
