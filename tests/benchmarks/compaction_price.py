"""What a whole session costs, by when the context is made smaller and how deep.

    python -m tests.benchmarks.compaction_price [FOLDER...]

Every recorded session is replayed request by request as if it had never been compacted. A request
pays for its context: the part that the provider has in its cache, the new part, the reply. A
compaction has the model say what to keep, on the prefix that is cached, breaks the cache behind
the system prompt, and makes the agent look again at some of what it took. A pause that is longer
than the provider keeps a prefix makes all of it new. No model is asked. Costs are in units of a
million uncached input tokens, for the local server in processor time of that many.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from agent_tui.compaction.policy import output_reserve_tokens, usable_window
from agent_tui.messages import AssistantMessage
from agent_tui.tokens import ExactCounter, TokenCounter
from tests.benchmarks.compaction_cases import RecordedSession, recorded_sessions

OVERHEAD_TOKENS = 5_000
"""System prompt and tools: no compaction takes them, and their cache survives it."""

LEAST_LEFT_TOKENS = OVERHEAD_TOKENS + 3_000
CHOICE_TOKENS = 2_500
"""Notes and the list of what to keep."""
REQUESTS_PER_PAUSE = 40
"""After so many requests the person is away for longer than a cached prefix lives."""
FETCH_OUTPUT_TOKENS = 80
HORIZON_CALLS = 60
_WORTH_IT = 2
"""A context that is not so many times what would be left of it is not made smaller in a pause."""

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
    """Of one token, an uncached one of the input being 1."""

    name: str
    read: float
    write: float
    output: float


PRICES = (
    Prices("cached", 0.1, 1.25, 5.0),
    Prices("uncached", 1.0, 1.0, 5.0),
    Prices("local", 0.01, 1.0, 20.0),
)


@dataclass(frozen=True)
class Policy:
    """Fire at the share `trigger` and come down to the share `target` of what may be used.

    That is the window less the reply's reserve, and no more than `most_tokens` (0: no limit).
    `is_idle`: in each pause the model is asked what to keep while the prefix is still cached, and
    the context is as small as that when the person returns.
    """

    trigger: float
    target: float
    most_tokens: int = 0
    is_idle: bool = False

    @property
    def name(self) -> str:
        """As in the tables."""
        most = self.most_tokens
        if most:
            sizes = f"{self.trigger * most / 1000:.0f}k -> {self.target * most / 1000:.0f}k"
        else:
            sizes = f"{self.trigger:.0%} -> {self.target:.0%}"
        return sizes + (", idle" if self.is_idle else "")

    def working_tokens(self, window: int) -> int:
        """What both shares are of."""
        usable = usable_window(window, output_reserve_tokens(window, 32_000))
        return min(usable, self.most_tokens or usable)


POLICIES = (
    *(Policy(0.8, target) for target in (0.2, 0.4)),
    *(
        Policy(0.8, target / most, most * 1_000)
        for most, targets in (
            (80, (16, 25)),
            (125, (25, 35, 45)),
            (160, (25, 35, 45)),
            (200, (25, 35, 45, 60)),
            (300, (35, 60)),
        )
        for target in targets
    ),
    Policy(0.8, 25 / 125, 125_000, is_idle=True),
    Policy(0.8, 35 / 200, 200_000, is_idle=True),
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
    """What a session cost, how often it was compacted, how many calls only looked again."""

    units: float
    firings: int
    again: float


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


def replay(
    rounds: Sequence[Round], policy: Policy, prices: Prices, window: int, pause_every: int
) -> Paid:
    """What `rounds` cost with `policy` in a model of `window` tokens.

    Before every `pause_every`-th request there was a pause in which the cached prefix died; 0 for
    no pauses.
    """
    working = policy.working_tokens(window)
    trigger, left = policy.trigger * working, max(policy.target * working, LEAST_LEFT_TOKENS)
    context = cached = cost = fetch_tokens = fetch_calls = again = 0.0
    firings = calls_left = 0
    for number, one in enumerate(rounds):
        is_back = pause_every > 0 and number > 0 and number % pause_every == 0
        is_idle = is_back and policy.is_idle and context > _WORTH_IT * left
        if is_back and not is_idle:
            cached = 0.0
        if is_idle or (context + one.new >= trigger and context > left):
            seen = context if is_idle else context + one.new
            cost += prices.read * cached + prices.write * (seen - cached)
            cost += prices.output * CHOICE_TOKENS
            fetch_tokens, fetch_calls = looked_at_again(left / seen)
            context, calls_left = left - (0 if is_idle else one.new), HORIZON_CALLS
            cached = 0.0 if is_back else OVERHEAD_TOKENS
            firings += 1
        context += one.new
        cost += prices.read * cached + prices.write * (context - cached)
        cost += prices.output * one.output
        cached = context
        context += one.output
        share = min(one.calls, calls_left) / HORIZON_CALLS
        calls_left -= min(one.calls, calls_left)
        once_more = prices.read * context + prices.output * FETCH_OUTPUT_TOKENS
        again += share * fetch_calls
        cost += share * fetch_calls * once_more
        context += share * (fetch_tokens + fetch_calls * FETCH_OUTPUT_TOKENS)
    return Paid(cost / 1_000_000, firings, again)


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
    counter = ExactCounter()
    sessions: list[tuple[RecordedSession, list[Round], int]] = []
    for session in recorded_sessions(parser.parse_args().folders):
        rounds = list(rounds_of(session, counter))
        sessions.append((session, rounds, sum(one.new + one.output for one in rounds)))
    sessions.sort(key=lambda one: one[2])
    for prices in PRICES:
        for pause_every in (0, REQUESTS_PER_PAUSE):
            for window in (32_000, 128_000, 200_000, 1_000_000):
                table(prices, window, pause_every, sessions)


def table(
    prices: Prices,
    window: int,
    pause_every: int,
    sessions: Sequence[tuple[RecordedSession, list[Round], int]],
) -> None:
    """Policies that fire at all, beside the same sessions without any limit."""
    largest = [one for one in sessions if one[2] >= 0.5 * window or one[2] >= 50_000][-6:]
    pauses = f"a pause every {pause_every} requests" if pause_every else "no pauses"
    print(f"\n## {prices.name}, window {window:,}, {pauses}\n")
    sizes = " | ".join(f"{size // 1000}k" for _, _, size in largest)
    print(f"| policy | {sizes} | all | looked again |")
    print("|---|" + "---:|" * (len(largest) + 2))
    for policy in (*POLICIES, NEVER):
        limit = 10**9 if policy is NEVER else window
        paid = [replay(rounds, policy, prices, limit, pause_every) for _, rounds, _ in largest]
        cells = [f"{one.units:.2f} ({one.firings})" for one in paid]
        total, again = sum(one.units for one in paid), sum(one.again for one in paid)
        name = "never" if policy is NEVER else policy.name
        print(f"| {name} | {' | '.join(cells)} | {total:.2f} | {again:.0f} |")


if __name__ == "__main__":
    main()
