"""Asking models to put old messages into fewer words, many in one call."""

from collections.abc import Mapping, Sequence

from agent_tui.compaction.model_client import ModelClient, RequestTracker, text_request
from agent_tui.compaction.strategies.hybrid.request import (
    SYSTEM_PROMPT,
    LongMessage,
    condensed_texts,
    condensing_prompt,
    condensing_schema,
)
from agent_tui.compaction.summary.writer import SummaryModel
from agent_tui.providers.base import ProviderError

_INPUT_SHARE = 0.6
"""Of the window for the messages; our estimates are up to 30 % under a provider's count."""

_CHARS_PER_TOKEN = 3
_MOST_CHARS = 8_000
"""Of one message: who writes more says what it is about at the beginning and the end."""

_LEAST_CHARS = 200
_THINKING_TOKENS = 1_000
"""For models that think aloud before they answer."""


class Condenser:
    """Asks the first of several models that works, and stays with it.

    Attributes:
        calls: How many requests were sent.
        failures: Which models failed, one clause each.
    """

    def __init__(
        self,
        client: ModelClient,
        models: Sequence[SummaryModel],
        tracker: RequestTracker,
        focus: str,
    ) -> None:
        self._client = client
        self._models = list(models)
        self._tracker = tracker
        self._focus = focus
        self.calls = 0
        self.failures: list[str] = []

    async def condense(self, messages: Sequence[LongMessage], phase: str) -> Mapping[int, str]:
        """What a model made of `messages`, by their place from 0 on; nobody has judged it.

        Those that are missing got no answer: with no model left that works all are.
        """
        while self._models:
            model = self._models[0]
            problem = "its reply held no message"
            try:
                if texts := await self._ask(model, messages, phase):
                    return texts
            except ProviderError as error:
                problem = error.message
            self.failures.append(f"{model.ref.name}: {problem}")
            del self._models[0]
        return {}

    async def _ask(
        self, model: SummaryModel, messages: Sequence[LongMessage], phase: str
    ) -> Mapping[int, str]:
        self._tracker.begin()
        window, count = model.info.window, len(messages)
        wanted = 2 * sum(message.max_tokens for message in messages) + _THINKING_TOKENS
        limits = [limit for limit in (model.info.max_output, window // 4) if limit > 0]
        output_tokens = min([wanted, *limits])
        room_tokens = max(int(window * _INPUT_SHARE) - output_tokens, 0)
        max_chars = min(max(room_tokens * _CHARS_PER_TOKEN // count, _LEAST_CHARS), _MOST_CHARS)
        self.calls += 1
        request = text_request(
            model.ref,
            condensing_prompt(messages, self._focus, max_chars),
            system=SYSTEM_PROMPT,
            max_output_tokens=output_tokens,
            schema=condensing_schema(count) if model.info.takes_schema else None,
        )
        reply = await self._client.ask(request, phase, self._tracker)
        if reply.called_tools or reply.finish == "contentFilter":
            return {}
        texts = condensed_texts(reply.text)
        return {number - 1: text for number, text in texts.items() if 1 <= number <= count}
