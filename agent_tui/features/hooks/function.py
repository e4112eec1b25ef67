"""Runs hooks that are functions of plugins: they read and answer what commands do."""

import asyncio
import inspect
import json
import threading
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import cast

from agent_tui.agent.hook import HookFunction
from agent_tui.features.hooks.answer import HookRun
from agent_tui.messages import JsonObject


async def run_function(function: HookFunction, given: str, timeout_s: float) -> HookRun:
    """Run `function`; never raises for what it does.

    Args:
        function: Of a plugin.
        given: What a command would read.
        timeout_s: When it is stopped, or its thread left alone.
    """
    call = asyncio.create_task(_ran(function, cast(JsonObject, json.loads(given))))
    try:
        await asyncio.wait((call,), timeout=timeout_s)
        if not call.done():
            return HookRun(problem=f"timed out after {timeout_s:g} s")
        return HookRun(problem="it cancelled itself") if call.cancelled() else call.result()
    finally:
        call.cancel()


async def _ran(function: HookFunction, facts: JsonObject) -> HookRun:
    try:
        if inspect.iscoroutinefunction(function):
            said = await cast("Awaitable[object]", function(facts))
        else:
            said = await _in_thread(function, facts)
        if not isinstance(said, str | Mapping | None):
            raise TypeError(f"it returned {type(said).__name__}, not text or a dict")
        if isinstance(said, str):
            return HookRun(stdout=said)
        return HookRun(stdout=json.dumps(said) if said else "")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's fault ends nothing
        return HookRun(problem=f"{type(error).__name__}: {error}")


async def _in_thread(function: HookFunction, facts: JsonObject) -> object:
    """What `function` returns, from a thread that does not keep the program from ending."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def settle(said: object, error: BaseException | None) -> None:
        if ended.done():
            return
        if error is None:
            ended.set_result(said)
        else:
            ended.set_exception(error)

    def run() -> None:
        said, error = None, None
        try:
            said = function(facts)
        except BaseException as raised:  # noqa: BLE001 - raised again where it is awaited
            is_plain = isinstance(raised, Exception) and not isinstance(raised, StopIteration)
            error = raised if is_plain else RuntimeError(repr(raised))
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, said, error)

    threading.Thread(target=run, name="hook", daemon=True).start()
    return await ended
