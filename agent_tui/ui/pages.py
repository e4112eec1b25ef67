"""Pages of help and state: pure data, drawn by `PageScreen`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_tui.messages import ToolSpec
from agent_tui.permissions.decision_log import Decided
from agent_tui.ui.commands.registry import Command

if TYPE_CHECKING:
    from agent_tui.permissions.engine import Approvals

KEYS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Writing",
        (
            ("enter", "send; while a turn runs: queue"),
            ("shift+enter, ctrl+j, \\ enter", "new line; alt+enter and ctrl+enter too"),
            ("/ @ !", "commands, files, run a shell command (!! keeps it from the model)"),
            ("tab", "complete; in a menu: take what is marked"),
            ("up, down", "earlier prompts, from the first or last line; in a menu: move"),
            ("ctrl+r", "search earlier prompts"),
            ("ctrl+g", "write in $EDITOR"),
            ("alt+up", "take queued messages back"),
            ("alt+b, alt+f", "a word left or right"),
            ("ctrl+w, ctrl+u, ctrl+k", "delete a word, to the start, to the end of the line"),
            ("ctrl+_", "undo"),
        ),
    ),
    (
        "Running",
        (
            ("ctrl+p", "find any command or action; in a menu: up, as ctrl+n is down"),
            ("esc", "close the menu, else stop what runs and keep the partial reply"),
            ("esc esc", "go back to an earlier message, while nothing runs (/tree)"),
            ("shift+tab", "next permission mode: ask, accept-edits, plan, full"),
            (
                "y a p n e",
                "answer an approval, once nothing was typed for a second; up, down scroll it",
            ),
        ),
    ),
    (
        "Reading",
        (
            ("pageup, pagedown", "scroll the chat"),
            ("ctrl+home, ctrl+end", "first and last message"),
            ("ctrl+l", "back to the newest line"),
            ("ctrl+f", "search the chat"),
            ("ctrl+o", "unfold or fold tool output and summaries; on the mark of a paste: open it"),
            ("ctrl+t", "show or hide thinking"),
            ("drag, then ctrl+c", "select and copy; /scrollback hands all of it to the terminal"),
            ("alt+m", "leave the mouse to the terminal, or take it back (/mouse)"),
        ),
    ),
    (
        "Leaving",
        (
            ("ctrl+c", "clear the prompt; twice leaves"),
            ("ctrl+d", "leave, on an empty prompt"),
            ("ctrl+q", "leave at once"),
            ("ctrl+z", "suspend; fg in the shell comes back"),
        ),
    ),
)

_FIRST_KEYS = (
    ("enter / shift+enter", "send / new line"),
    ("@  !", "attach a file, run a shell command"),
    ("ctrl+p", "find any command or action"),
    ("esc", "stop what runs; the partial reply is kept"),
    ("shift+tab", "change what asks for approval"),
    ("ctrl+c twice", "leave; the session can be resumed"),
)


@dataclass(frozen=True, slots=True)
class Section:
    """Rows of two columns under a heading."""

    heading: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A titled list of sections."""

    title: str
    sections: tuple[Section, ...]


def help_page(commands: Sequence[Command], left_out: Sequence[tuple[str, str]] = ()) -> Page:
    """The keys one needs first, then every command, then those that prompt files make.

    Args:
        commands: All of them.
        left_out: Prompt files that make none, and why.
    """
    own = [entry for entry in commands if entry.source == "program"]
    others = [entry for entry in commands if entry.source != "program"]
    sections = [Section("Keys", _FIRST_KEYS), Section("Commands", tuple(map(_help_row, own)))]
    if others:
        sections.append(Section("From prompt files", tuple(map(_help_row, others))))
    if left_out:
        sections.append(Section("Prompt files that make no command", tuple(left_out)))
    return Page("Help", tuple(sections))


def _help_row(entry: Command) -> tuple[str, str]:
    return f"/{entry.name} {entry.argument_hint}".rstrip(), _description(entry)


def _description(entry: Command) -> str:
    also = ", ".join(f"/{alias}" for alias in entry.aliases)
    return f"{entry.description} (also {also})" if also else entry.description


def keys_page() -> Page:
    """Every key."""
    return Page("Keys", tuple(Section(heading, rows) for heading, rows in KEYS))


def tools_page(offered: Sequence[ToolSpec], specs: Sequence[ToolSpec]) -> Page:
    """The tools the model is offered, and those of `specs` that its window has no room for.

    Each with the first sentence of its full description.
    """
    names = {spec.name for spec in offered}
    rows = [(spec.name, _first_sentence(spec.description)) for spec in specs]
    has = tuple(row for row in rows if row[0] in names)
    left_out = tuple(row for row in rows if row[0] not in names)
    sections = [Section("", has)]
    if left_out:
        sections.append(Section("Left out: the model's window is too small", left_out))
    return Page("Tools the model has", tuple(sections))


def _first_sentence(text: str) -> str:
    line = " ".join(text.strip().partition("\n\n")[0].split())
    sentence, dot, _ = line.partition(". ")
    return sentence + dot.strip()


MODES = (
    ("plan", "reads only"),
    ("ask", "reads freely; asks before it writes or runs commands"),
    ("accept-edits", "also edits files here freely; asks before it runs commands"),
    ("full", "runs everything but what is always asked"),
)


_SOURCES = {"session": "this session", "project": "this project", "settings": "config.toml"}
_SHOWN_DECISIONS = 20


def permissions_page(approvals: "Approvals") -> Page:
    """The mode in force, the others, the rules and where they come from, the last decisions."""
    modes = tuple((("● " if mode == approvals.mode else "  ") + mode, text) for mode, text in MODES)
    rows = [
        (rule.decision, f"{rule}   {_SOURCES.get(rule.source, rule.source)}")
        for rule in approvals.rules
    ]
    if not rows:
        rows = [("none", "Rules go into config.toml, or are made when an approval is answered.")]
    sections = [
        Section("Mode (/permissions MODE or shift+tab)", modes),
        Section("Rules, deny wins (/permissions remove takes one back)", tuple(rows)),
    ]
    if decided := approvals.log.latest[:_SHOWN_DECISIONS]:
        sections.append(Section("Decided last", tuple(_decision_row(one) for one in decided)))
    return Page("Permissions", tuple(sections))


def _decision_row(decided: Decided) -> tuple[str, str]:
    """When and what was decided; about what, by whom and why."""
    at = decided.decided_at.astimezone().strftime("%H:%M:%S")
    why = f": {decided.why}" if decided.why else ""
    what = " ".join(decided.what.split())
    return f"{at} {decided.decision}", f"{decided.tool}: {what}   by {decided.by}{why}"
