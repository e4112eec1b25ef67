"""Keeps a reply on disk while it is streamed, so that a kill loses at most its last second."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from agent_tui.agent.conversation import Conversation, without_secrets
from agent_tui.messages import AssistantMessage
from agent_tui.sessions.partial_reply import PartialReply

KEEP_S = 1.0
"""Seconds between two writes."""


class ReplyKeeper:
    """Inside a ``with`` block, writes the reply so far beside the session, every `KEEP_S`.

    At the end of the block the reply is stored, or there is none; the file is removed.

    Args:
        conversation: The conversation that gets the reply.
        so_far: Returns the reply as an interruption would record it now; None if it would not.
    """

    def __init__(
        self, conversation: Conversation, so_far: Callable[[], AssistantMessage | None]
    ) -> None:
        log = conversation.log
        self._conversation = conversation
        self._so_far = so_far
        self._file = (
            PartialReply(log.path, log.entries[-1].id) if log.path and log.entries else None
        )
        self._timer: asyncio.TimerHandle | None = None
        self._kept: AssistantMessage | None = None

    def __enter__(self) -> Self:
        self._wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._file is not None:
            self._file.remove()

    def _wait(self) -> None:
        if self._file is not None:
            self._timer = asyncio.get_running_loop().call_later(KEEP_S, self._keep, self._file)

    def _keep(self, file: PartialReply) -> None:
        reply = self._so_far()
        if reply is not None and reply != self._kept:
            self._kept = reply
            shown = without_secrets(reply, self._conversation.services.secrets)
            parent_id = self._conversation.log.leaf_id
            asyncio.get_running_loop().run_in_executor(None, file.write, shown, parent_id)
        self._wait()
