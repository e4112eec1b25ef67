"""Calls code that others wrote: functions of plugins, of files, and of programs with this library.

It runs in this process. Whatever it raises, the program goes on, and a thread in which it hangs
does not keep the program from ending.
"""

import asyncio
import contextvars
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

ResultT = TypeVar("ResultT")
ValueT = TypeVar("ValueT")


class OutsideError(Exception):
    """What code in a thread raised, if no future can hold that; it is the cause."""


def is_fault(error: BaseException) -> bool:
    """Whether `error` is a fault of the code that raised it in a coroutine: all but a cancellation.

    Ctrl+C cancels a task. It raises `KeyboardInterrupt` in one only where the program has Python's
    own signal handler.
    """
    if isinstance(error, KeyboardInterrupt):
        return signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    return isinstance(error, Exception | SystemExit)


def cause_of(error: BaseException) -> BaseException:
    """What the code raised: `error`, or what is in an `OutsideError`."""
    return error.__cause__ or error if isinstance(error, OutsideError) else error


async def run_in_thread(function: Callable[[], ResultT]) -> ResultT:
    """Return what `function` returns, from a thread that does not keep the program from ending.

    A cancellation leaves the thread alone.

    Raises:
        OutsideError: It raised what is no ordinary exception, as `SystemExit`.
        Exception: It raised that.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[ResultT] = loop.create_future()
    context = contextvars.copy_context()

    def settle(put: Callable[[ValueT], None], value: ValueT) -> None:
        if not ended.done():
            put(value)

    def run() -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            try:
                result = context.run(function)
            except BaseException as raised:  # noqa: BLE001 - raised again where it is awaited
                loop.call_soon_threadsafe(settle, ended.set_exception, _as_exception(raised))
            else:
                loop.call_soon_threadsafe(settle, ended.set_result, result)

    threading.Thread(target=run, name="outside code", daemon=True).start()
    return await ended


def _as_exception(raised: BaseException) -> Exception:
    """`raised`, in an `OutsideError` unless a future can hold it and it ends only a call."""
    if isinstance(raised, Exception) and not isinstance(raised, StopIteration):
        return raised
    error = OutsideError(repr(raised))
    error.__cause__ = raised
    return error
