"""Where a turn waits for the person's answer to an approval."""

import asyncio
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """What the person said. `words` go to the model with a "no"; without words it stops.

    `rules` are those that the question offered for the parts of a command, or their own, in place
    of the one for all of it. Of a plan "once" approves it with each change asked about, "session"
    with edits accepted; `plan` is the plan as they changed it, empty where they did not.
    """

    choice: Literal["once", "session", "project", "no"]
    words: str = ""
    rules: tuple[str, ...] = ()
    plan: str = ""


class PendingApprovals:
    """Open questions by id. Answers to unknown ids (asked and aborted) are ignored."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Future[ApprovalAnswer]] = {}

    async def wait(self, request_id: str) -> ApprovalAnswer:
        """Wait until `answer` is called with this id."""
        future = asyncio.get_running_loop().create_future()
        self._open[request_id] = future
        try:
            return await future
        finally:
            del self._open[request_id]

    def answer(self, request_id: str, answer: ApprovalAnswer) -> None:
        """Give the answer; call on the event loop's thread."""
        future = self._open.get(request_id)
        if future is not None and not future.done():
            future.set_result(answer)
