"""What a conversation did to files, told from its results alone: created, modified, deleted."""

import re
import shlex
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.compaction.ledger.files import normalise_path, touched_by_person, touched_files
from agent_tui.compaction.tiers.model import Action, Output, Unit
from agent_tui.messages import BashExecutionMessage, FileTouches, ToolCall, ToolResultMessage

ChangeKind: TypeAlias = Literal["created", "modified", "deleted"]

_SAYS_CREATED = re.compile(r"\b(?:creat(?:ed|ing)|new file)\b", re.IGNORECASE)
_COUNTS = re.compile(r"[+]\d+ -\d+")
_OPENING_CHARS = 200
_REMOVES = re.compile(r"(?:^|[;&|\n])\s*(?:sudo )?(?:git )?rm\b([^;&|\n<>]*)")
_NO_PLAIN_PATH = re.compile(r"^-|[*?{}$`\[\]]")
_DELETED_BY_PATCH = re.compile(r"^\*\*\* Delete File: (.+)$", re.MULTILINE)
_OLD_TEXTS = ("old_string", "old_str", "oldText", "old_text", "old", "search")
_NEW_TEXTS = ("new_string", "new_str", "newText", "new_text", "new", "replace")
_WHOLE_TEXTS = ("content", "file_text", "contents", "text", "code_edit")


@dataclass(frozen=True, slots=True)
class Modification:
    """One change of one file.

    Args:
        kind: What it did.
        number: Which output of the conversation told of it, counted from 1.
        at_ms: When, in milliseconds since 1970.
        lines: How much: ``500 lines`` or ``+3 -1``; empty where that cannot be told.
        todo: The step of the plan that was being worked on.
    """

    kind: ChangeKind
    number: int
    at_ms: int
    lines: str = ""
    todo: str = ""


@dataclass(frozen=True, slots=True)
class Modifications:
    """All changes, oldest first, by file in the form of `normalise_path`."""

    by_file: Mapping[str, Sequence[Modification]]

    def of(self, file: str, number: int) -> Modification | None:
        """What the output `number` tells of `file`."""
        return next((m for m in self.by_file.get(file, ()) if m.number == number), None)

    def since(self, file: str, number: int) -> Modification | None:
        """The newest change of `file` after the output `number`; None where it is as it was."""
        changes = self.by_file.get(file, ())
        return changes[-1] if changes and changes[-1].number > number else None

    def count_since(self, file: str, number: int) -> int:
        """How many changes of `file` came after the output `number`."""
        changes = self.by_file.get(file, ())
        return len(changes) - bisect_right([change.number for change in changes], number)


def read_modifications(units: Iterable[Unit], folders: Sequence[str]) -> Modifications:
    """The changes that the successful calls in `units` made, in their order.

    Args:
        units: The conversation, oldest first.
        folders: Names of the working folder, as for `normalise_path`.
    """
    found: dict[str, list[Modification]] = {}
    seen: set[str] = set()
    for unit in units:
        output = unit.output
        if output is None:
            continue
        touches = _touches(unit, output)
        seen.update(_normal(touches.read, folders))
        for file, kind in _changes(touches, output, folders, seen):
            change = Modification(
                kind=kind,
                number=output.number,
                at_ms=unit.message.timestamp,
                lines=lines_changed(output) if kind != "deleted" else "",
                todo=output.todo,
            )
            found.setdefault(file, []).append(change)
            (seen.discard if kind == "deleted" else seen.add)(file)
    return Modifications(found)


def lines_changed(output: Output) -> str:
    """How much a write or an edit changed, by what it says or else by what was asked for."""
    if (counts := _COUNTS.search(output.summary)) and output.action.kind == "edit":
        return counts[0]
    arguments = output.action.arguments
    if output.action.kind == "write":
        whole = next((v for k in _WHOLE_TEXTS if isinstance(v := arguments.get(k), str)), None)
        return "" if whole is None else _counted(whole)
    if output.action.kind == "edit":
        old, new = _first_text(arguments, _OLD_TEXTS), _first_text(arguments, _NEW_TEXTS)
        if old or new:
            return f"+{_line_count(new)} -{_line_count(old)}"
    return ""


def _touches(unit: Unit, output: Output) -> FileTouches:
    match unit.message:
        case ToolResultMessage() as result:
            call = ToolCall(
                id="", name=output.action.tool or "bash", arguments=output.action.arguments
            )
            return touched_files(result, call)
        case BashExecutionMessage() as ran:
            return touched_by_person(ran)
        case _:
            action = output.action
            succeeded = not output.has_failed
            call = ToolCall(id="", name=action.tool, arguments=action.arguments)
            made_up = ToolResultMessage(tool_call_id="", tool_name=action.tool)
            return touched_files(made_up, call) if succeeded else FileTouches()


def _changes(
    touches: FileTouches, output: Output, folders: Sequence[str], seen: set[str]
) -> Iterator[tuple[str, ChangeKind]]:
    deleted = _deleted(output.action, folders) if not output.has_failed else frozenset[str]()
    says_created = bool(_SAYS_CREATED.search(output.summary or output.text[:_OPENING_CHARS]))
    for file in _normal(touches.written, folders):
        if file not in deleted:
            is_new = says_created if output.action.kind != "run" else file not in seen
            yield file, "created" if is_new or file not in seen else "modified"
    for file in _normal(touches.edited, folders):
        if file not in deleted and file not in _normal(touches.written, folders):
            yield file, "modified"
    for file in sorted(deleted):
        yield file, "deleted"


def _deleted(action: Action, folders: Sequence[str]) -> frozenset[str]:
    """Files that a plain ``rm`` or a patch takes away; globs and folders are not followed."""
    paths: list[str] = []
    for operands in _REMOVES.findall(action.command):
        try:
            words = shlex.split(operands)
        except ValueError:  # a quote that nothing closes
            continue
        paths += [word for word in words if not _NO_PLAIN_PATH.search(word)]
    if "patch" in action.tool.lower():
        texts = (value for value in action.arguments.values() if isinstance(value, str))
        paths += [path.strip() for text in texts for path in _DELETED_BY_PATCH.findall(text)]
    return frozenset(_normal(paths, folders))


def _normal(paths: Iterable[str], folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(n for path in paths if (n := normalise_path(path, folders))))


def _first_text(arguments: Mapping[str, object], names: Sequence[str]) -> str:
    return next((v for name in names if isinstance(v := arguments.get(name), str)), "")


def _counted(text: str) -> str:
    lines = _line_count(text)
    return "1 line" if lines == 1 else f"{lines:,} lines"


def _line_count(text: str) -> int:
    return text.removesuffix("\n").count("\n") + 1 if text else 0
