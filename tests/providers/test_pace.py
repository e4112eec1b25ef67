"""When a fast reply lets others have the event loop, by a clock that the test sets."""

import asyncio
from types import SimpleNamespace

import pytest

from agent_tui.providers.transport import serving


class Loop:
    """A loop that turns only in a pause; others use `others_s` of each turn."""

    def __init__(self, others_s: float) -> None:
        self.now, self.others_s, self.pauses = 0.0, others_s, list[float]()

    def time(self) -> float:
        return self.now

    def call_soon(self, _call: object) -> object:
        return object()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += max(seconds, self.others_s)


@pytest.mark.parametrize(
    ("work_s", "others_s", "pauses"),
    [
        pytest.param(0.0005, 0.01, [], id="too little work to pause"),
        pytest.param(0.005, 0.00003, [0], id="nobody else has work"),
        pytest.param(0.005, 0.002, [0, 0.001], id="a key is being drawn"),
    ],
)
async def test_a_fast_reply_rests_only_while_others_have_work(
    monkeypatch: pytest.MonkeyPatch, work_s: float, others_s: float, pauses: list[float]
):
    loop = Loop(others_s)
    fake = SimpleNamespace(get_running_loop=lambda: loop, sleep=loop.sleep, Handle=asyncio.Handle)
    monkeypatch.setattr(serving, "asyncio", fake)
    pace = serving._Pace()
    await pace.keep()
    loop.now += work_s
    await pace.keep()
    assert loop.pauses == pauses
