"""Notices that a model repeats itself, as weak models do without ever stopping."""

import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from typing import Final

from agent_tui.messages import ToolCall
from agent_tui.omissions import marks_in
from agent_tui.sessions.outputs import action_of, is_test
from agent_tui.tools.base import ToolOutput

REMARK_AT: Final = 3
STUCK_AT: Final = 6
"""Calls with the same arguments and result, and no progress in between.

Polling takes two or three; a model that has not understood after five never will. A call of a
second or more may be waiting for something: only `ALIKE_AT` stops it.
"""

ALIKE_AT: Final = 30
"""Replies with a call that had the same result, whatever its arguments, without a new result in
between. At half of it, the model is told.

Twenty values of a parameter, tried in turn, are work; so is waiting for a server.
"""

RENUMBERED_AT: Final = 30
"""Replies with a call that differs from an earlier one in digits alone and prints nothing else that
is new, in a row: looks at what is known do not end it. At half of it, the model is told.
"""

SILENT_AT: Final = 300
"""The same for commands that succeed and print nothing: outside git, what they changed is unknown,
and a long task of such commands (``mv``, ``mkdir``) is work. Of calls that differ in digits alone,
also the most that wait (a second or more), run tests, or may change something each time.
"""

MOST_REFUSED: Final = 10
"""Replies in a row whose calls name no tool or cannot be parsed, even if they differ."""

_LOOKING = frozenset(
    ["read", "grep", "find", "ls", "fetch", "web_search", "explore", "recall", "why", "job"]
)
"""Tools whose calls change nothing that a later call could see."""

_ABOUT_ITSELF = frozenset(["todo", "compact", "scope"])
"""Tools that tell the model nothing about its work."""

_FILE_TOOLS = frozenset({"edit", "write", "apply_patch"})

_REMARK = (
    "\n\n(You have made this call {count} times with the same result. Do something else, or "
    "answer the user.)"
)
_ALIKE_REMARK = (
    "\n\n(Calls of {count} replies had this same result. Do something else, or answer the user; "
    "after {most}, the turn is stopped.)"
)
_RENUMBERED_REMARK = (
    "\n\n(Calls of {count} replies differed from earlier ones only in digits and showed nothing "
    "else that is new. Do something else, or answer the user; after {most}, the turn is stopped.)"
)
_RENUMBERED = "calls of {most} replies differed only in digits and showed nothing else that is new"
_SAME_CALL = f"the same call had the same result {STUCK_AT} times"
_ALIKE = "calls of {most} replies had the same result"
_NOT_RUN = f"no call of {MOST_REFUSED} replies in a row could be run"


