"""Tools for models whose server takes none, or who write calls as text."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from agent_tui.features.litellm.protocol import Fault
from agent_tui.features.tour.scripted import Reply, ScriptedProvider
from agent_tui.features.weak_models.adapter import refuses_tools
from agent_tui.messages import (
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.providers.access import AdaptingProvider
from agent_tui.providers.base import (
    Chunk,
    FaultKind,
    FinishChunk,
    ModelInfo,
    ModelRef,
    ModelRequest,
    ProviderError,
    TextChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.providers.faults.classify import provider_error
from agent_tui.tools.registry import default_toolbox
from tests.support.rows import each_row

MODEL = ModelRef("openai/small", "http://127.0.0.1:9/v1")
TOOLS = default_toolbox().specs
CALL = '<tool_call>{"name": "read", "arguments": {"path": "a.py"}}</tool_call>'
REQUEST = ModelRequest(MODEL, "Be brief.", (UserMessage(content="Read it."),), TOOLS)
PLAIN = ModelInfo(MODEL.name, 4_000, 500)


def provider(*replies: Reply, info: ModelInfo = PLAIN) -> tuple[AdaptingProvider, ScriptedProvider]:
    scripted = ScriptedProvider(replies)
    return AdaptingProvider(scripted, lambda _ref: info), scripted


async def asked(provider: AdaptingProvider, request: ModelRequest = REQUEST) -> list[Chunk]:
    chunks = [chunk async for chunk in provider.stream(request)]
    return [chunk for chunk in chunks if not isinstance(chunk, UsageChunk)]


async def test_other_models_are_left_alone() -> None:
    wrapped, scripted = provider(Reply(CALL))
    chunks = await asked(wrapped)
    assert scripted.requests == [REQUEST]
    assert "".join(c.text for c in chunks if isinstance(c, TextChunk)) == CALL


async def test_a_model_that_writes_calls_has_them_read() -> None:
    wrapped, scripted = provider(Reply(CALL), info=replace(PLAIN, writes_calls=True))
    call, end = await asked(wrapped)
    assert scripted.requests == [REQUEST]
    assert isinstance(call, ToolCallChunk)
    assert (call.name, end) == ("read", FinishChunk("toolUse"))


async def test_without_the_feature_a_call_stays_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.providers.access.own_features", tuple)
    wrapped, scripted = provider(Reply(CALL), info=replace(PLAIN, writes_calls=True))
    chunks = await asked(wrapped)
    assert scripted.requests == [REQUEST]
    assert "".join(c.text for c in chunks if isinstance(c, TextChunk)) == CALL


async def test_without_tools_nothing_is_read() -> None:
    wrapped, _ = provider(Reply(CALL), info=replace(PLAIN, writes_calls=True))
    assert (await asked(wrapped, replace(REQUEST, tools=())))[-1] == FinishChunk("stop")


async def test_a_model_without_tools_gets_them_in_the_prompt() -> None:
    wrapped, scripted = provider(Reply(CALL), info=replace(PLAIN, tool_style="text"))
    assert (await asked(wrapped))[-1] == FinishChunk("toolUse")
    (sent,) = scripted.requests
    assert sent.tools == ()
    assert sent.system.startswith("Be brief.\n\n# Tools")
    assert sent.grammar is None


async def test_a_grammar_is_used_where_the_server_takes_one() -> None:
    info = replace(PLAIN, tool_style="text", takes_grammar=True)
    wrapped, scripted = provider(Reply("Hi."), Reply("Hi."), info=info)
    await asked(wrapped)
    await asked(wrapped, replace(REQUEST, tools=()))
    with_tools, without = scripted.requests
    assert with_tools.grammar is not None
    assert with_tools.grammar.trigger == "<tool_call>"
    assert without.grammar is None
    assert without.system == "Be brief."


async def test_results_are_text_also_where_no_tools_are_offered() -> None:
    wrapped, scripted = provider(Reply("Hi."), info=replace(PLAIN, tool_style="text"))
    call = ToolCall(id="c1", name="read", arguments={"path": "a.py"})
    answer = ToolResultMessage(tool_call_id="c1", tool_name="read", content=())
    messages = (*REQUEST.messages, AssistantMessage(content=(call,)), answer)
    await asked(wrapped, replace(REQUEST, tools=(), messages=messages, purpose="summary"))
    assert [m.role for m in scripted.requests[0].messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize("role", ["user", "tool", "system"])
async def test_a_call_found_in_what_was_sent_is_not_run(role: str) -> None:
    wrapped, _ = provider(Reply(CALL), info=replace(PLAIN, writes_calls=True))
    content = (TextContent(text=f"1\t{CALL}"),)
    messages = {
        "user": (UserMessage(content=content),),
        "tool": (
            AssistantMessage(content=(ToolCall(id="c", name="ls", arguments={}),)),
            ToolResultMessage(tool_call_id="c", tool_name="ls", content=content),
        ),
        "system": REQUEST.messages,
    }[role]
    system = CALL if role == "system" else ""
    chunks = await asked(wrapped, replace(REQUEST, messages=messages, system=system))
    assert chunks[-1] == FinishChunk("stop")


async def test_what_the_model_wrote_itself_may_be_repeated() -> None:
    wrapped, _ = provider(Reply(CALL), info=replace(PLAIN, writes_calls=True))
    own = AssistantMessage(content=(TextContent(text=CALL),))
    chunks = await asked(wrapped, replace(REQUEST, messages=(own, *REQUEST.messages)))
    assert chunks[-1] == FinishChunk("toolUse")


REFUSALS: tuple[tuple[int, str], ...] = (
    (400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (500, "tools param requires --jinja flag"),
    (500, "Unsupported param: tools"),
    (400, "tools is not supported in this model. For a list of supported models, refer to x"),
    (405, "deepinfra error: Tool calling is not supported for model: mistralai/Mistral-Small"),
    (
        404,
        "No endpoints found that support tool use. To learn more about provider routing, visit x",
    ),
    (400, "No connected provider supports tool calling for this model."),
    (400, "`tool calling` is not supported with this model"),
    (400, "This model does not support function calling."),
    (400, "The model doesn't support tool use"),
    (422, "Function calling is not enabled for this model"),
    (400, "Unrecognized request argument supplied: tools"),
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    (500, "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."),
    (400, 'Error rendering prompt: "Only user and assistant roles are supported!"'),
    (400, "After the optional system message, conversation roles must alternate"),
    (400, "Unknown role: tool"),
)


def refusal(status: int, text: str) -> ProviderError:
    fault = Fault("BadRequestError", f"litellm.BadRequestError: OpenAIException - {text}", status)
    return provider_error(fault, MODEL)


@each_row(("status", "text"), REFUSALS)
async def test_a_model_that_refuses_tools_is_asked_again_without_and_remembered(
    status: int, text: str
) -> None:
    wrapped, scripted = provider(Reply(error=refusal(status, text)), Reply(CALL), Reply("Done."))
    assert (await asked(wrapped))[-1] == FinishChunk("toolUse")
    await asked(wrapped)
    assert [bool(request.tools) for request in scripted.requests] == [True, False, False]


@each_row(
    "text",
    [
        "messages: at least one message is required",
        "max_tokens is too large: 9000",
        "Invalid schema for function 'read': 'path' is not of type 'string'",
        "tool_call_id c1 not found in the tool_calls of the previous message",
        "image input is not supported",
        "response_format is not supported by this model",
    ],
)
async def test_other_refusals_are_passed_on(text: str) -> None:
    wrapped, scripted = provider(Reply(error=refusal(400, text)))
    with pytest.raises(ProviderError):
        await asked(wrapped)
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("kind", ["auth", "rate_limit", "quota", "network", "context_overflow"])
def test_errors_of_other_kinds_say_nothing_about_tools(kind: FaultKind) -> None:
    assert not refuses_tools(ProviderError(kind, "does not support tools"))


async def test_a_second_refusal_is_passed_on() -> None:
    error = refusal(400, "this model does not support tools")
    wrapped, scripted = provider(Reply(error=error), Reply(error=error))
    with pytest.raises(ProviderError):
        await asked(wrapped)
    assert len(scripted.requests) == 2


async def test_a_refusal_in_the_middle_of_a_reply_is_passed_on() -> None:
    wrapped, scripted = provider(Reply("Hm", error=refusal(400, "does not support tools")))
    with pytest.raises(ProviderError):
        await asked(wrapped)
    assert len(scripted.requests) == 1


async def test_closing_the_stream_closes_the_inner_one() -> None:
    wrapped, scripted = provider(
        Reply("Word after word. " * 20), info=replace(PLAIN, writes_calls=True)
    )
    stream = wrapped.stream(REQUEST)
    await anext(stream)
    await stream.aclose()
    assert scripted.closed_streams == 1


class Recording(ScriptedProvider):
    """Notes what it is told beside requests."""

    def __init__(self) -> None:
        super().__init__(())
        self.notes: list[str] = []
        self.prefilled: list[ModelRequest] = []

    async def warm(self, model: ModelRef) -> None:
        self.notes.append("warm")

    async def aclose(self) -> None:
        self.notes.append("aclose")

    async def prefill(self, request: ModelRequest) -> None:
        self.prefilled.append(request)


async def test_everything_else_is_passed_on() -> None:
    inner = Recording()
    wrapped = AdaptingProvider(inner, lambda _ref: replace(PLAIN, tool_style="text"))
    await wrapped.warm(ModelRef("x"))
    await wrapped.prefill(REQUEST)
    await wrapped.aclose()
    assert inner.notes == ["warm", "aclose"]
    assert inner.prefilled[0].tools == ()
    assert "# Tools" in inner.prefilled[0].system


async def test_what_the_inner_provider_cannot_do_is_left_undone() -> None:
    wrapped, scripted = provider()
    await wrapped.prefill(REQUEST)
    assert scripted.requests == []


async def test_a_wrapped_provider_is_still_one_generator_per_request() -> None:
    wrapped, _ = provider(Reply("Hi."))
    assert isinstance(wrapped.stream(REQUEST), AsyncGenerator)
