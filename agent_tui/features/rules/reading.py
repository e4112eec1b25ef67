"""The corrections in one session: what the user said right after the model's work."""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import JsonValue

from agent_tui.attachments import plan_approved_by, without_attachments
from agent_tui.compaction.ledger.pinned import own_sentences
from agent_tui.features.rules.wording import read_wording, term_set
from agent_tui.messages import AssistantMessage, ToolCall, UserMessage
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.tools.call_edits import CallReader

_MOST_WORK_CHARS = 200_000
"""Of what the model wrote in a turn, so much is compared with what the user says about it."""

_MOST_TYPED_CHARS = 2_000
"""A longer message is mostly pasted: its first and last paragraphs are the user's own."""

_LEAST_TELLING_CHARS = 25

_REPLACED = "old"
"""Arguments whose name begins so hold the text that an edit removes."""


@dataclass(frozen=True, slots=True)
class Correction:
    """One sentence of the user's, right after the model changed files or ran commands.

    Attributes:
        sentence: The sentence, on one line.
        at: When it was sent, as recorded.
        turn: The number of the message in its session, from 0.
        beside: Checksums of the longer ones among the other sentences of its message.
        dropped: Terms of the sentence that the model wrote before it, and no more afterwards.
        taken_up: Terms of the sentence that the model wrote only after it.
    """

    sentence: str
    at: str
    turn: int
    beside: frozenset[int] = frozenset()
    dropped: frozenset[str] = frozenset()
    taken_up: frozenset[str] = frozenset()

    @property
    def is_followed(self) -> bool:
        """Whether the model then replaced something that the sentence names by something else."""
        return bool(self.dropped and self.taken_up)


@dataclass(frozen=True, slots=True)
class SaidSentences:
    """What the user said in one session, as far as rules may follow from it.

    Attributes:
        corrections: In the order of the session.
        counts: In how many of the user's sentences each term occurs.
        sentences: How many sentences there are.
    """

    corrections: tuple[Correction, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    sentences: int = 0


@dataclass(slots=True)
class _Turn:
    """One message of the user's, and the work that followed."""

    text: str
    at: str
    work: list[str] = field(default_factory=list[str])
    _terms: Set[str] | None = None

    @property
    def written_terms(self) -> Set[str]:
        """The terms of what the model wrote."""
        if self._terms is None:
            self._terms = term_set("\n".join(self.work)[:_MOST_WORK_CHARS])
        return self._terms


def read_corrections(entries: Iterable[Entry]) -> SaidSentences:
    """Find the corrections among `entries`, in the order of the file.

    The first message of a session corrects nothing, as no work came before it. Of a sentence that
    the user repeats word for word in the session, the first occurrence counts.
    """
    turns = _turns(entries)
    counts, sentences = Counter[str](), 0
    found: dict[str, Correction] = {}
    for number, turn in enumerate(turns):
        own = _sentences(_typed(turn.text))
        before = turns[number - 1] if number else None
        for sentence in own:
            wording = read_wording(sentence)
            counts.update(wording.terms)
            sentences += 1
            if not (before and before.work and wording.is_short) or sentence in found:
                continue
            correction = Correction(sentence, turn.at, number)
            correction = _trace(correction, wording.terms, before, turn)
            if wording.is_rule or correction.is_followed:
                found[sentence] = replace(correction, beside=_checksums(turn.text, sentence))
    return SaidSentences(tuple(found.values()), dict(counts), sentences)


def _turns(entries: Iterable[Entry]) -> list[_Turn]:
    reader = CallReader()
    turns: list[_Turn] = []
    for entry in entries:
        match entry:
            case MessageEntry(pulled_from=str()):
                pass  # others said it
            case MessageEntry(message=UserMessage() as said):
                text = "" if plan_approved_by(said.text) else without_attachments(said.text)
                turns.append(_Turn(text, entry.timestamp))
            case MessageEntry(message=AssistantMessage() as reply) if turns:
                turns[-1].work += [_written(c) for c in reply.tool_calls if _is_work(c, reader)]
            case _:
                pass
    return turns


def _typed(text: str) -> str:
    """`text` without what is probably pasted."""
    if len(text) <= _MOST_TYPED_CHARS:
        return text
    first, _, rest = text.strip().partition("\n\n")
    parts = (first, rest.rpartition("\n\n")[2])
    return "\n\n".join(part for part in parts if len(part) <= _MOST_TYPED_CHARS)


def _is_work(call: ToolCall, reader: CallReader) -> bool:
    """Whether a call changes files or runs a command."""
    arguments = call.arguments
    return bool(
        reader.command_of(call.name, arguments, Path("/"))
        or reader.edits_of(call.name, arguments, Path("/"))
    )


def _written(call: ToolCall) -> str:
    """The texts of a call that it writes or runs, without those that it removes."""
    return "\n".join(_kept(call.arguments))


def _kept(value: JsonValue) -> Iterator[str]:
    match value:
        case str(text):
            removed = text.startswith("*** Begin Patch") or "\n@@" in text
            yield "\n".join(x for x in text.split("\n") if x[:1] != "-") if removed else text
        case dict():
            for key, inner in value.items():
                if not key.startswith(_REPLACED):
                    yield from _kept(inner)
        case list():
            for inner in value:
                yield from _kept(inner)
        case _:
            pass


def _trace(correction: Correction, named: Set[str], before: _Turn, after: _Turn) -> Correction:
    """`correction` with what became of the terms that it names, from one turn to the next."""
    then, now = before.written_terms, after.written_terms
    dropped = named & then - now if now else frozenset[str]()
    return replace(correction, dropped=frozenset(dropped), taken_up=frozenset(named & now - then))


def _sentences(text: str) -> list[str]:
    """The user's own sentences in `text`, each on one line."""
    return [" ".join(sentence.split()) for sentence in own_sentences(text)]


def _checksums(text: str, but: str) -> frozenset[int]:
    """The checksums of those sentences of `text` that nobody types twice by chance."""
    return frozenset(
        zlib.crc32(sentence.encode("utf-8", "replace"))
        for sentence in _sentences(text)
        if sentence != but and len(sentence) >= _LEAST_TELLING_CHARS
    )
