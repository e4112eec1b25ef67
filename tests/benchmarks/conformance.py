"""agent-tui's compaction, as the public compaction conformance kit drives it.

    python -m pip install compaction-conformance-kit
    compaction-kit check tests/benchmarks/conformance.py:AtWork
    compaction-kit check tests/benchmarks/conformance.py:AmidTalk --rounds 10
    compaction-kit check tests/benchmarks/conformance.py:AgentTui --budgets 10%,20%,30%

The kit plants rules, facts and goals in a conversation of about 2,000 tokens, compacts it round
after round and looks for their words in the context. Every round runs `agent-tui compact --model
none` on the session of the round before, in this process, and the kit reads the messages that
`agent-tui context` prints. No model is asked.

`AtWork` compacts with the default settings: it puts 100,000 tokens of file reads between the turns
of the first round, and as many after each compaction. `AmidTalk` adds 60 messages of the person's
to that, each round. `AgentTui` compacts the bare conversation to the kit's budget, a few hundred
tokens.

The settings of whoever runs it hold here, too.
"""

import contextlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compaction_kit.compacted import CompactedContext
from compaction_kit.session import Turn

from agent_tui.errors import CompactionError
from agent_tui.features.compact_file import subcommand as compact_command
from agent_tui.features.context import subcommand as context_command

_TIME = "2026-01-01T00:00:00.000Z"
_MODEL = {"provider": "none", "model": "none"}

_WINDOW = 128_000
_CHARACTERS_A_READ = 6_700
_TOKENS_A_READ = 1_670
_FULL = 0.8
"""So much of the window are reads, in every round: it is due."""

_SHARE = 0.25
"""Without a budget: from 80 % to 20 %, as by default."""

_NUMBERS = count(1)
_READ_NUMBERS = count()
_LIBRARY = [
    file
    for file in sorted(Path(json.__file__).parents[1].glob("*.py"))
    if file.stat().st_size > _CHARACTERS_A_READ
]

_CHARACTERS_A_TOKEN = 4
_TARGET = 0.4
_TRIES = 3

Line = dict[str, Any]
_DONE: Line = {"type": "text", "text": "Done."}


class AgentTui:
    """The bare conversation, compacted to the kit's budget."""

    name = "agent-tui"

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="conformance-")
        self._session = Path()
        self._characters = 0

    def compact(
        self, turns: list[Turn], round_num: int = 1, budget_chars: int | None = None
    ) -> CompactedContext:
        """Compact the session of the round before; in the first round, a new one with `turns`."""
        if round_num == 1:
            self._session = self._written("first", header(), map(message, turns))
            self._characters = sum(len(turn.text) for turn in turns)
        most = budget_chars or int(self._characters * _SHARE)
        tokens, text, child = most / _CHARACTERS_A_TOKEN, "", self._session
        for _ in range(_TRIES):
            window = ["--window", str(int(tokens / _TARGET)), "--target", str(_TARGET)]
            child = compacted(self._session, *window)
            text = context(child)
            if len(text) <= most:
                break
            tokens *= 0.9 * most / len(text)
        self._session = child
        return CompactedContext(text, self.name, round_num)

    def close(self) -> None:
        """Remove the sessions."""
        self._folder.cleanup()

    def _written(self, name: str, head: Line, messages: Iterator[Line]) -> Path:
        file = Path(self._folder.name) / f"{name}.jsonl"
        file.write_text(f"{json.dumps(head)}\n" + "".join(entries(messages, None)))
        return file


class AtWork(AgentTui):
    """The conversation amid real work, compacted again and again with the default settings.

    Args:
        window: Of the model, in tokens.
    """

    name = "agent-tui, at work"
    talk = 0

    def __init__(self, window: int = _WINDOW) -> None:
        super().__init__()
        self._window = window
        self._remarks = remarks()

    def compact(
        self, turns: list[Turn], round_num: int = 1, budget_chars: int | None = None
    ) -> CompactedContext:
        """Fill the window with file reads, then compact."""
        if round_num == 1:
            self._session = self._written("first", header(), self._work(turns))
        else:
            with self._session.open("a") as file:
                last = json.loads(self._session.read_text().splitlines()[-1])["id"]
                file.writelines(entries(self._work([]), last))
        self._session = compacted(self._session, "--window", str(self._window))
        return CompactedContext(context(self._session), self.name, round_num)

    def _work(self, turns: list[Turn]) -> Iterator[Line]:
        """The conversation and what else is said, with file reads between the messages."""
        said = [*map(message, turns)]
        for _ in range(self.talk):
            said += [{"role": "user", "content": next(self._remarks)}, reply(_DONE, "stop")]
        left = int(_FULL * self._window / _TOKENS_A_READ)
        for number, one in enumerate(said):
            yield one
            if one["role"] == "assistant":
                share = left // (len(said) - number)
                left -= share
                yield from reads(share)
        yield from reads(left)


