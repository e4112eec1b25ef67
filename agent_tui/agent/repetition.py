"""Noticing that a model makes the same call over and over: weak models do, and never stop."""

import json
from collections import deque
from dataclasses import replace
from typing import Final

from agent_tui.messages import ToolCall
from agent_tui.tools.base import ToolOutput

REMARK_AT: Final = 3
STUCK_AT: Final = 6
"""Calls with the same arguments and the same result. Waiting for something to change takes two
or three; a model that has not seen the point after five never does."""

_REMEMBERED = 16
"""Calls looked back on, so that going round in a small circle is noticed too."""

_REMARK = (
    "\n\n(You have made this call {count} times with the same result. Do something else, or "
    "answer the person.)"
)


class Repetition:
    """The calls of one turn and what came of them."""

    def __init__(self) -> None:
        self._seen: deque[str] = deque(maxlen=_REMEMBERED)
        self.is_stuck = False

    def noticed(self, call: ToolCall, output: ToolOutput) -> ToolOutput:
        """`output`, with a remark to the model where it has come of the same call before."""
        signature = json.dumps([call.name, call.arguments, output.for_model], sort_keys=True)
        self._seen.append(signature)
        count = self._seen.count(signature)
        self.is_stuck = self.is_stuck or count >= STUCK_AT
        if count < REMARK_AT:
            return output
        return replace(output, for_model=output.for_model + _REMARK.format(count=count))
