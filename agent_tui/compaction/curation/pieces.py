"""The numbered pieces of a conversation that can be kept: files as they are now, and texts."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent_tui.compaction.curation.present_lines import Run, present_runs
from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.sections.commands import (
    is_commit,
    message_of_commit,
    shows_uncommitted,
    without_folder,
    without_view,
)
from agent_tui.compaction.sections.failures import has_failed
from agent_tui.compaction.sections.file_states import FileState, ReadFile
from agent_tui.compaction.sections.file_views import file_in_command, file_view, text_of_change
from agent_tui.compaction.tiers.model import UNEDITED, Unit
from agent_tui.file_outline import outline
from agent_tui.messages import AssistantMessage, ToolCall, ToolResultMessage, UserMessage
from agent_tui.sessions.actions import Action, Output
from agent_tui.sessions.outputs import action_of, is_test, last_line
from agent_tui.sessions.shell_files import files_in_patch
from agent_tui.tokens import TokenCounter

_LEAST_TOKENS = 8
_LEAST_TOKENS_OF = {"reply": 60, "call": 150, "kept": 0}
"""Of a shorter reply, or a shorter command or failed change, the notes say more."""

_LABEL_CHARS = 110
_OPENING_CHARS = 50
_END_CHARS = 40

_LONG_LINES, _STEP_LINES = 100, 50
"""Of a longer piece, the tokens of so many lines are stated."""

_OUTDATED = "names lines of files that were edited since"


Kind: TypeAlias = Literal["file", "said", "reply", "call", "result", "kept"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One text that can be kept, whole or in part.

    Args:
        number: The number by which the model refers to it.
        entry_id: Its entry in the log; empty if there is none that has all of it.
        kind: Its origin: a file, the user, a reply's text, text that a call writes, a result, or an
            earlier compaction.
        label: Description: ``file src/db.py``.
        lines: Its text, without the line numbers that a tool puts before them.
        first: Number of the first line; of a file, as it is now.
        tokens: Its size.
        path: The normalized path of the file it shows; empty for other texts.
        remark: A note for the model: ``exit 1``.
        series: Texts of one series are alike: ``commits``, the command, or the tool that a
            call asks.
        views: Of a file, the entries that show or change it, oldest first; it is offered in place
            of them.
        outline: Lines and titles of its parts that the model has not seen under these numbers.
        is_placed: Whether the place of its lines in the file is known.
        is_outdated: Whether it names lines of files that were edited afterwards.
        is_lasting: Whether the user wants it kept through all compactions.
        is_answered: Whether the user said it, or answered it.
    """

    number: int
    entry_id: str
    kind: Kind
    label: str
    lines: tuple[str, ...]
    first: int = 1
    tokens: int = 0
    path: str = ""
    remark: str = ""
    series: str = ""
    views: tuple[str, ...] = ()
    outline: tuple[str, ...] = ()
    is_placed: bool = True
    is_outdated: bool = False
    is_lasting: bool = False
    is_answered: bool = False

    @property
    def last(self) -> int:
        """Number of the last line."""
        return self.first + len(self.lines) - 1

    @property
    def source(self) -> str:
        """The origin of its text, as an excerpt states it."""
        is_failure = self.kind in ("result", "call") and self.remark
        return f"{self.label} ({self.remark})" if is_failure else self.label

    @property
    def line(self) -> str:
        """The piece's line in the list for the model."""
        return f"#{self.number} {self.label}{self.extent}"

    @property
    def span(self) -> str:
        """The numbers of its lines, if it has several."""
        return f" {self.first}-{self.last}" if len(self.lines) > 1 else ""

    @property
    def extent(self) -> str:
        """Its lines and their size, and what else the model must know."""
        each = self.tokens * _STEP_LINES // len(self.lines)
        density = f" ({each:,} per {_STEP_LINES} lines)" if len(self.lines) > _LONG_LINES else ""
        old = _OUTDATED if self.is_outdated else ""
        remarks = "".join(f", {remark}" for remark in (self.remark, old) if remark)
        return f"{self.span}, {self.tokens:,} tokens{density}{remarks}"