class AmidTalk(AtWork):
    """The same, while the person says much that need not be remembered."""

    name = "agent-tui, amid talk"
    talk = 60


def remarks() -> Iterator[str]:
    """What a person says along the way: messages of about 55 tokens that state nothing."""
    parts = ("parser", "importer", "queue", "scheduler", "cache", "renderer", "exporter", "ledger")
    said = (
        "Please look at how the {} hands its rows to the {} before you change anything there",
        "I was wondering whether the {} could share a helper with the {}, they look much alike",
        "Have another look at the {}, the last change felt a little clumsy around the {}",
        "The {} looks better now, thanks, go on with the {} in the same way if you can",
        "Somebody asked why the {} needs the {} at all, so add a short comment about it there",
    )
    rest = (
        ", and tell me when you think that it is fine; then we can talk about what to do after it, "
        "and whether we should split that part up or leave it as it stands for the moment."
    )
    pairs = ((one, other) for one in parts for other in parts if one != other)
    for pair, text in zip(cycle(pairs), cycle(said), strict=False):
        yield text.format(*pair) + rest


def compacted(session: Path, *options: str) -> Path:
    """The session that `agent-tui compact` writes; `session` where there is nothing to do."""
    argv = [str(session), "--model", "none", *options, "--session-dir", str(session.parent)]
    try:
        return Path(printed(compact_command.run_command, argv).strip())
    except CompactionError:
        return session


def context(session: Path) -> str:
    """The messages of the next request, as text."""
    messages = json.loads(printed(context_command.run_command, [str(session), "--json"]))[
        "messages"
    ]
    calls = (call for one in messages for call in one.get("tool_calls", ()))
    texts = [str(one["content"] or "") for one in messages]
    return "\n".join((*texts, *(call["function"]["arguments"] for call in calls)))


def printed(run: Callable[[Sequence[str]], int], argv: Sequence[str]) -> str:
    """What a command prints; what it says beside that is dropped."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        run(argv)
    out.seek(0)
    return out.read()


def header() -> Line:
    """The first line of a session file."""
    return {
        "type": "session",
        "version": 3,
        "id": "conformance",
        "timestamp": _TIME,
        "cwd": "/nowhere",
        "provider": "none",
        "modelId": "none",
    }


def entries(messages: Iterable[Line], last: str | None) -> Iterator[str]:
    """Lines of a session file that hold `messages`, after the entry `last`."""
    for one in messages:
        entry = {"type": "message", "id": f"{next(_NUMBERS):08x}", "parentId": last}
        last = entry["id"]
        yield f"{json.dumps({**entry, 'timestamp': _TIME, 'message': one})}\n"


def message(turn: Turn) -> Line:
    """A turn as a message; what is no reply was typed."""
    if turn.role == "assistant":
        return reply({"type": "text", "text": turn.text}, "stop")
    return {"role": "user", "content": turn.text}


def reply(content: Line, why: str) -> Line:
    """A message of the model."""
    return {"role": "assistant", "content": [content], "stopReason": why, **_MODEL}


def reads(how_many: int) -> Iterator[Line]:
    """Calls that read a part of Python's own library each, with what they gave."""
    for _ in range(how_many):
        number = next(_READ_NUMBERS)
        file = _LIBRARY[number % len(_LIBRARY)]
        call = {"type": "toolCall", "id": f"call_{number}", "name": "read"}
        yield reply({**call, "arguments": {"path": str(file)}}, "toolUse")
        yield {
            "role": "toolResult",
            "toolCallId": f"call_{number}",
            "toolName": "read",
            "content": [{"type": "text", "text": file.read_text()[:_CHARACTERS_A_READ]}],
            "isError": False,
        }
