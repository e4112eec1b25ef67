"""Tools for models that accept none in a request: in the prompt, with calls read from the text."""

import json
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import replace

import regex
from pydantic import JsonValue

from agent_tui.features.weak_models.forms import CALL_OBJECT, CALL_PLACE, TAG_OPENER
from agent_tui.features.weak_models.prompt import CALL_BEGIN, CALL_END, as_text, tool_prompt
from agent_tui.features.weak_models.provenance import SentTexts
from agent_tui.features.weak_models.reader import WrittenReply, read_calls
from agent_tui.features.weak_models.scan import CALL_FENCES
from agent_tui.messages import AssistantMessage, JsonObject, ToolSpec
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelInfo,
    ModelRef,
    ModelRequest,
    ProviderError,
    RestartChunk,
    TextChunk,
    ToolCallChunk,
    TriggeredGrammar,
)

_LOOK_BACK_CHARS = 4
"""How many characters before a place decide whether a call may begin there."""

_FENCES = "|".join(sorted(CALL_FENCES, key=len, reverse=True))
_MAY_BE_CALL = regex.compile(
    rf"""
    {TAG_OPENER}
  | {CALL_PLACE}(?:{CALL_OBJECT})
  | ^[ ]{{0,3}} (?:`{{3,}}|~{{3,}}) [ ]*(?:{_FENCES})[^\S\n]*\n \s*+ (?:{CALL_OBJECT}|{TAG_OPENER})
    """,
    regex.X | regex.I | regex.M,
)
"""Finds every place where `scan` may find a call, and some where it will not."""


class CallFilter:
    """Shows a reply's text as it arrives, up to where a call may begin.

    However the text is split into pieces, the text shown in total is what `read_calls` leaves of
    the whole. White space is held back until something follows it, as it may precede a call.
    """

    def __init__(self, tools: Sequence[ToolSpec], sent: SentTexts) -> None:
        self._tools = tools
        self._sent = sent
        self._pieces: list[str] = []
        self._shown_chars = 0
        self._blank: list[str] = []
        self._tail = ""
        self._cleared = 0
        self._is_holding = False
        self._is_over = False

    def feed(self, text: str) -> str:
        """Take in the next piece; returns the text that may be shown now."""
        if self._is_over:
            return text
        self._pieces.append(text)
        if self._is_holding:
            return ""
        tail = self._tail + text
        found = _MAY_BE_CALL.search(tail, pos=self._cleared, partial=True)
        self._is_holding = found is not None and not found.partial
        end = found.start() if found else len(tail)
        shown = self._without_blank_end(tail[self._cleared : end])
        begin = max(end - _LOOK_BACK_CHARS, 0)
        self._tail, self._cleared = tail[begin:], end - begin
        return shown

    def finish(self) -> WrittenReply:
        """The reply is complete: returns the text not shown yet, and all its calls."""
        if self._is_over:
            return WrittenReply("")
        self._is_over = True
        whole = "".join(self._pieces)
        reply = read_calls(whole, self._tools, self._sent)
        shown = whole[: self._shown_chars]
        if reply.calls and reply.text.startswith(shown):
            return WrittenReply(reply.text[len(shown) :], reply.calls)
        return WrittenReply(whole[len(shown) :], refused=reply.refused)

    def give_up(self) -> str:
        """Return the held text; everything after it passes unchanged."""
        if self._is_over:
            return ""
        self._is_over = True
        return "".join(self._pieces)[self._shown_chars :]

    def _without_blank_end(self, text: str) -> str:
        """`text` with the held white space before it, and without white space at its end."""
        body = text.rstrip()
        if not body:
            self._blank.append(text)
            return ""
        shown = "".join([*self._blank, body])
        self._blank = [text[len(body) :]]
        self._shown_chars += len(shown)
        return shown


async def filter_calls(
    chunks: AsyncIterator[Chunk], tools: Sequence[ToolSpec], sent: SentTexts
) -> AsyncGenerator[Chunk, None]:
    """`chunks`, with the tool calls in their text turned into calls.

    If the server itself reports calls, the text is left alone. A reply cut by its length ends like
    any other if there are calls, since only complete calls are read. A call that was meant but is
    unreadable is passed on as written: it is not JSON, so the model gets an error that it can
    correct, as for a broken call in the request format.

    Raises:
        ProviderError: As `chunks` does; held text is yielded first.
    """
    held = CallFilter(tools, sent)
    try:
        async for chunk in chunks:
            if isinstance(chunk, RestartChunk):
                held = CallFilter(tools, sent)
            for piece in _chunks_to_pass_on(chunk, held):
                yield piece
    except ProviderError:
        for piece in _as_chunks(held.give_up()):
            yield piece
        raise
    for piece in _as_chunks(held.give_up()):
        yield piece


def _chunks_to_pass_on(chunk: Chunk, held: CallFilter) -> list[Chunk]:
    """The chunks to pass on for `chunk`: none, itself, or held text before it."""
    match chunk:
        case TextChunk(text):
            return _as_chunks(held.feed(text))
        case ToolCallChunk() | FinishChunk("contentFilter"):
            return [*_as_chunks(held.give_up()), chunk]
        case FinishChunk(reason):
            rest = held.finish()
            is_cut = rest.refused is not None and reason == "length"
            has_calls = bool(rest.calls or rest.refused)
            return [*_pieces(rest), FinishChunk("toolUse") if has_calls and not is_cut else chunk]
        case _:
            return [chunk]


def _as_chunks(text: str) -> list[Chunk]:
    return [TextChunk(text)] if text else []