class Repetition:
    """The calls of one turn and their results, also across compactions.

    Progress is a change of a file that no earlier call of the turn made, a look that shows a line
    which no earlier look of the turn showed, or a command that was not run since files changed. If
    it was, but with other digits, it must also print a line that no earlier command of the turn
    printed, whatever its digits.

    Attributes:
        has_progressed: Whether the newest call made progress.
        stuck: Why the model is to be stopped, as part of a sentence; empty if it is not.
    """

    def __init__(self) -> None:
        self._same = Counter[str]()
        self._alike = Counter[str]()
        self._changes: set[str] = set()
        self._commands: set[str] = set()
        self._renumbered: set[str] = set()
        self._printed: set[int] = set()
        self._of_digits: set[int] = set()
        self._quick: set[int] = set()
        self._replies = 0
        self._results: set[str] = set()
        self._of_reply: set[str] = set()
        self._lines: set[int] = set()
        self._newest = ""
        self._refused = 0
        self.has_progressed = False
        self.stuck = ""

    def count_reply(self, *, is_refused: bool) -> None:
        """Count a reply with calls; if `is_refused`, none of them could be run as written."""
        self._of_reply.clear()
        self._replies += 1
        self._refused = self._refused + 1 if is_refused else 0
        if self._refused >= MOST_REFUSED:
            self.stuck = _NOT_RUN

    def with_remark(
        self, call: ToolCall, output: ToolOutput, *, only_reads: bool = True
    ) -> ToolOutput:
        """`output`, with a note to the model if earlier calls had the same result.

        Args:
            call: A call that was run.
            output: What the model would be shown.
            only_reads: Whether `call` is known to change nothing.
        """
        told = output.for_model
        if kept_at := output.for_person.full_output_path:
            told = told.replace(kept_at, "")  # each call has a file of its own
        result = _hash([call.name, told])
        asked = _hash([call.name, call.arguments])
        self._newest = signature = _hash([call.name, call.arguments, told])
        has_changed = self._has_changed_files(call.name, output, asked)
        if has_changed:
            self._forget_commands()
        is_news = self._is_news(call.name, output, asked) or has_changed
        is_renumbered = not has_changed and self._is_renumbered(call, told)
        self.has_progressed = has_changed or (is_news and not is_renumbered)
        if is_news:
            self._same.clear()
        if has_changed or result not in self._results:
            self._alike.clear()
        self._results.add(result)
        self._same[signature] += 1
        self._alike[result] += result not in self._of_reply
        self._of_reply.add(result)
        noted = self._remark(output, self._same[signature], self._alike[result])
        if is_renumbered:
            may_work = is_news and not only_reads
            note = self._count_renumbered(call, output, may_work=may_work)
            is_noted = noted is not output or not note
            return noted if is_noted else replace(output, for_model=output.for_model + note)
        if self.has_progressed or call.name not in _LOOKING | _ABOUT_ITSELF:
            self._forget_renumbered()
        return noted

    def _count_renumbered(self, call: ToolCall, output: ToolOutput, *, may_work: bool) -> str:
        """Count a call that differs in digits alone; the note to the model, if that goes on.

        After a wait, a quick look is part of the wait: ``sleep 60``, then ``curl``. A number that
        was not used yet may be work (``./migrate 31``), unless the command is known to change
        nothing (``echo 31``).
        """
        self._of_digits.add(self._replies)
        if _is_wait(output):
            self._quick.clear()
        elif not (may_work or _is_silent(output) or is_test(action_of(call).command)):
            self._quick.add(self._replies)
        quick = len(self._quick)
        if quick >= RENUMBERED_AT or len(self._of_digits) >= SILENT_AT:
            most = RENUMBERED_AT if quick >= RENUMBERED_AT else SILENT_AT
            self.stuck = self.stuck or _RENUMBERED.format(most=most)
        if quick < RENUMBERED_AT // 2:
            return ""
        return _RENUMBERED_REMARK.format(count=quick, most=RENUMBERED_AT)

    def _forget_renumbered(self) -> None:
        self._of_digits.clear()
        self._quick.clear()

    def _remark(self, output: ToolOutput, same: int, alike: int) -> ToolOutput:
        most = SILENT_AT if _is_silent(output) else ALIKE_AT
        if alike >= most:
            self.stuck = _ALIKE.format(most=most)
        elif same >= STUCK_AT and not _is_wait(output):
            self.stuck = _SAME_CALL
        if same >= REMARK_AT:
            remark = _REMARK.format(count=same)
        elif alike >= most // 2:
            remark = _ALIKE_REMARK.format(count=alike, most=most)
        else:
            return output
        return replace(output, for_model=output.for_model + remark)

    def _is_news(self, name: str, output: ToolOutput, asked: str) -> bool:
        """Whether a call that changed no file made progress.

        What a command did is not always known: one that was not seen since the last file change may
        have changed anything. A new result of the same one is no news: many print the time.
        """
        if name in _FILE_TOOLS or name in _ABOUT_ITSELF:
            return False
        if name not in _LOOKING:
            is_new = asked not in self._commands
            self._commands.add(asked)
            return is_new
        if output.is_error:
            return False
        lines = set(map(hash, _shown_lines(output.for_model)))
        is_new = not lines <= self._lines
        self._lines |= lines
        return is_new

    def _has_changed_files(self, name: str, output: ToolOutput, asked: str) -> bool:
        """Whether a call changed a file in a way that no earlier call of the turn did.

        The same edit with the same diff brings back a text that the file already had: a model that
        alternates between two versions of a line makes no progress.
        """
        details = output.for_person
        if name not in _FILE_TOOLS:
            return bool(details.files.written or details.files.edited)
        if output.is_error or not details.diff:
            return False
        return self._is_new_change(asked, details.diff)

    def _is_new_change(self, asked: str, change: str) -> bool:
        made = _hash([asked, change])
        is_new = made not in self._changes
        self._changes.add(made)
        return is_new

    def _is_renumbered(self, call: ToolCall, told: str) -> bool:
        """Whether a command differs in digits alone from an earlier one, and so does its output.

        A model in a circle counts its steps itself: ``echo step 14``, ``echo step 15``.
        """
        if call.name in _LOOKING | _ABOUT_ITSELF:
            return False
        asked = _hash([call.name, _without_digits(json.dumps(call.arguments, sort_keys=True))])
        printed = set(map(hash, _shown_lines(_without_digits(told))))
        is_known = asked in self._renumbered and printed <= self._printed
        self._renumbered.add(asked)
        self._printed |= printed
        return is_known

    def _forget_commands(self) -> None:
        self._commands.clear()
        self._renumbered.clear()

    def note_changes(self, state: str = "") -> None:
        """Forget earlier calls because the newest command changed files: any result may differ.

        Nothing is forgotten if a command has already made the same change in this turn.

        Args:
            state: What the files were and are now; empty if that is unknown.
        """
        self.has_progressed = not state or self._is_new_change("", state)
        if not self.has_progressed:
            return
        self._forget_commands()
        self._forget_renumbered()
        self._alike.clear()
        self._same = Counter({self._newest: 1})


def _hash(told: list[object]) -> str:
    text = json.dumps(told, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _is_wait(output: ToolOutput) -> bool:
    """Whether the call took so long (a second) that its time is told."""
    return output.for_person.elapsed_ms > 0


def _is_silent(output: ToolOutput) -> bool:
    return not output.is_error and output.for_person.printed_lines == 0


def _shown_lines(text: str) -> list[str]:
    marks = marks_in(text)  # where a text was cut depends on the free context
    return [line for line in text.splitlines() if line not in marks]


def _without_digits(text: str) -> str:
    return re.sub(r"\d+", "0", text)


_LOOP_PERIODS = range(8, 201)
_LOOP_TIMES = 12
_LOOP_CHARS = 400
_LOOK_EVERY_CHARS = 200


def goes_round(text: str) -> bool:
    """Whether `text` ends in one short passage that repeats, ignoring its digits.

    That includes endless counting, which `LoopWatch` takes for a list: continuing such a reply
    after a cut is useless.
    """
    end = _without_digits(text)[-_LOOP_CHARS:]
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
