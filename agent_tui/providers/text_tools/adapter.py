"""Tools for models that do not accept them in a request, or write their calls as text."""

import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

from agent_tui.messages import AssistantMessage
from agent_tui.providers.base import Chunk, ModelInfo, ModelRef, ModelRequest, ProviderError
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
"""What servers say about a request with tools, or about its tool messages.

Wordings of Ollama, vLLM, llama.cpp, LM Studio, text-generation-inference, OpenRouter, OpenAI,
DeepInfra, Groq, and of the templates of Gemma and Mistral.
"""


class TextTools:
    """Puts the tools into the prompt for models that accept none in a request; reads their calls.

    Such a model is known (`ModelInfo.tool_style` "text"), or its server refused a request because
    of its tools, which is remembered.

    Args:
        info: Returns what is known of a model.
    """

    def __init__(self, info: Callable[[ModelRef], ModelInfo]) -> None:
        self._info = info
        self._without_tools: set[ModelRef] = set()

    def adapt(self, request: ModelRequest) -> ModelRequest:
        """`request` with everything about tools as text, if its model accepts none."""
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

    def learn(self, sent: ModelRequest, error: ProviderError) -> bool:
        """Whether `sent` was refused because of its tools."""
        if self._is_text(sent.model) or not refuses_tools(error):
            return False
        self._without_tools.add(sent.model)
        return True

    def read_calls(
        self, request: ModelRequest, chunks: AsyncGenerator[Chunk, None]
    ) -> AsyncGenerator[Chunk, None]:
        """`chunks`, the reply to the original `request`, with written calls turned into calls."""
        writes_calls = self._is_text(request.model) or self._info(request.model).writes_calls
        if not (request.tools and writes_calls):
            return chunks
        # Only models that write calls need it and the package it imports.
        from agent_tui.providers.text_tools.stream import filter_calls

        return filter_calls(chunks, request.tools, SentTexts(_sent_texts(request)))

    def _is_text(self, model: ModelRef) -> bool:
        return model in self._without_tools or self._info(model).tool_style == "text"


def refuses_tools(error: ProviderError) -> bool:
    """Whether a server refused a request because of its tools."""
    kinds = ("bad_request", "server", "not_found")  # llama.cpp says 500, OpenRouter 404
    return error.kind in kinds and _TAKES_NO_TOOLS.search(error.detail) is not None


def _sent_texts(request: ModelRequest) -> tuple[str, ...]:
    """Everything in `request` that the model did not write."""
    messages = (m for m in request.messages if not isinstance(m, AssistantMessage))
    return (request.system, *(message.text for message in messages))
