"""A server that refuses with a usage limit, in each protocol, until the limit resets."""

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agent_tui.events import LimitWaitStarted, TurnFinished
from agent_tui.providers.base import ModelRef
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.rate_limits import rate_limits
from tests.providers.protocols import EVENTS, TOKENS, Protocol, stream_of
from tests.support.openai_server import Failure, OpenAiServer
from tests.support.provider_process import LITELLMS
from tests.support.runtime import Stage, collect, of_kind, only
from tests.support.wall_clock import SleptClock

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOUR_S = 3_600.0
PLACE = "/limited"
LITELLM = replace(EVENTS["completions"], model=LITELLMS)


def refusal(body: Mapping[str, Any], **headers: str) -> Failure:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Failure(429, json.dumps(body), named)


def anthropic_subscription() -> Failure:
    error = {"type": "rate_limit_error", "message": "This request would exceed your limit."}
    reset = str(int(time.time() + 5 * HOUR_S))
    return refusal(
        {"type": "error", "error": error},
        anthropic_ratelimit_unified_status="rejected",
        anthropic_ratelimit_unified_reset=reset,
    )


def openai_limit() -> Failure:
    error = {"message": "Rate limit reached.", "type": "requests", "code": "rate_limit_exceeded"}
    return refusal(
        {"error": error},
        x_ratelimit_remaining_requests="0",
        x_ratelimit_reset_requests="5h0m0s",
        x_ratelimit_remaining_tokens="9",
        x_ratelimit_reset_tokens="99h",
    )


def chatgpt_subscription() -> Failure:
    error = {"type": "usage_limit_reached", "message": "The usage limit has been reached"}
    return refusal({"error": error | {"resets_in_seconds": int(5 * HOUR_S)}})


def gemini_quota() -> Failure:
    metadata = {"quotaResetDelay": "5h0m0.5s"}
    error = {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "metadata": metadata}],
    }
    return refusal({"error": error})


def hours_to_retry_after() -> Failure:
    return refusal({"error": {"message": "Slow down."}}, retry_after=str(int(5 * HOUR_S)))


def put(server: OpenAiServer, protocol: Protocol, answer: Failure) -> None:
    for path in (protocol.path, f"{protocol.path}?alt=sse"):
        server.pages[f"{PLACE}{path}"] = answer


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def clock() -> SleptClock:
    clock = SleptClock()
    clock.now_s = time.time()
    return clock


@pytest_asyncio.fixture(loop_scope="session")
async def fresh_server() -> AsyncIterator[OpenAiServer]:
    with OpenAiServer() as running:
        yield running


def subscription_headers(left: float) -> dict[str, str]:
    reset = str(int(time.time() + HOUR_S))
    return {
        "X-Codex-Primary-Used-Percent": str(100 * (1 - left)),
        "X-Codex-Primary-Window-Minutes": "300",
        "X-Codex-Primary-Reset-At": reset,
    }


@pytest.mark.parametrize(
    "protocol",
    [
        pytest.param(EVENTS["anthropic"], id="anthropic"),
        pytest.param(EVENTS["completions"], id="completions"),
        pytest.param(EVENTS["responses"], id="responses"),
        pytest.param(EVENTS["gemini"], id="gemini"),
        pytest.param(LITELLM, id="litellm"),
    ],
)
async def test_a_good_reply_says_what_is_left(
    stage: Stage, host: ProviderHost, fresh_server: OpenAiServer, protocol: Protocol
) -> None:
    address = f"http://127.0.0.1:{fresh_server.port}{PLACE}/v1"
    model = ModelRef(protocol.model, address, "THE_KEY")
    runtime = stage.runtime(host, model=model)
    answer = stream_of(protocol.events("Hi.", "r1", TOKENS))
    for left in (0.5, 0.25):
        put(fresh_server, protocol, replace(answer, headers=subscription_headers(left)))
        events = await collect(runtime.submit("hello"))
        assert only(events, TurnFinished).outcome == "done"
        (limit,) = rate_limits(host, model)
        assert (limit.name, limit.left) == ("5h", pytest.approx(left))
        assert limit.resets_at == pytest.approx(time.time() + HOUR_S, abs=60)
    put(fresh_server, protocol, answer)
    await collect(runtime.submit("hello"))
    assert len(rate_limits(host, model)) == 1, "what a reply does not mention stays"
    elsewhere = replace(model, base_url="http://127.0.0.1:1/v1")
    assert not rate_limits(host, elsewhere)
    await runtime.aclose()


@pytest.mark.parametrize(
    ("protocol", "refused"),
    [
        pytest.param(EVENTS["anthropic"], anthropic_subscription, id="anthropic"),
        pytest.param(EVENTS["completions"], openai_limit, id="completions"),
        pytest.param(EVENTS["responses"], chatgpt_subscription, id="responses"),
        pytest.param(EVENTS["gemini"], gemini_quota, id="gemini"),
        pytest.param(LITELLM, openai_limit, id="headers through litellm"),
        pytest.param(LITELLM, chatgpt_subscription, id="a body through litellm"),
        pytest.param(LITELLM, hours_to_retry_after, id="retry-after through litellm"),
    ],
)
async def test_the_turn_is_done_after_the_reset(
    stage: Stage,
    host: ProviderHost,
    fresh_server: OpenAiServer,
    clock: SleptClock,
    protocol: Protocol,
    refused: Callable[[], Failure],
) -> None:
    address = f"http://127.0.0.1:{fresh_server.port}{PLACE}/v1"
    model = ModelRef(protocol.model, address, "THE_KEY")
    runtime = stage.runtime(host, model=model, sleep=clock.sleep, limit_wait_h=12)
    runtime.services.wall_clock = clock.read
    put(fresh_server, protocol, refused())
    answer = stream_of(protocol.events("Hi.", "r1", TOKENS))
    clock.on_sleep = lambda: put(fresh_server, protocol, answer)
    events = await collect(runtime.submit("hello"))
    assert only(events, TurnFinished).outcome == "done"
    (wait,) = of_kind(events, LimitWaitStarted)
    assert wait.wait_s == pytest.approx(5 * HOUR_S, abs=60)
    assert wait.is_reset
    await runtime.aclose()
