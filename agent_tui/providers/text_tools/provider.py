"""Tools for models that take none in the request, or write their calls as text."""

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from agent_tui.messages import AssistantMessage
from agent_tui.providers.base import (
    Chunk,
    ModelInfo,
    ModelRef,
    ModelRequest,
    PrefillingProvider,
    Provider,
    ProviderError,
)
from agent_tui.providers.text_tools.grammar import call_grammar
from agent_tui.providers.text_tools.prompt import as_text, tool_prompt
from agent_tui.providers.text_tools.provenance import SentTexts

_TAKES_NO_TOOLS = re.compile(
    r"""
    \btool(?:s|[ _]calling|[ _]calls?|[ _]use|[ _]choice)?\b [^.]{0,60}
        (?:not[ ]supported|unsupported|not[ ]available|not[ ]enabled|is[ ]not[ ]allowed)
  | (?:not|n't|unable[ ]to|cannot)[ ]support[^.]{0,40}\b(?:tools?|functions?|function[ _]call)
  | \bno[ ](?:endpoints?|providers?|connected[ ]provider)[^.]{0,40}
        \b(?:support|supports)[ ](?:the[ ]use[ ]of[ ])?(?:tool|function)
  | (?:unsupported|unknown|unrecognized|unexpected|extra)[ ](?:request[ ])?
        (?:param|parameter|argument|field|key|property)s?\b [^.]{0,40}\btools?\b
  | \btools?\b[^.]{0,40}requires?[ ]--jinja | --enable-auto-tool-choice | --tool-call-parser
  | function[ _]call(?:s|ing)?[^.]{0,40}(?:not[ ](?:supported|enabled|available)|unsupported)
  | roles?[ ]must[ ]alternate | only[ ]user[ ](?:and|or)[ ]assistant[ ]roles
  | (?:unexpected|unknown|invalid|unsupported)[ ](?:message[ ])?role\b[^.]{0,20}\btool\b
  | \brole\b[^.]{0,10}\btool\b[^.]{0,30}not[ ]supported
    """,
    re.X | re.I,
)
"""What servers say of a request with tools, or of the messages that come with them.

Wordings of Ollama, vLLM, llama.cpp, LM Studio, text-generation-inference, OpenRouter, OpenAI,
DeepInfra, Groq, and of the templates of Gemma and Mistral.
"""


class TextToolProvider:
    """Passes requests on in the form the model understands, and reads its calls.

    A model known to take no tools in a request (`ModelInfo.tool_style` "text") gets them in the
    prompt. So does one whose server refuses them: that is remembered, and the request made anew.

    Args:
        inner: Where requests go.
        info: What is known of a model.
    """

    def __init__(self, inner: Provider, info: Callable[[ModelRef], ModelInfo]) -> None:
        self._inner = inner
        self._info = info
        self._without_tools: set[ModelRef] = set()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`.

        Raises:
            ProviderError: the request failed, or the stream broke off.
        """
        was_native = not self._is_text(request.model)
        has_begun = False
        try:
            async with aclosing(self._attempt(request)) as chunks:
                async for chunk in chunks:
                    has_begun = True
                    yield chunk
            return
        except ProviderError as error:
            if has_begun or not was_native or not refuses_tools(error):
                raise
        self._without_tools.add(request.model)
        async with aclosing(self._attempt(request)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def prefill(self, request: ModelRequest) -> None:
        """Let a provider that can get ready for `request`; does nothing for others."""
        if isinstance(self._inner, PrefillingProvider):
            await self._inner.prefill(self._rewritten(request))

    async def warm(self, model: ModelRef) -> None:
        """See `Provider.warm`."""
        await self._inner.warm(model)

    async def aclose(self) -> None:
        """See `Provider.aclose`."""
        await self._inner.aclose()

    async def _attempt(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        async with aclosing(self._inner.stream(self._rewritten(request))) as chunks:
            if not self._reads_calls(request):
                async for chunk in chunks:
                    yield chunk
                return
            # Only models that write calls need it and the package that it imports.
            from agent_tui.providers.text_tools.stream import filter_calls

            sent = SentTexts(_sent_texts(request))
            async with aclosing(filter_calls(chunks, request.tools, sent)) as filtered:
                async for chunk in filtered:
                    yield chunk

    def _is_text(self, model: ModelRef) -> bool:
        return model in self._without_tools or self._info(model).tool_style == "text"

    def _reads_calls(self, request: ModelRequest) -> bool:
        if not request.tools:
            return False
        return self._is_text(request.model) or self._info(request.model).writes_calls

    def _rewritten(self, request: ModelRequest) -> ModelRequest:
        """`request` for a model without tools; as it is for others."""
        if not self._is_text(request.model):
            return request
        messages = as_text(request.messages)
        if not request.tools:
            return replace(request, messages=messages)
        system = "\n\n".join(part for part in (request.system, tool_prompt(request.tools)) if part)
        grammar = request.grammar
        if grammar is None and self._info(request.model).takes_grammar:
            grammar = call_grammar(request.tools)
        return replace(request, system=system, messages=messages, tools=(), grammar=grammar)


def refuses_tools(error: ProviderError) -> bool:
    """Whether a server refused a request because of its tools."""
    kinds = ("bad_request", "server", "not_found")  # llama.cpp says 500, OpenRouter 404
    return error.kind in kinds and _TAKES_NO_TOOLS.search(error.detail) is not None


def _sent_texts(request: ModelRequest) -> tuple[str, ...]:
    """Everything in `request` that the model did not write."""
    messages = (m for m in request.messages if not isinstance(m, AssistantMessage))
    return (request.system, *(message.text for message in messages))
