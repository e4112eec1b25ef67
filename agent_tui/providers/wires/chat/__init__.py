"""The chat format, through litellm: every provider that has no wire of its own."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import Final

from agent_tui.providers.accounts.table import ACCOUNTS
from agent_tui.providers.base import Chunk, FinishChunk, ModelRef, UsageChunk
from agent_tui.providers.litellm.protocol import Start
from agent_tui.providers.wires.base import Fit, Link, NotSignedInError, Wire
from agent_tui.providers.wires.chat.arguments import request_arguments
from agent_tui.providers.wires.chat.messages import messages_to_send
from agent_tui.providers.wires.chat.rehearsal import rehearse
from agent_tui.providers.wires.chat.replies import (
    CallSplitter,
    Reasoning,
    chunks_of,
    counts_of,
    finish_reason,
    was_finished,
    was_usage_sent,
)
from agent_tui.providers.wires.litellm_module import Part, ReplyStream


def _fit(_model: ModelRef) -> Fit:
    return "yes"


async def _warm(link: Link) -> None:
    await rehearse(await link.litellm())


async def _stream(start: Start, link: Link) -> AsyncGenerator[Chunk, None]:
    """One request from the first byte to the finish reason, if there is one.

    How a cut stream is told from a whole one: litellm reports a normal stop when a stream ends
    without a finish reason. Its stream object keeps the reason it really received in
    ``received_finish_reason`` (``intermittent_finish_reason`` while chunks still come). That
    holds for every provider whose chunks go through litellm's common stream object (all that
    speak HTTP); the few that set "stop" by themselves (vertex through Google's SDK, mock
    replies) count as whole.
    """
    account = ACCOUNTS.get(start.model.partition("/")[0])
    if account is not None and not account.is_signed_in(link.environ):
        raise NotSignedInError(f"not signed in to {account.title}")
    litellm, known = await link.litellm(), await link.known(start.model)
    if account is not None:
        await link.in_time(link.renew_token(account))
    arguments = request_arguments(start, litellm.provider_list, link.environ, known)
    response = await link.in_time(litellm.acompletion(**arguments))
    calls, reasoning = CallSplitter(), Reasoning()
    reason = ""
    usage: object = None
    try:
        async for part in _parts(response, link):
            usage = getattr(part, "usage", None) or usage
            for choice in part.choices[:1]:
                for chunk in reasoning.chunks(choice.delta):
                    yield chunk
                for chunk in chunks_of(choice.delta, calls):
                    yield chunk
                reason = choice.finish_reason or reason
    finally:
        await response.aclose()
    for chunk in reasoning.ending():
        yield chunk
    if usage is not None:
        counts = replace(counts_of(usage), is_estimate=not was_usage_sent(response))
        yield UsageChunk(counts.priced(start, known))
    if was_finished(response):
        yield FinishChunk(finish_reason(reason))


async def _parts(response: ReplyStream, link: Link) -> AsyncIterator[Part]:
    while True:
        try:
            yield await link.in_time(anext(response))
        except StopAsyncIteration:
            return


CHAT: Final = Wire("chat", _fit, messages_to_send, _warm, _stream)
