"""A scripted compression agent that does its work on any session, from what it is shown."""

import re

from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import AssistantMessage, ToolCall
from agent_tui.providers.base import ModelRequest
from tests.features.strategies.agent.scene import segment, shorten, verify

_SEGMENTS_A_ROUND = 12
_LISTED = re.compile(r"^(\d+)(?:-(\d+))? [\d,]+ [\d,]+ \"", re.MULTILINE)
_SHOWN = re.compile(r"^Messages (\d+)(?:-(\d+))? \([\d,]+ tokens\), quoted:", re.MULTILINE)
_ACCOUNT = (
    "In messages {first} to {last} the work went on as the person had asked for: what was needed "
    "was looked up, changes were made and tried out, and the outcome was told in the end. "
    "Nothing of it is open any more, and what was found there is used in what follows."
)


def diligent_reply(request: ModelRequest) -> Reply:
    """First results are made short, then segments are read and replaced, the oldest first."""
    status, *rest = request.messages
    if not any(isinstance(message, AssistantMessage) for message in rest):
        return Reply(tool_calls=(shorten("1-99999"), verify()))
    shown = [found for message in rest for found in _SHOWN.findall(message.text)]
    if shown:
        return _calls([_replacing(int(first), int(last or first)) for first, last in shown])
    _, _, segments = status.text.partition("\nSegments, ")
    listed = _LISTED.findall(segments)[:_SEGMENTS_A_ROUND]
    return _calls([segment(int(first), int(last or first)) for first, last in listed])


def _replacing(first: int, last: int) -> ToolCall:
    return segment(first, last, _ACCOUNT.format(first=first, last=last))


def _calls(calls: list[ToolCall]) -> Reply:
    named = [call.model_copy(update={"id": f"s{n}"}) for n, call in enumerate(calls)]
    return Reply(tool_calls=(*named, verify()))
