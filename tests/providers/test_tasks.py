"""Tasks of several steps with reasoning, as the strictest service would read each request."""

import json
from contextlib import aclosing
from itertools import permutations
from typing import Any

import pytest

from agent_tui.agent.turn.reply import ReplyBuilder
from agent_tui.messages import Message, TextContent, ToolResultMessage, UserMessage
from agent_tui.providers.base import ModelRef, ModelRequest
from agent_tui.providers.host import ProviderHost
from tests.providers.requests import READ
from tests.support.openai_server import Failure, OpenAiServer
from tests.support.strict_services import MAGISTRAL, SERVICES, StrictService

pytestmark = pytest.mark.asyncio(loop_scope="session")

_STEPS = 5


class Task:
    """A conversation that takes one step after another, with whatever service is asked."""

    def __init__(self, host: ProviderHost, server: OpenAiServer) -> None:
        self._host = host
        self._server = server
        self._messages: list[Message] = [UserMessage(content="Do it.")]
        self._ids: set[str] = set()
        self.steps: list[StrictService] = []

    async def step(self, service: StrictService) -> dict[str, Any]:
        """Ask `service` for the next step and answer its call; gives the request's body."""
        number = len(self.steps)
        body = service.stream(number)
        self._server.pages[service.path] = Failure(200, body, content_type="text/event-stream")
        model = ModelRef(service.model, self._server.base_url, "THE_KEY")
        request = ModelRequest(
            model, "Be brief.", tuple(self._messages), (READ,), 20_000, "medium", cache_key="s"
        )
        builder = ReplyBuilder(model.provider, model.model_id, frozenset(self._ids))
        async with aclosing(self._host.stream(request)) as chunks:
            async for chunk in chunks:
                builder.add(chunk)
        reply = builder.build().message
        (call,) = reply.tool_calls
        self._ids.add(call.id)
        result = ToolResultMessage(
            tool_call_id=call.id, tool_name="read", content=(TextContent(text=f"{number}"),)
        )
        self._messages += [reply, result]
        self.steps.append(service)
        return self._server.requests[-1].body


def own_replies(service: StrictService, body: dict[str, Any], steps: list[StrictService]) -> Any:
    """Of the replies in a request those of `service`, which come in the order of the steps."""
    replies = service.replies(body)
    assert len(replies) == len(steps)
    return [reply for reply, by in zip(replies, steps, strict=True) if by is service]


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.model)
async def test_each_request_of_a_task_holds_what_the_service_gave_as_it_gave_it(
    host: ProviderHost, server: OpenAiServer, service: StrictService
) -> None:
    task = Task(host, server)
    bodies = [await task.step(service) for _ in range(_STEPS)]
    for number, body in enumerate(bodies):
        assert service.replies(body) == [service.given(step) for step in range(number)]


@pytest.mark.parametrize(
    ("first", "second"), permutations(SERVICES, 2), ids=lambda service: service.model
)
async def test_after_a_change_of_model_each_gets_its_own_reasoning_and_no_other(
    host: ProviderHost, server: OpenAiServer, first: StrictService, second: StrictService
) -> None:
    task = Task(host, server)
    for service in (first, first, second, second, first, second):
        steps = list(task.steps)
        body = await task.step(service)
        given = [service.given(step) for step, by in enumerate(steps) if by is service]
        assert own_replies(service, body, steps) == given
        written = json.dumps(body)
        seals = [by.sealed(step) for step, by in enumerate(steps) if by is not service]
        assert not [seal for seal in seals if seal in written]
        if service is MAGISTRAL:
            ids = [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"]
            assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)
