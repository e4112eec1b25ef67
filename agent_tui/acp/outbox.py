"""What an editor is told of a session: one update after the other, in the order they came."""

import asyncio
import sys
from typing import TypeAlias

from acp import Client
from acp.schema import AvailableCommandsUpdate, ConfigOptionUpdate, CurrentModeUpdate

from agent_tui.acp.updates import Update

Outgoing: TypeAlias = Update | AvailableCommandsUpdate | ConfigOptionUpdate | CurrentModeUpdate


class Outbox:
    """Sends in a task of its own, so that nothing waits for the editor; needs an event loop.

    Args:
        client: The editor.
        session_id: What it calls the session by.
    """

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._session_id = session_id
        self._waiting: asyncio.Queue[Outgoing | None] = asyncio.Queue()
        self._sending = asyncio.create_task(self._send_all())

    def put(self, update: Outgoing) -> None:
        """Have the editor told; nothing is left out, however slowly it reads."""
        self._waiting.put_nowait(update)

    async def flush(self) -> None:
        """Wait until the editor was told everything."""
        await self._waiting.join()

    async def aclose(self) -> None:
        """Send what waits, and end."""
        self._waiting.put_nowait(None)
        await self._sending

    async def _send_all(self) -> None:
        while (update := await self._waiting.get()) is not None:
            try:
                await self._client.session_update(session_id=self._session_id, update=update)
            except ConnectionError:  # the editor is gone: nobody is left to be told
                pass
            except Exception as error:  # noqa: BLE001 - the pump: what follows is sent all the same
                what, why = type(update).__name__, type(error).__name__
                sys.stderr.write(f"agent-tui: Could not send {what} to the editor: {why}\n")
            finally:
                self._waiting.task_done()
        self._waiting.task_done()
