"""The numbered pieces of a conversation that can be kept: texts said, written or shown."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.sections.files import edits_in, file_view, text_to_write
from agent_tui.compaction.tiers.model import Action, Output, Unit
from agent_tui.compaction.tiers.outputs import action_of
from agent_tui.messages import AssistantMessage, ToolCall, ToolResultMessage, UserMessage
from agent_tui.tokens import TokenCounter

_LEAST_TOKENS = 25
"""A shorter result fits into the notes, or stays with the newest messages."""

_LEAST_CALL_TOKENS = 150
"""Of a shorter edit or command, the outcome says more."""

_LEAST_SAID_TOKENS = 400
"""Shorter user messages stay anyway; longer ones are pastes."""

_LABEL_CHARS = 110
_OPENING_CHARS = 50
_FAILED = "failed"
_OUTDATED = "edited since"
_NAMES_OUTDATED = f"lines of files {_OUTDATED}"


Kind: TypeAlias = Literal["said", "reply", "call", "result", "kept"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One text that can be kept, whole or in part.

    Args:
        number: The number by which the model refers to it.
        entry_id: Its entry in the log; empty if an earlier compaction kept it.
        kind: Its origin: the user, a reply's text, text that a call writes, a result, or an earlier
            compaction.
        label: Description: ``read src/db.py``.
        lines: Its text, without the line numbers that a tool puts before them.
        first: Number of the first line, as the model saw it.
        tokens: Its size.
        path: The normalized path of the file it shows; empty for other texts.
        remark: A note for the model: ``edited since``.
        is_change: Whether it wrote or edited the file.
        is_whole: Whether it is the complete file as written.
        is_lasting: Whether the user wants it kept through all compactions.
    """

    number: int
    entry_id: str
    kind: Kind
    label: str
    lines: tuple[str, ...]
    first: int
    tokens: int
    path: str = ""
    remark: str = ""
    is_change: bool = False
    is_whole: bool = False
    is_lasting: bool = False

    @property
    def last(self) -> int:
        """Number of the last line."""
        return self.first + len(self.lines) - 1

    @property
    def is_outdated(self) -> bool:
        """Whether the file, or a file whose lines the output names, changed afterwards."""
        return _OUTDATED in self.remark

    @property
    def source(self) -> str:
        """The origin of its text, as an excerpt states it."""
        return f"{self.label} ({_FAILED})" if _FAILED in self.remark else self.label

    @property
    def line(self) -> str:
        """The piece's line in the list for the model."""
        span = f" {self.first}-{self.last}" if len(self.lines) > 1 else ""
        remark = f", {self.remark}" if self.remark else ""
        return f"#{self.number} {self.label}{span}, {self.tokens:,} tokens{remark}"


def read_pieces(
    units: Iterable[Unit],
    earlier: Sequence[Piece],
    folders: Sequence[str],
    counter: TokenCounter,
) -> tuple[Piece, ...]:
    """The pieces of a conversation, oldest first.

    Args:
        units: Its messages, as they were written.
        earlier: The pieces that the previous compaction kept.
        folders: Paths of the working folder.
        counter: Counts their tokens.
    """
    units = tuple(units)
    failed = _ids_of_failed_calls(units)
    own = (piece for unit in units for piece in _pieces_of(unit, failed, folders, counter))
    found = [*earlier, *own]
    changed = {piece.path: at for at, piece in enumerate(found) if piece.is_change}
    kept = [(at, p) for at, p in enumerate(found) if p.tokens and not _is_superseded(at, found)]
    listed = [(number, at, piece) for number, (at, piece) in enumerate(kept, start=1)]
    newest = {(p.kind, p.label): number for number, _, p in listed if _is_run(p)}

    def remark(number: int, at: int, piece: Piece) -> str:
        if changed.get(piece.path, -1) > at:
            return _OUTDATED
        if not _is_run(piece):
            return piece.remark
        again, text = newest.get((piece.kind, piece.label), 0), "\n".join(piece.lines)
        rerun = f"run again in #{again}" if again > number else ""
        is_old = any(last > at and _names_line(text, path) for path, last in changed.items())
        return ", ".join(filter(None, (piece.remark, rerun, _NAMES_OUTDATED if is_old else "")))

    return tuple(
        replace(piece, number=number, remark=remark(number, at, piece))
        for number, at, piece in listed
    )


def _is_run(piece: Piece) -> bool:
    """Whether `piece` is a call that does not show a file, or the result of one."""
    return piece.kind in ("call", "result") and not piece.path


def _names_line(text: str, path: str) -> bool:
    """Whether `text` names a line of the file at `path`, as searches and compilers do."""
    return path in text and re.search(rf"{re.escape(path)}:\d", text) is not None