def _pieces(rest: WrittenReply) -> list[Chunk]:
    pieces = _as_chunks(rest.text)
    calls = [(call.name, json.dumps(call.arguments), "") for call in rest.calls]
    if refused := rest.refused:
        calls.append((refused.name, refused.written, refused.problem))
    for index, (name, arguments, problem) in enumerate(calls):
        call_id = f"call_{secrets.token_hex(12)}"
        pieces.append(ToolCallChunk(index, call_id, name, arguments, problem))
    return pieces


_SHARED_RULES = r"""
ws ::= [ \t\n]{0,20}
string ::= "\"" ( [^"\\\x00-\x1f] | "\\" ( ["\\/bfnrt] | "u" [0-9a-fA-F]{4} ) )* "\""
integer ::= "-"? ( "0" | [1-9] [0-9]{0,17} )
number ::= integer ( "." [0-9]{1,22} )? ( [eE] [-+]? [0-9]{1,3} )?
boolean ::= "true" | "false"
null ::= "null"
value ::= object | array | string | number | boolean | null
object ::= "{" ws ( string ws ":" ws value ws ( "," ws string ws ":" ws value ws )* )? "}"
array ::= "[" ws ( value ws ( "," ws value ws )* )? "]"
"""
"""JSON (RFC 8259), with limits on white space and digits, where weak models get stuck."""

_SIMPLE_TYPES = frozenset({"string", "integer", "number", "boolean", "null"})


def call_grammar(tools: Sequence[ToolSpec]) -> TriggeredGrammar:
    """The grammar of one call of one of `tools`, from ``<tool_call>`` on.

    Properties come in the order of the schema, optional ones may be left out; an unknown kind of
    schema accepts any JSON value. After the call the reply must end.
    """
    rules = _Rules()
    calls = [
        f'"{{" ws {_literal("name")} ws ":" ws {_literal(tool.name)} ws "," ws '
        f'{_literal("arguments")} ws ":" ws {rules.rule_for(tool.parameters, tool.name)} ws "}}"'
        for tool in tools
    ]
    root = f"root ::= {_quote(CALL_BEGIN)} ws ( {' | '.join(calls)} ) ws {_quote(CALL_END)}"
    return TriggeredGrammar("\n".join([root, *rules.lines]) + _SHARED_RULES, CALL_BEGIN)


class _Rules:
    """Collects the rules of schemas, each under a unique name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: set[str] = set()

    def rule_for(self, schema: JsonValue, hint: str) -> str:
        """The name of the rule for `schema`, derived from `hint` if a new one is needed."""
        if not isinstance(schema, dict):
            return "value"
        choices, kind = schema.get("enum"), schema.get("type")
        if isinstance(choices, list) and choices:
            return self._add(hint, " | ".join(_literal(choice) for choice in choices))
        if isinstance(kind, str) and kind in _SIMPLE_TYPES:
            return kind
        if kind == "array":
            item = self.rule_for(schema.get("items"), f"{hint}-item")
            return self._add(hint, f'"[" ws ( {item} ws ( "," ws {item} ws )* )? "]"')
        if kind == "object" and isinstance(schema.get("properties"), dict):
            return self._object(schema, hint)
        return "object" if kind == "object" else "value"

    def _object(self, schema: JsonObject, hint: str) -> str:
        """An object: for each property, a rule for it and all after it, with or without comma."""
        properties, required = schema.get("properties"), schema.get("required")
        members = list(properties.items()) if isinstance(properties, dict) else []
        needed = required if isinstance(required, list) else []
        first = following = '""'
        for name, value in reversed(members):
            rule = self.rule_for(value, f"{hint}-{name}")
            member = f'{_literal(name)} ws ":" ws {rule} ws {following}'
            is_optional = name not in needed
            first_choices = [member, first] if is_optional else [member]
            next_choices = [f'"," ws {member}', *([following] if is_optional else [])]
            first = self._add(f"{hint}-{name}-first", " | ".join(first_choices))
            following = self._add(f"{hint}-{name}-next", " | ".join(next_choices))
        return self._add(hint, f'"{{" ws {first} "}}"')

    def _add(self, hint: str, body: str) -> str:
        base = "t-" + re.sub(r"[^a-zA-Z0-9]+", "-", hint).strip("-")
        name, count = base, 1
        while name in self._names:
            count += 1
            name = f"{base}-{count}"
        self._names.add(name)
        self.lines.append(f"{name} ::= {body}")
        return name


def _literal(value: JsonValue) -> str:
    """`value` as JSON, as a literal of the grammar."""
    return _quote(json.dumps(value))


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


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

    def read(
        self, request: ModelRequest, chunks: AsyncGenerator[Chunk, None]
    ) -> AsyncGenerator[Chunk, None]:
        """`chunks`, the reply to the original `request`, with written calls turned into calls."""
        writes_calls = self._is_text(request.model) or self._info(request.model).writes_calls
        if not (request.tools and writes_calls):
            return chunks
        return filter_calls(chunks, request.tools, SentTexts(_texts_sent_in(request)))

    def _is_text(self, model: ModelRef) -> bool:
        return model in self._without_tools or self._info(model).tool_style == "text"


def refuses_tools(error: ProviderError) -> bool:
    """Whether a server refused a request because of its tools."""
    kinds = ("bad_request", "server", "not_found")  # llama.cpp says 500, OpenRouter 404
    return error.kind in kinds and _TAKES_NO_TOOLS.search(error.detail) is not None


def _texts_sent_in(request: ModelRequest) -> tuple[str, ...]:
    """Everything in `request` that the model did not write."""
    messages = (m for m in request.messages if not isinstance(m, AssistantMessage))
    return (request.system, *(message.text for message in messages))