def read_pieces(
    units: Sequence[Unit],
    earlier: Sequence[Piece],
    files: Sequence[FileState],
    folders: Sequence[str],
    counter: TokenCounter,
    *,
    on_disk: ReadFile | None = None,
    shown: Set[str] = frozenset(),
    said: Set[str] = frozenset(),
) -> tuple[Piece, ...]:
    """What can be kept of a conversation: its files as they are now, then its texts, oldest first.

    A file stands there once for each part that is known, in place of all reads and changes of it;
    files with changes that are not committed come first, then those touched last.

    Args:
        units: Its messages, as they were written.
        earlier: The pieces that the previous compaction kept.
        files: The files at the end of the conversation, the most recently touched first.
        folders: Paths of the working folder.
        counter: Counts their tokens.
        on_disk: Reads a file of the working folder; None if files are unavailable.
        shown: Files that the summary before the conversation shows.
        said: Entries that the user wrote, and replies that the user answered.
    """
    failures = {
        unit.message.tool_call_id: unit.output.failure
        for unit in units
        if isinstance(unit.message, ToolResultMessage) and unit.output
    }
    texts = [text for unit in units for text in _texts_of(unit, failures, said)]
    reader = _FilePieces(files, texts, earlier, folders, on_disk)
    known = {file.path for file in files}
    kept = [piece for piece in earlier if piece.is_lasting or piece.path not in known]
    found = [*reader.pieces({*shown, *(piece.path for piece in earlier)}), *kept]
    listed: dict[tuple[str, tuple[str, ...]], Piece] = {}
    for at, piece in enumerate(texts):
        if reader.file_of(piece) is None:
            label = _shorten(piece.label.replace(f"{folders[0]}/", ""))
            listed.pop((label, piece.lines), None)  # the same result counts where it is last
            is_outdated = piece.kind == "result" and reader.is_outdated(piece, at)
            is_answered = piece.kind in ("said", "reply") and piece.entry_id in said
            listed[label, piece.lines] = replace(
                piece, label=label, is_outdated=is_outdated, is_answered=is_answered
            )
    numbered: list[Piece] = []
    for piece in (*found, *listed.values()):
        tokens = piece.tokens or counter.count_text("\n".join(piece.lines))
        if tokens >= _LEAST_TOKENS_OF.get(piece.kind, _LEAST_TOKENS):
            numbered.append(replace(piece, number=len(numbered) + 1, tokens=tokens))
    return tuple(numbered)


class _FilePieces:
    """The files of a conversation as pieces, in place of the `texts` that show or change them."""

    def __init__(
        self,
        files: Sequence[FileState],
        texts: Sequence[Piece],
        earlier: Sequence[Piece],
        folders: Sequence[str],
        on_disk: ReadFile | None,
    ) -> None:
        self._files = {name: file for file in files for name in (*file.old_paths, file.path)}
        self._earlier = earlier
        self._folders = folders
        self._on_disk = on_disk
        self._present: dict[str, list[Run]] = {}
        self._views: defaultdict[str, list[Piece]] = defaultdict(list)
        self._changed: dict[str, int] = {}
        for at, piece in enumerate(texts):
            if (file := self.file_of(piece)) is not None:
                self._views[file.path].append(piece)
                if piece.kind == "call":
                    self._changed[file.path] = at

    def pieces(self, shown: Set[str]) -> Iterator[Piece]:
        """The known parts of the files in the conversation, and of those in `shown`."""
        files = {file.path: file for file in self._files.values()}
        wanted = [
            file
            for file in files.values()
            if file.path in shown or file.path in self._views or file.is_changed_by_text
        ]
        for file in sorted(wanted, key=lambda file: not file.is_changed or file.is_committed):
            for first, lines in self._runs(file.path):
                text, views = "\n".join(lines), self._views[file.path]
                whole = [view.entry_id for view in views if text in "\n".join(view.lines)]
                seen = self._seen(file.path)
                unseen = {
                    n: t for n, t in enumerate(lines, first) if t.strip() and seen.get(n) != t
                }
                yield Piece(
                    number=0,
                    entry_id=whole[-1] if whole else "",
                    kind="file",
                    label=f"file {file.path}",
                    lines=tuple(lines),
                    first=max(first, 1),
                    path=file.path,
                    views=tuple(view.entry_id for view in views),
                    remark=self._remark(file, is_placed=first > 0),
                    outline=outline(file.path, first, lines, unseen.keys()) if first else (),
                    is_placed=first > 0,
                )

    def file_of(self, piece: Piece) -> FileState | None:
        """The file that offers what `piece` shows or wrote, as it is now."""
        return self._files.get(normalise_path(piece.path, self._folders)) if piece.path else None

    def _runs(self, path: str) -> list[Run]:
        if path not in self._present:
            self._present[path] = present_runs(self._files[path], self._on_disk)
        return self._present[path]

    def is_outdated(self, piece: Piece, at: int) -> bool:
        """Whether `piece`, the text at index `at`, names lines of a file that was changed since.

        A search that quotes a line which is still there is not outdated.
        """
        text = "\n".join((piece.label, *piece.lines))
        for path, changed in self._changed.items():
            if changed < at or path not in text:
                continue
            now = {
                number: line.strip()
                for first, run in self._runs(path)
                for number, line in enumerate(run, first)
            }
            name = re.escape(path)
            quoted = re.findall(rf"{name}[:-](\d+)[:-](?:\d+[:-])?(.*)", text)
            under = rf"(?:^|\s|=){name}:?\n((?:(?:\d+[:-]|--).*(?:\n|$))+)"
            below = re.findall(under, text, re.MULTILINE)
            quoted += re.findall(r"^(\d+)[:-](.*)", "\n".join(below), re.MULTILINE)
            if any(now.get(int(number)) != line.strip() for number, line in quoted):
                return True
        return False

    def _seen(self, path: str) -> dict[int, str]:
        """The lines that the model sees of a file, by the number under which it sees them."""
        return {
            number: line
            for view in self._views[path]
            if view.kind == "result" and not view.remark
            for number, line in enumerate(view.lines, view.first)
        }

    def _remark(self, file: FileState, *, is_placed: bool) -> str:
        """What the model must know of the file."""
        is_read = self._on_disk is not None and self._on_disk(file.path) is not None
        kept = [f"{piece.first}-{piece.last}" for piece in self._earlier if piece.path == file.path]
        remarks = (
            "" if is_read else file.doubt,
            "changed and not committed" if file.awaits_commit else "",
            f"kept by the last compaction: {', '.join(kept)}" if kept else "",
            "" if is_placed else "place unknown",
        )
        return ", ".join(filter(None, remarks))


