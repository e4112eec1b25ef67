"""How the window of the compression agent's model is divided: its token budget."""

from dataclasses import dataclass

from agent_tui.compaction.strategies.agent.prompt import SYSTEM_PROMPT
from agent_tui.compaction.strategies.agent.tools import TOOLS
from agent_tui.providers.base import ModelInfo
from agent_tui.tokens import TokenCounter

_INPUT_SHARE = 0.75
"""Our token estimates were up to 30 % under a provider's count on real sessions."""

_OUTPUT_PARTS = 5
_MOST_OUTPUT_TOKENS = 6_000
_STATUS_TOKENS = 300
"""What a request says besides prompt, tools, list and answers to calls."""

_LISTING_PARTS = 3
_MOST_LISTING_TOKENS = 6_000
_MOST_READING_TOKENS = 40_000
_SEGMENT_TOKENS = (400, 6_000)
_LEAST_TOKENS = 400


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Bounds in tokens: of a reply, of the list of messages, of all answers to calls together.

    `segment` is how large the segments are that are offered to be replaced by one text.
    """

    output: int
    listing: int
    answers: int
    segment: int


def budget_for(info: ModelInfo, counter: TokenCounter) -> TokenBudget | None:
    """The bounds for a model; None where its window is too small to work in.

    A request holds prompt, tools, list, the last reply and the answers to its calls, and leaves
    room for the next reply.
    """
    limits = [limit for limit in (info.max_output, _MOST_OUTPUT_TOKENS) if limit > 0]
    output = min(info.window // _OUTPUT_PARTS, *limits)
    frame = counter.count_text(SYSTEM_PROMPT) + counter.count_tools(TOOLS) + _STATUS_TOKENS
    room = int((info.window - 2 * output) * _INPUT_SHARE) - frame
    if room < _LEAST_TOKENS:
        return None
    listing = min(room // _LISTING_PARTS, _MOST_LISTING_TOKENS)
    answers = min(room - listing, _MOST_READING_TOKENS)
    lowest, highest = _SEGMENT_TOKENS
    return TokenBudget(output, listing, answers, min(max(answers, lowest), highest))
