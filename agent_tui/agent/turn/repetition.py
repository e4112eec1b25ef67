"""Notices that a model repeats itself, as weak models do without ever stopping."""

import hashlib
import json
import re
from collections import deque
from dataclasses import replace
from typing import Final

from agent_tui.messages import ToolCall
from agent_tui.tools.base import ToolOutput

REMARK_AT: Final = 3
STUCK_AT: Final = 6
"""Calls with the same arguments and result, and no change in between.

Polling takes two or three; a model that has not understood after five never will.
"""

MOST_REFUSED = 10
"""Replies in a row whose calls name no tool or cannot be parsed, even if they differ."""

_REMEMBERED = 30
"""Calls remembered, so that a cycle of up to five calls is noticed too."""

_LOOKING = frozenset(
    [
        "read",
        "grep",
        "find",
        "ls",
        "fetch",
        "explore",
        "recall",
        "why",
        "todo",
        "compact",
        "scope",
        "job",
    ]
)
"""Tools whose calls change nothing that a later call could see."""

_FILE_TOOLS = frozenset({"edit", "write", "apply_patch"})

_REMARK = (
    "\n\n(You have made this call {count} times with the same result. Do something else, or "
    "answer the user.)"
)


class Repetition:
    """The calls of one turn and their results."""

    def __init__(self) -> None:
        self._seen: deque[str] = deque(maxlen=_REMEMBERED)
        self._commands: set[str] = set()
        self._refused = 0
        self.is_stuck = False

    def count_reply(self, *, is_refused: bool) -> None:
        """Count a reply with calls; if `is_refused`, none of them could be run as written."""
        self._refused = self._refused + 1 if is_refused else 0
        self.is_stuck = self.is_stuck or self._refused >= MOST_REFUSED

    def with_remark(self, call: ToolCall, output: ToolOutput) -> ToolOutput:
        """`output`, with a note to the model if the same call gave it before."""
        told = json.dumps([call.name, call.arguments, output.for_model], sort_keys=True)
        signature = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
        if self._has_changed_something(call.name, output, signature):
            self._seen.clear()
        self._seen.append(signature)
        count = self._seen.count(signature)
        self.is_stuck = self.is_stuck or count >= STUCK_AT
        if count < REMARK_AT:
            return output
        return replace(output, for_model=output.for_model + _REMARK.format(count=count))

    def _has_changed_something(self, name: str, output: ToolOutput, signature: str) -> bool:
        """Whether an earlier call could now give another result.

        What a command did is not always known: one that was not seen since the last file change may
        have changed anything.
        """
        details = output.for_person
        if name in _FILE_TOOLS:
            has_changed = not output.is_error and bool(details.diff)
        else:
            has_changed = bool(details.files.written or details.files.edited)
        if has_changed:
            self._commands.clear()
        if has_changed or name in _FILE_TOOLS or name in _LOOKING:
            return has_changed
        is_new = signature not in self._commands
        self._commands.add(signature)
        return is_new

    def note_changes(self) -> None:
        """Forget earlier calls because the newest command changed files: any result may differ."""
        self._commands.clear()
        while len(self._seen) > 1:
            self._seen.popleft()

    def forget_single_calls(self) -> None:
        """Forget rare calls: after a compaction, repeating one whose result is gone is fine."""
        often = [seen for seen in self._seen if self._seen.count(seen) >= REMARK_AT]
        self._seen = deque(often, maxlen=_REMEMBERED)


_LOOP_PERIODS = range(8, 201)
_LOOP_TIMES = 12
_LOOP_CHARS = 400
_LOOK_EVERY_CHARS = 200


def goes_round(text: str) -> bool:
    """Whether `text` ends in one short passage that repeats, ignoring its digits.

    That includes endless counting, which `LoopWatch` takes for a list: continuing such a reply
    after a cut is useless.
    """
    end = re.sub(r"\d+", "0", text)[-_LOOP_CHARS:]
    periods = range(1, _LOOP_PERIODS.start * 2)
    return len(end) == _LOOP_CHARS and any(end[period:] == end[:-period] for period in periods)


class LoopWatch:
    """Notices that a reply repeats the same passage endlessly.

    The passage has 8 to 200 characters, some of them letters, and repeats at least twelve times
    over 400 characters. Tables, rulers and rows of numbers have no letters or are shorter.
    """

    def __init__(self) -> None:
        self._text = ""
        self._unseen = 0

    def is_looping(self, text: str) -> bool:
        """Whether the reply loops, with `text` as its newest piece."""
        most = _LOOP_TIMES * _LOOP_PERIODS.stop
        self._text = (self._text + text)[-most:]
        self._unseen += len(text)
        if self._unseen < _LOOK_EVERY_CHARS:
            return False
        self._unseen = 0
        return any(self._repeats(period) for period in _LOOP_PERIODS)

    def _repeats(self, period: int) -> bool:
        passage = self._text[-period:]
        times = max(_LOOP_TIMES, -(-_LOOP_CHARS // period))
        is_words = any(letter.isalpha() for letter in passage)
        return is_words and self._text.endswith(passage * times)
