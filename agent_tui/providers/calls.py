"""Telling the tool calls of one reply apart, whatever the server numbers them."""

import json
from dataclasses import dataclass, field

from agent_tui.providers.base import ToolCallChunk


@dataclass(slots=True)
class _OpenCall:
    index: int
    id: str
    pieces: list[str] = field(default_factory=list[str])


class CallSplitter:
    """Gives every call an index of its own.

    Some servers send several calls under one index (Gemini's compatible endpoint, old
    llama.cpp); taken as one, their arguments would run together. A new call is known by a new
    id with a name or, where no ids are sent, by a name after complete arguments.
    """

    def __init__(self) -> None:
        self._open: dict[int, _OpenCall] = {}
        self._count = 0

    def piece(self, server_index: int, call_id: str, name: str, arguments: str) -> ToolCallChunk:
        """The chunk for one piece of a call as the server sent it; missing parts are empty."""
        call = self._open.get(server_index)
        if call is None or _starts_another(call, call_id, name):
            call = _OpenCall(self._count, call_id)
            self._open[server_index] = call
            self._count += 1
            first = ToolCallChunk(call.index, call_id, name, arguments)
        else:
            first = ToolCallChunk(call.index, "", "" if call.pieces else name, arguments)
        if arguments:
            call.pieces.append(arguments)
        return first


def _starts_another(call: _OpenCall, call_id: str, name: str) -> bool:
    if not name:
        return False
    if call_id:
        return call_id != call.id
    return _is_complete("".join(call.pieces))


def _is_complete(arguments: str) -> bool:
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return True
