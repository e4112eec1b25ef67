"""Who chooses what stays: a feature asks a model; without it, code decides alone."""

from collections.abc import Callable
from typing import Protocol, TypeAlias, cast

from agent_tui.compaction.candidates import ModelLookup
from agent_tui.compaction.curation.answer import KeepChoice, NoChoice
from agent_tui.compaction.curation.ask import Ask
from agent_tui.compaction.request import CompactionRequest
from agent_tui.feature import load_object, own_features
from agent_tui.providers.client import ModelClient, RequestTracker
from agent_tui.tokens import TokenCounter

OnChoice: TypeAlias = Callable[[KeepChoice], None]
"""Takes an answer that can be used, and may still become longer."""


class Curator(Protocol):
    """Asks a model what to keep."""

    async def choose(
        self,
        request: CompactionRequest,
        ask: Ask,
        tracker: RequestTracker,
        on_choice: OnChoice = ...,
    ) -> KeepChoice | NoChoice:
        """Return the choice of a model, or why there is none.

        Args:
            request: The conversation.
            ask: The question.
            tracker: Takes progress and usage.
            on_choice: Gets a usable answer that may still become longer.
        """
        ...


def own_curator(
    client: ModelClient | None, counter: TokenCounter, models: ModelLookup
) -> Curator | None:
    """The curator that a feature brings; None if there is none, or no client to ask with."""
    name = next(filter(None, (feature.curator for feature in own_features())), "")
    if client is None or not name:
        return None
    make = cast("Callable[[ModelClient, TokenCounter, ModelLookup], Curator]", load_object(name))
    return make(client, counter, models)
