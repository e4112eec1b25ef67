"""As much of litellm's module and its streams as is used here."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol


class Choice(Protocol):
    """One choice of a stream part; there is never more than one."""

    delta: object
    finish_reason: str | None


class Part(Protocol):
    """One part of a stream; it may have a ``usage``."""

    choices: Sequence[Choice]


class ReplyStream(Protocol):
    """What litellm's ``acompletion(stream=True)`` returns.

    ``received_finish_reason`` and ``intermittent_finish_reason`` are what the provider sent;
    the `Part` that litellm makes up at the end says "stop" in any case. ``chunks`` are the
    parts as they came, usage included.
    """

    received_finish_reason: str | None
    intermittent_finish_reason: str | None
    chunks: Sequence[object]

    def __aiter__(self) -> AsyncIterator[Part]:
        """The parts, as they come."""
        ...

    async def __anext__(self) -> Part:
        """The next part."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...


class LiteLlm(Protocol):
    """As much of the litellm module as is used here."""

    suppress_debug_info: bool
    disable_hf_tokenizer_download: bool
    disable_copilot_system_to_assistant: bool

    @property
    def provider_list(self) -> Sequence[str]:
        """Names litellm takes before the slash."""
        ...

    async def acompletion(self, **arguments: object) -> ReplyStream:
        """Send a chat request; with ``stream`` among the arguments."""
        ...
