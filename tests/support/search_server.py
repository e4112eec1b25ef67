"""A server on loopback that searches the web, as the providers' public references describe it.

It answers Anthropic's messages, OpenAI's and xAI's responses, Gemini's streams, OpenRouter's
completions and SearXNG's queries, and refuses a search tool that the reference does not have.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tests.support.loopback import LoopbackServer, QuietHandler

PAGE: Final = "https://docs.example.org/new"
OTHER: Final = "https://blog.example.org/2"
TITLE: Final = "What is new"
ANSWER: Final = "Version 3 is out."

Events = list[dict[str, Any]]


def anthropic_events(*, error_code: str = "") -> Events:
    """A search, and text that cites the first of two results."""
    pages = [{"type": "web_search_result", "url": url, "title": TITLE} for url in (OTHER, PAGE)]
    error = {"type": "web_search_tool_result_error", "error_code": error_code}
    result = {"type": "web_search_tool_result", "content": error if error_code else pages}
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    cited = {"type": "web_search_result_location", "url": PAGE, "title": TITLE}
    usage = {"output_tokens": 7, "server_tool_use": {"web_search_requests": 1}}
    return [
        {"type": "message_start", "message": {"usage": {"input_tokens": 100, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": use},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": result},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
        _delta(2, {"type": "text_delta", "text": ANSWER}),
        _delta(2, {"type": "citations_delta", "citation": cited}),
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def responses_events(**usage: int) -> Events:
    """A search with its sources, and text with an annotation."""
    action = {"type": "search", "query": "q", "sources": [{"type": "url", "url": OTHER}]}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action}
    cited = {"type": "url_citation", "url": PAGE, "title": TITLE, "start_index": 0, "end_index": 7}
    text = {"type": "output_text", "text": ANSWER, "annotations": [cited]}
    message = {"type": "message", "id": "msg_1", "content": [text]}
    counts = {"input_tokens": 100, "output_tokens": 7, **usage}
    return [
        {"type": "response.created", "response": {}},
        {"type": "response.output_item.done", "output_index": 0, "item": search},
        {"type": "response.output_text.delta", "output_index": 1, "delta": ANSWER},
        {"type": "response.output_text.annotation.added", "output_index": 1, "annotation": cited},
        {"type": "response.output_item.done", "output_index": 1, "item": message},
        {"type": "response.completed", "response": {"status": "completed", "usage": counts}},
    ]


def gemini_events() -> Events:
    """Text, then what it is grounded on."""
    grounding = {
        "webSearchQueries": ["new version", "version 3"],
        "groundingChunks": [{"web": {"uri": url, "title": TITLE}} for url in (OTHER, PAGE)],
        "groundingSupports": [
            {"segment": {"endIndex": len(ANSWER)}, "groundingChunkIndices": [1]},
        ],
    }
    content = {"role": "model", "parts": [{"text": ANSWER}]}
    last = {"content": {"parts": []}, "finishReason": "STOP", "groundingMetadata": grounding}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 7}
    return [
        {"candidates": [{"content": content, "groundingMetadata": {}}]},
        {"candidates": [last], "usageMetadata": usage},
    ]


def openrouter_events() -> Events:
    """Annotations beside the text, and the bill at the end."""
    cited = [{"type": "url_citation", "url_citation": {"url": PAGE, "title": TITLE}}]
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "cost": 0.0125,
        "server_tool_use_details": {"web_search_requests": 1},
    }
    return [
        {"id": "gen-1", "choices": [{"delta": {"role": "assistant", "annotations": cited}}]},
        {"id": "gen-1", "choices": [{"delta": {"content": ANSWER}}]},
        {"id": "gen-1", "choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage},
    ]


SEARXNG: Final[Mapping[str, Any]] = {
    "query": "q",
    "results": [
        {"url": PAGE, "title": TITLE, "content": "Version 3\nis out.", "engine": "a", "score": 2.0},
        {"url": OTHER, "title": "", "content": ""},
        {"url": "javascript:alert(1)", "title": "no page"},
    ],
    "answers": [{"answer": "3", "url": PAGE}],
    "unresponsive_engines": [],
}

_TOOLS: Final = (
    ("/v1/messages", {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}),
    ("/responses", {"type": "web_search"}),
    (":streamGenerateContent", {"google_search": {}}),
    ("/chat/completions", {"type": "openrouter:web_search", "parameters": {"max_uses": 5}}),
)


class SearchServer(LoopbackServer):
    """Answers each request with `events`, or with `refusal`; keeps what it was sent.

    Attributes:
        events: Makes the events of the next answers from a request's body.
        refusal: A status and the body of an answer to all requests.
        searx: What SearXNG's address answers.
        bodies: The requests' bodies.
        asked: The paths that were requested.
    """

    def __init__(self, events: Callable[[dict[str, Any]], Events] | None = None) -> None:
        self.events = events or (lambda _body: anthropic_events())
        self.refusal: tuple[int, dict[str, Any]] | None = None
        self.searx: Any = dict(SEARXNG)
        self.bodies: list[dict[str, Any]] = []
        self.asked: list[str] = []
        outer = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.asked.append(self.path)
                outer.bodies.append(body)
                if outer.refusal is not None:
                    self._answer(*outer.refusal)
                elif any(_is_hosted(tool) for tool in body.get("tools", ())) and not _is_known(
                    self.path, body["tools"]
                ):
                    self._answer(400, {"error": {"message": "tools.0: unknown tool"}})
                else:
                    self._stream(outer.events(body))

            def do_GET(self) -> None:
                outer.asked.append(self.path)
                status, answer = outer.refusal or (200, outer.searx)
                self._answer(status, answer)

            def _stream(self, events: Iterable[dict[str, Any]]) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for event in events:
                    self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())

            def _answer(self, status: int, answer: object) -> None:
                data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        super().__init__(Handler)


def _is_hosted(tool: dict[str, Any]) -> bool:
    """Whether the provider itself runs a tool."""
    return not tool.keys() & {"input_schema", "parametersJsonSchema", "functionDeclarations"} and (
        tool.get("type") != "function"
    )


def _is_known(path: str, tools: list[dict[str, Any]]) -> bool:
    place = path.partition("?")[0]
    return any(place.endswith(end) and tools == [tool] for end, tool in _TOOLS)
