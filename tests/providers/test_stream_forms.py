"""Every form of stream comes out right, or as an error that says what is the matter."""

from contextlib import aclosing
from typing import Any

import pytest

from agent_tui.agent.turn.reply import ReplyBuilder
from agent_tui.messages import AssistantMessage, UserMessage
from agent_tui.providers.base import ModelRef, ModelRequest, ProviderError
from agent_tui.providers.host import ProviderHost
from tests.providers.native_stream_forms import ANTHROPIC_FORMS, GEMINI_FORMS, RESPONSES_FORMS
from tests.providers.requests import READ
from tests.providers.stream_forms import CHAT_FORMS, Form
from tests.support.openai_server import Failure, OpenAiServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

_PROTOCOLS = (
    ("some-model", "/v1/chat/completions", CHAT_FORMS),
    ("anthropic/claude-sonnet-4-5", "/v1/messages", ANTHROPIC_FORMS),
    ("gemini/gemini-2.5-pro", "/v1/models/gemini-2.5-pro:streamGenerateContent", GEMINI_FORMS),
    ("openai/responses/some-model", "/v1/responses", RESPONSES_FORMS),
)
FORMS = [
    pytest.param(model, path, form, id=f"{path.rpartition('/')[2]}: {name}")
    for model, path, forms in _PROTOCOLS
    for name, form in forms.items()
]


@pytest.mark.parametrize(("name", "path", "form"), FORMS)
async def test_a_stream_in_this_form_comes_out_right(
    host: ProviderHost, server: OpenAiServer, name: str, path: str, form: Form
) -> None:
    stream = Failure(200, form.body, content_type="text/event-stream")
    server.pages[path] = server.pages[f"{path}?alt=sse"] = stream
    model = ModelRef(name, server.base_url, "THE_KEY")
    request = ModelRequest(model, "", (UserMessage(content="hello"),), (READ,))
    builder = ReplyBuilder(model.provider, model.model_id)
    was_filtered = False
    error: ProviderError | None = None
    try:
        async with aclosing(host.stream(request)) as chunks:
            async for chunk in chunks:
                builder.add(chunk)
    except ProviderError as caught:
        error = caught
    if error is None:
        reply = builder.build()
        message, was_filtered = reply.message, reply.was_filtered
        assert not reply.broken_calls
        assert [(c.name, c.arguments) for c in message.tool_calls] == list(form.calls)
        assert len({call.id for call in message.tool_calls}) == len(form.calls)
        assert message.stop_reason == form.stop
    else:
        message = builder.build_interrupted("error")
        assert form.said in error.message
        assert "litellm" not in error.message
    assert (error.kind if error else "") == form.kind
    assert (message.text, message.thinking) == (form.text, form.thinking)
    assert was_filtered == form.was_filtered
    check_sealed(message, form)
    check_counted(message, form)


def check_sealed(message: AssistantMessage, form: Form) -> None:
    sealed = tuple(part.signature for part in message.content if part.signature)
    if form.signatures:
        assert sealed == form.signatures


def check_counted(message: AssistantMessage, form: Form) -> None:
    usage: Any = message.usage
    if form.tokens:
        assert (usage.input + usage.cache_read + usage.cache_write, usage.output) == form.tokens
        assert not usage.is_estimate
