"""Pages of help and state: pure data, drawn by `PageScreen`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.agent.context_files import ContextFile
from agent_tui.agent.decision_log import Decided
from agent_tui.agent.trust import WithheldFile
from agent_tui.messages import ToolSpec
from agent_tui.ui.commands.registry import Command
from agent_tui.ui.status_bar import short_path

if TYPE_CHECKING:
    from agent_tui.agent.approval import Approvals

KEYS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Writing",
        (
            ("enter", "send; while a turn runs: queue"),
            ("shift+enter, ctrl+j, \\ enter", "new line"),
            ("/ @ !", "commands, files, run a shell command (!! keeps it from the model)"),
            ("tab", "complete"),
            ("up, down", "earlier prompts, from the first or last line"),
            ("ctrl+r", "search earlier prompts"),
            ("ctrl+g", "write in $EDITOR"),
            ("alt+up", "take queued messages back"),
        ),
    ),
    (
        "Running",
        (
            ("esc", "close the menu, else stop what runs and keep the partial reply"),
            ("esc esc", "go back to an earlier message, while nothing runs (/tree)"),
            ("shift+tab", "next permission mode: ask, accept-edits, plan, full"),
            ("y a p n e", "answer an approval, once nothing was typed for a second"),
        ),
    ),
    (
        "Reading",
        (
            ("pageup, pagedown", "scroll the chat"),
            ("ctrl+home, ctrl+end", "first and last message"),
            ("ctrl+l", "back to the newest line"),
            ("ctrl+o", "unfold or fold tool output and summaries"),
            ("ctrl+t", "show or hide thinking"),
            ("drag, then ctrl+c", "select and copy"),
        ),
    ),
    (
        "Leaving",
        (
            ("ctrl+c", "clear the prompt; twice leaves"),
            ("ctrl+d", "leave, on an empty prompt"),
            ("ctrl+z", "suspend"),
        ),
    ),
)

_FIRST_KEYS = (
    ("enter / shift+enter", "send / new line"),
    ("@  !", "attach a file, run a shell command"),
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


def help_page(commands: Iterable[Command]) -> Page:
    """The keys one needs first, then every command."""
    rows = tuple(
        (f"/{entry.name} {entry.argument_hint}".rstrip(), _description(entry)) for entry in commands
    )
    return Page("Help", (Section("Keys", _FIRST_KEYS), Section("Commands", rows)))


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


def memory_page(files: Sequence[ContextFile], withheld: Sequence[WithheldFile], cwd: Path) -> Page:
    """The context files in force, the most general first, and what of the project is not."""
    if not files and withheld:
        rows: tuple[tuple[str, str], ...] = (("none", ""),)
    elif not files:
        rows = (("none", "Write AGENTS.md in this folder to tell the model how to work here."),)
    else:
        rows = tuple((_shown_path(file.path, cwd), _file_size(file)) for file in files)
    sections = [Section("", rows)]
    if withheld:
        kept_back = tuple((_shown_path(file.path, cwd), file.why) for file in withheld)
        sections.append(Section("Not in force (/trust)", kept_back))
    return Page("Context files in force", tuple(sections))


def _shown_path(path: Path, cwd: Path) -> str:
    if path.is_relative_to(cwd):
        return str(path.relative_to(cwd))
    return short_path(path, Path.home())


def _file_size(file: ContextFile) -> str:
    lines = file.text.count("\n") + 1
    return f"{lines:,} lines" + (", cut: it is too long" if file.was_cut else "")


_MODES = (
    ("plan", "reads only"),
    ("ask", "reads freely; asks before it writes or runs commands"),
    ("accept-edits", "also edits files here freely; asks before it runs commands"),
    ("full", "runs everything but what is always asked"),
)


_SOURCES = {"session": "this session", "project": "this project", "settings": "config.toml"}
_SHOWN_DECISIONS = 20


def permissions_page(approvals: "Approvals") -> Page:
    """The mode in force, the others, the rules and where they come from, the last decisions."""
    modes = tuple(
        (("● " if mode == approvals.mode else "  ") + mode, text) for mode, text in _MODES
    )
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