def _texts_of(unit: Unit, failures: Mapping[str, str], said: Set[str]) -> Iterator[Piece]:
    """The texts of one message, unmeasured; the paths are as written.

    Text written by a call that failed is not in its file.
    """
    made = Piece(0, unit.entry_id, "said", "", ())
    masked = "masked" if unit.edited_tier > UNEDITED else ""
    if unit.output is not None:
        yield from _results(unit.output, replace(made, kind="result", remark=masked))
        return
    text = unit.message.text.strip()
    if isinstance(unit.message, AssistantMessage):
        label = f'you replied "{_opening(text)}"'
        yield replace(made, kind="reply", label=label, lines=_lines(text), remark=masked)
        for call in unit.message.tool_calls:
            yield _call(call, replace(made, kind="call", remark=failures.get(call.id, "")))
    elif isinstance(unit.message, UserMessage):
        who = "the user said" if unit.entry_id in said else "you were given"
        yield replace(made, label=f'{who} "{_opening(text)}"', lines=_lines(text), remark=masked)


def _results(output: Output, made: Piece) -> Iterator[Piece]:
    """The result of an action; none if it only echoes a file change."""
    action, failure = output.action, output.failure
    if (view := file_view(output)) is not None:
        path = view.path.strip("'\"")
        yield replace(made, label=f"read {path}", lines=view.lines, first=view.first, path=path)
    elif failure or (action.kind not in ("write", "edit") and last_line(output.text)):
        yield replace(
            made,
            label=_action_words(action),
            lines=_lines(output.text),
            remark=", ".join(filter(None, (failure, made.remark))),
            series=_series(output),
        )


def _series(output: Output) -> str:
    """What `output` has in common with others, of which the newest is mostly enough."""
    command = output.action.command
    if is_commit(output):
        return "commits"
    if shows_uncommitted(output):
        return "uncommitted changes"
    if is_test(command) and not output.failure and not has_failed(output):
        return "passing checks"
    return "" if output.failure else without_view(without_folder(command))


def _call(call: ToolCall, made: Piece) -> Piece:
    """The text that a call writes."""
    action = action_of(call)
    texts = [value for value in call.arguments.values() if isinstance(value, str)]
    path, label = "", _action_words(action)
    if action.kind in ("write", "edit"):
        texts = [text_of_change(action) or "\n".join(texts)]
        path = action.path or next(iter(files_in_patch(texts[0])), "")
        label = f"{action.tool} {path}"
    elif action.command:
        texts, label = [action.command], f"your command: {action.command}"
        if message := message_of_commit(action.command):
            texts, label = [message], "your commit message"
        path = (file_in_command(action.command) or ("",))[0]
    return replace(
        made,
        label=label,
        lines=_lines("\n".join(texts)),
        path="" if made.remark else path,
        series=f"calls of {action.tool}" if action.kind == "other" and not action.command else "",
    )


def _action_words(action: Action) -> str:
    if action.command:
        return f"$ {action.command}"
    values = (f"{name}={_opening(str(value))}" for name, value in action.arguments.items())
    return " ".join((action.tool, *values))


def _opening(text: str, most_chars: int = _OPENING_CHARS) -> str:
    """The beginning of `text` on one line, or the end of a path."""
    line = " ".join(text[: 4 * most_chars].split())
    if len(line) <= most_chars:
        return line
    is_path = "/" in line and " " not in line
    return f"…{line[-most_chars:]}" if is_path else f"{line[:most_chars]}…"


def _shorten(label: str) -> str:
    """`label` on one line, a long command without its middle."""
    if "\n" in label or len(label) <= _LABEL_CHARS or not label.startswith("$ "):
        return _opening(label, _LABEL_CHARS)
    return f"{label[: _LABEL_CHARS - _END_CHARS]}…{label[-_END_CHARS:]}"


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.removesuffix("\n").split("\n"))
