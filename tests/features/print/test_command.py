"""Runs without a screen that are stopped from outside."""

import asyncio
import signal

import pytest

from agent_tui.features.print import command
from agent_tui.features.print.answer_schema import TimeLimit
from agent_tui.features.print.printer import ExitCode


async def _hang() -> ExitCode:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, None])
async def test_what_does_not_heed_a_stop_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals | None
):
    monkeypatch.setattr(command, "_STOP_WITHIN_S", 0)
    loop, stops, limit = asyncio.get_running_loop(), list[None](), TimeLimit(600)
    ends_at = loop.time() + 600
    if number is None:
        ends_at = loop.time()
    else:
        loop.call_soon(signal.raise_signal, number)
    code = await command._until_stopped(_hang(), lambda: stops.append(None), limit, ends_at)
    assert code == (ExitCode.TIMEOUT if number is None else ExitCode.INTERRUPTED)
    assert stops
