"""Failures that no later success has resolved."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent_tui.compaction.sections.commands import (
    Run,
    covers_all,
    is_looking_around,
    runs_of,
    without_folder,
)
from agent_tui.compaction.sections.history import Done, Event
from agent_tui.compaction.tiers.model import Output
from agent_tui.compaction.tiers.outputs import error_text, last_line, looks_like_error

_MOST = 12


@dataclass(frozen=True, slots=True)
class OpenError:
    """The runs that failed; `text` is one line with the command and its message."""

    runs: tuple[Run, ...]
    text: str


def open_errors(events: Iterable[Event], earlier: Sequence[str] = ()) -> tuple[str, ...]:
    """Errors, oldest first, that no later success of the same program on the same target resolved.

    Args:
        events: The conversation.
        earlier: Errors passed on by a parent session, each as ``$ command => message``, oldest
            first; they are resolved in the same way.
    """
    found = _still_open(events, [OpenError(_runs_of_line(line), line) for line in earlier])
    return tuple(error.text for error in found[-_MOST:])


def _still_open(events: Iterable[Event], earlier: Sequence[OpenError]) -> list[OpenError]:
    found = list(earlier)
    for event in events:
        if not isinstance(event, Done):
            continue
        runs = _runs_of(event.output)
        has_failed = _has_failed(event.output)
        if has_failed:
            message = error_text(event.output.text)
            if not message or _is_a_look(event.output):
                continue
            found = [error for error in found if error.runs != runs]
            text = f"{_label(event.output)} => {message}"
            found.append(OpenError(runs, text))
        else:
            found = [error for error in found if not covers_all(runs, error.runs)]
    return found


def _has_failed(output: Output) -> bool:
    if output.has_failed:
        return True
    return output.exit_code not in (None, 0) and looks_like_error(output.text)


def _is_a_look(output: Output) -> bool:
    """Whether `output` answers a lookup: no search match or a missing file is no error.

    What a shown file says of errors is none either; what the command itself says comes last.
    """
    command = output.action.command
    return bool(command) and is_looking_around(command) and "rror" not in last_line(output.text)


def _runs_of(output: Output) -> tuple[Run, ...]:
    action = output.action
    if action.command:
        return runs_of(action.command)
    return (_call(action.tool, action.path),)


def _call(tool: str, path: str) -> Run:
    return Run((tool,), frozenset([path] if path else ()))


def _label(output: Output) -> str:
    action = output.action
    return (
        f"$ {without_folder(action.command)}" if action.command else f"{action.tool} {action.path}"
    )


def _runs_of_line(line: str) -> tuple[Run, ...]:
    label = line.partition(" => ")[0]
    if label.startswith("$ "):
        return runs_of(label[2:])
    tool, _, path = label.partition(" ")
    return (_call(tool, path),)
