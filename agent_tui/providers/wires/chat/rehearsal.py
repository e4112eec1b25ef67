"""A request that goes nowhere, so that the first real one waits for nothing."""

import contextlib
import socket

from agent_tui.messages import JsonObject
from agent_tui.providers.wires.base import DUMMY_KEY
from agent_tui.providers.wires.litellm_module import LiteLlm


async def rehearse(litellm: LiteLlm) -> None:
    """A mock request with tools, so that the first real one finds everything imported.

    Then one to a port of this machine where nobody listens: it sets up the HTTP client and
    its certificates, half a second of the first request, and fails at once.
    """
    tool: JsonObject = {
        "type": "function",
        "function": {
            "name": "noop",
            "description": "Does nothing.",
            "parameters": {"type": "object", "properties": {}},
        },
    }
    arguments: dict[str, object] = {
        "model": "openai/rehearsal",
        "api_key": DUMMY_KEY,
        "messages": [{"role": "user", "content": "rehearsal"}],
        "tools": [tool],
        "stream": True,
        "max_retries": 0,
    }
    async for _ in await litellm.acompletion(**arguments, mock_response="ready"):
        pass
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listened on: every connection is refused
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with contextlib.suppress(Exception):
            await litellm.acompletion(**arguments, api_base=nobody)
