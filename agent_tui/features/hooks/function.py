"""Runs hooks that are functions of plugins: they read and answer what commands do."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import cast

from agent_tui.agent.hook import HookFunction
from agent_tui.features.hooks.answer import HookRun
from agent_tui.messages import JsonObject
from agent_tui.outside_code import cause_of, is_fault, run_in_thread


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
            said = await run_in_thread(partial(function, facts))
        if not isinstance(said, str | Mapping | None):
            raise TypeError(f"it returned {type(said).__name__}, not text or a dict")
        if isinstance(said, str):
            return HookRun(stdout=said)
        return HookRun(stdout=json.dumps(said) if said else "")
    except BaseException as error:
        if not is_fault(error):
            raise
        cause = cause_of(error)
        return HookRun(problem=f"{type(cause).__name__}: {cause}")
