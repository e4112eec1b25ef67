import dataclasses

from agent_tui.events import TurnFinished
from agent_tui.features.tour.scripted import Reply, ScriptedProvider
from agent_tui.providers.base import ProviderError
from agent_tui.providers.faults.overflow import window_in
from tests.support.rows import each_row
from tests.support.runtime import collect, only

VLLM = (
    "This model's maximum context length is 4096 tokens. However, you requested 10772 tokens "
    "(2772 in the messages, 8000 in the completion). Please reduce the length of the messages."
)


def _refused() -> ProviderError:
    error = ProviderError("context_overflow", VLLM)
    error.stated_window = window_in(VLLM)
    return error


@each_row(
    ("refusal", "window"),
    [
        (VLLM, 4096),
        ("request (9031 tokens) exceeds the available context size (8192 tokens), try", 8192),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context", 32_768),
        ("`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000", 2048),
        (
            "Please reduce the length of the messages. Current length is 9000 while limit is 8192",
            8192,
        ),
        ("tokens to keep is greater than the context length of only 4096 tokens", 4096),
        ("Your request exceeded model token limit: 262144 (requested: 269030)", 262_144),
        ("Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).", 59_862),
        ("The prompt is too long.", 0),
        ("the request is 9,000 tokens, which exceeds the context window", 0),
    ],
)
def test_the_window_a_server_names_is_found(refusal: str, window: int):
    assert window_in(refusal) == window


async def test_a_window_named_in_a_refusal_is_used_and_the_request_made_anew(stage):
    def answer(request):
        asked = (request.max_output_tokens or 0) + 2_000
        return Reply(error=_refused()) if asked > 4_096 else Reply("Hi.")

    provider = ScriptedProvider(answer)
    runtime = stage.runtime(provider, window=32_000)
    runtime.conversation.model_info = _with_output(runtime, 8_000)
    assert only(await collect(runtime.submit("hello")), TurnFinished).outcome == "done"
    assert runtime.conversation.model_info.window == 4_096
    assert len(provider.requests) == 2


async def test_a_refusal_that_names_the_known_window_is_no_news(stage):
    error = _refused()
    provider = ScriptedProvider(lambda _: Reply(error=error))
    events = await collect(stage.runtime(provider, window=4_096).submit("hello"))
    assert only(events, TurnFinished).outcome == "error"
    caps = [request.max_output_tokens for request in provider.requests]
    assert caps == [1_000, 250]


def _with_output(runtime, max_output: int):
    return dataclasses.replace(runtime.conversation.model_info, max_output=max_output)