def _is_superseded(at: int, found: Sequence[Piece]) -> bool:
    """Whether a later piece shows the same lines of the same file, or wrote all of it."""
    piece = found[at]
    if not piece.path:
        return False
    return any(
        later.path == piece.path
        and (later.is_whole or (later.first <= piece.first and later.last >= piece.last))
        and (later.kind == "result" or later.is_whole)
        for later in found[at + 1 :]
    )


def _ids_of_failed_calls(units: Iterable[Unit]) -> frozenset[str]:
    """The ids of the calls that failed."""
    return frozenset(
        unit.message.tool_call_id
        for unit in units
        if isinstance(unit.message, ToolResultMessage) and unit.output and unit.output.has_failed
    )


def _pieces_of(
    unit: Unit, failed: frozenset[str], folders: Sequence[str], counter: TokenCounter
) -> Iterator[Piece]:
    """The pieces of one message; a small file change gets 0 tokens, as it is not listed.

    Text written by a call in `failed` is not in the file.
    """
    for draft in _drafts_of(unit, failed):
        tokens = counter.count_text("\n".join(draft.lines))
        is_listed = tokens >= draft.least_tokens
        is_change = draft.is_change and not draft.has_failed
        if is_listed or is_change:
            path = normalise_path(draft.path, folders) if draft.path else ""
            label = f"{draft.label} {path}" if path else draft.label
            yield Piece(
                number=0,
                entry_id=unit.entry_id,
                kind=draft.kind,
                label=_opening(label, _LABEL_CHARS),
                lines=draft.lines,
                first=draft.first,
                tokens=tokens if is_listed else 0,
                path="" if draft.has_failed else path,
                is_change=is_change,
                is_whole=is_change and draft.is_whole,
                remark=_FAILED if draft.has_failed else "",
            )


@dataclass(frozen=True, slots=True)
class _Draft:
    kind: Kind
    label: str
    lines: tuple[str, ...]
    first: int = 1
    path: str = ""
    is_change: bool = False
    is_whole: bool = False
    has_failed: bool = False
    least_tokens: int = _LEAST_TOKENS


def _drafts_of(unit: Unit, failed: frozenset[str]) -> Iterator[_Draft]:
    if unit.output is not None:
        if (draft := _result(unit.output)) is not None:
            yield draft
    elif isinstance(unit.message, AssistantMessage):
        text = unit.message.text.strip()
        yield _Draft("reply", f'you said "{_opening(text)}"', _lines(text))
        for call in unit.message.tool_calls:
            if (draft := _call(call)) is not None:
                yield replace(draft, has_failed=call.id in failed)
    elif isinstance(unit.message, UserMessage):
        text = unit.message.text.strip()
        label = f'the user said "{_opening(text)}"'
        yield _Draft("said", label, _lines(text), least_tokens=_LEAST_SAID_TOKENS)


def _result(output: Output) -> _Draft | None:
    """The result of an action; None if it only echoes a file change."""
    if (view := file_view(output)) is not None:
        return _Draft("result", "read", view.lines, view.first, view.path)
    action = output.action
    if action.kind in ("write", "edit") and not output.has_failed:
        return None
    did = f"$ {action.command}" if action.command else _call_words(action)
    return _Draft("result", did, _lines(output.text), has_failed=output.has_failed)


def _call(call: ToolCall) -> _Draft | None:
    """The text that a call writes: a file, new text in a file, or a long command."""
    action = action_of(call)
    if action.kind == "write" and (body := text_to_write(call.arguments)) is not None:
        lines = _lines(body)
        return _Draft("call", "write", lines, path=action.path, is_change=True, is_whole=True)
    if action.kind == "edit" and (made := [new for _, new, _ in edits_in(call.arguments)]):
        text = "\n".join(made)
        return _Draft(
            "call",
            "edit",
            _lines(text),
            path=action.path,
            is_change=True,
            least_tokens=_LEAST_CALL_TOKENS,
        )
    if action.command:
        label = f"your command: {action.command}"
        return _Draft("call", label, _lines(action.command), least_tokens=_LEAST_CALL_TOKENS)
    texts = [value for value in call.arguments.values() if isinstance(value, str)]
    return _Draft(
        "call", _call_words(action), _lines("\n".join(texts)), least_tokens=_LEAST_CALL_TOKENS
    )


def _call_words(action: Action) -> str:
    values = (f"{name}={_opening(str(value))}" for name, value in action.arguments.items())
    return " ".join((action.tool, *values))


def _opening(text: str, most_chars: int = _OPENING_CHARS) -> str:
    """The beginning of `text` on one line."""
    line = " ".join(text[: 4 * most_chars].split())
    return line if len(line) <= most_chars else f"{line[:most_chars]}…"


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.removesuffix("\n").split("\n"))
