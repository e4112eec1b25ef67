"""What one action shows or writes of a file, whatever its tool is called."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.sections.history import Done, HistoryEvent
from agent_tui.messages import JsonObject
from agent_tui.sessions.actions import Action, Output
from agent_tui.sessions.shell_files import programs_run

_NUMBERED = re.compile(r"[ \t]*(\d+)(?:\t|→|: |\| )")
_PLACED = re.compile(rf"{_NUMBERED.pattern}|(?:[^\s:./]*[./][^\s:]*[:-])?\d+[:-]")
_CUT_NOTE = re.compile(
    r"^[\[(<].*(?:offset|truncated|clipped|more lines|left out|not shown).*$",
    re.IGNORECASE,
)
_ENDING = re.compile(r"\n\[exit code 0\](?:\n\[.*\])*\Z")
"""What follows the output of a command."""

_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*\Z", re.DOTALL)
"""What Claude Code adds after a file, for the model."""

_LAST_LINES = 4
_PATH = r"(?P<path>'[^'\n]+'|\"[^\"\n]+\"|[\w./~@+-]+)"
_ALONE = r"^\s*(?:cd\s+[^\s&;|]+\s*(?:&&|;|\n)\s*)*"
"""May precede a command that shows a file; after others, the output would be more than the file."""

_SHOWN = re.compile(
    rf"{_ALONE}(?:cat(?:\s+-n)?|nl(?:\s+-\S+)*|less)\s+{_PATH}"
    r"(?:\s*\|\s*sed\s+-n\s+['\"]?(?P<a>\d+),(?P<b>\d+)p['\"]?|\s*\|\s*head\s+-n?\s*(?P<h>\d+))?\s*$"
)
_SED_SHOWN = re.compile(rf"{_ALONE}sed\s+-n\s+['\"]?(?P<a>\d+),(?P<b>\d+)p['\"]?\s+{_PATH}\s*$")
_HEAD_SHOWN = re.compile(rf"{_ALONE}head\s+(?:-n\s*|-)(?P<h>\d+)\s+{_PATH}\s*$")
_HEREDOC = re.compile(
    rf"\bcat\s*(?:>\s*{_PATH}\s*<<-?\s*['\"]?(?P<end>\w+)['\"]?"
    rf"|<<-?\s*['\"]?(?P<end2>\w+)['\"]?\s*>\s*(?P<path2>[\w./~@+-]+))[^\n]*\n(?P<body>.*?)\n(?:(?P=end)|(?P=end2))\s*(?:\n|$)",
    re.DOTALL,
)
_FOLDER = re.compile(r"^\s*cd\s+(?P<path>[\w./~@+-]+)\s*(?:&&|;|\n)")
_SEARCHES, _CUTS = ("grep", "rg"), frozenset({"head", "tail"})
_FOUND_LINE = re.compile(r"^(?:([^:\n./]*[./][^:\n]*?)[:-])?(\d+)[:-](.*)$", re.MULTILINE)
_LEAST_FOUND = 4
"""A found line with fewer lines around it is a match, and no part that anyone looked at."""
_WRAPPED = re.compile(r"<output>\n?(.*?)\n?</output>", re.DOTALL)
OLD_NAMES = ("old", "old_string", "oldText", "old_str", "old_text", "search", "oldString")
_NEW_NAMES = ("new", "new_string", "newText", "new_str", "new_text", "replace", "newString")
_EVERYWHERE_NAMES = ("all", "replace_all", "replaceAll")
_BODY_NAMES = ("content", "file_text", "contents", "text")


@dataclass(frozen=True, slots=True)
class FileView:
    """The part of a file that an output shows: its path as named there, and lines from `first`."""

    path: str
    first: int
    lines: tuple[str, ...]
    is_whole: bool
    is_found: bool = False


def file_view(output: Output) -> FileView | None:
    """The file view in `output`; None if it does not show a file."""
    action = output.action
    if output.has_failed or output.exit_code not in (None, 0):
        return None
    if not action.command:
        if action.kind != "read" or not action.path:
            return None
        first, lines, is_cut = _parse_view(output.text)
        asked = _first_asked(action.arguments)
        is_part = asked is not None or is_cut or output.is_truncated
        return FileView(action.path, first or asked or 1, tuple(lines), not is_part)
    command = action.command
    shown = _SED_SHOWN.search(command) or _HEAD_SHOWN.search(command) or _SHOWN.search(command)
    if shown is None:
        return None
    ranges = shown.groupdict()
    first, lines, is_cut = _parse_view(_ENDING.sub("", _inner(output.text)))
    start = int(ranges.get("a") or 0)
    is_part = bool(start or ranges.get("h")) or is_cut or output.is_truncated
    path = within(folder_of(command), shown["path"])
    return FileView(path, first or start or 1, tuple(lines), not is_part)


def file_views(output: Output) -> Iterator[FileView]:
    """The parts of files that an output shows: a `file_view`, or what a search found around."""
    action = output.action
    if (view := file_view(output)) is not None:
        yield view
    if view is not None or output.has_failed or output.exit_code not in (None, 0):
        return
    programs = [one for one in programs_run(action.command) if one[0] != "cd"]
    names = [name for name, _ in programs] or [action.tool.lower()]
    if not names[0].endswith(_SEARCHES) or not _CUTS.issuperset(names[1:]):
        return
    alone = programs[0][1][-1] if programs and programs[0][1] else action.path
    found: list[tuple[str, int, list[str]]] = []
    for path, number, line in _FOUND_LINE.findall(output.text):
        last = found[-1] if found else ("", 0, list[str]())
        if (path or alone, int(number)) == (last[0], last[1] + len(last[2])):
            last[2].append(line)
        else:
            found.append((path or alone, int(number), [line]))
    for path, first, lines in found:
        if len(lines) >= _LEAST_FOUND:
            at = within(folder_of(action.command), path)
            yield FileView(at, first, tuple(lines), is_whole=False, is_found=True)


def path_shown_by(event: HistoryEvent, folders: Sequence[str]) -> str:
    """The file that `event` showed; empty if it showed none."""
    view = file_view(event.output) if isinstance(event, Done) else None
    return normalise_path(view.path.strip("'\""), folders) if view is not None else ""


def _parse_view(text: str) -> tuple[int, list[str], bool]:
    """The number of the first line (0 if unnumbered), the lines, and whether more follow."""
    text = _REMINDER.sub("", text)
    lines = text.removesuffix("\n").split("\n")
    is_cut = False
    for _ in range(_LAST_LINES):
        if lines and (not lines[-1].strip() or _CUT_NOTE.match(lines[-1].strip())):
            is_cut = is_cut or bool(lines[-1].strip())
            lines.pop()
    numbered = [_NUMBERED.match(line) for line in lines]
    if lines and sum(match is not None for match in numbered) * 10 >= len(lines) * 9:
        first = next(int(match[1]) for match in numbered if match is not None)
        plain = [
            line[match.end() :] if match is not None else line
            for line, match in zip(lines, numbered, strict=True)
        ]
        return first, plain, is_cut
    return 0, lines, is_cut


def _first_asked(arguments: JsonObject) -> int | None:
    """The first line that a partial read asked for; None if it asked for the whole file."""
    view = arguments.get("view_range")
    if isinstance(view, list) and view and isinstance(view[0], int):
        return max(view[0], 1)
    offset, limit = arguments.get("offset"), arguments.get("limit")
    if isinstance(offset, int) or isinstance(limit, int):
        return max(offset, 1) if isinstance(offset, int) else 1
    return None


def edits_in(arguments: JsonObject) -> list[tuple[str, str, bool]]:
    """Old and new text of each edit in a call, and whether it applies everywhere."""
    listed = arguments.get("edits")
    parts: list[JsonValue] = [arguments, *(listed if isinstance(listed, list) else ())]
    found: list[tuple[str, str, bool]] = []
    for part in parts:
        if not isinstance(part, dict):
            continue
        old, new = _first_text(part, OLD_NAMES), _first_text(part, _NEW_NAMES)
        if old or new:
            everywhere = any(part.get(name) is True for name in _EVERYWHERE_NAMES)
            found.append((old or "", new or "", everywhere))
    return found


def text_to_write(arguments: JsonObject) -> str | None:
    """The complete file text that a call writes; None if it has none."""
    return _first_text(arguments, _BODY_NAMES)


def text_of_change(action: Action) -> str:
    """What a call writes into its file: the whole text, the new texts of its edits, or a patch."""
    new = [text for _, text, _ in edits_in(action.arguments)] or [text_to_write(action.arguments)]
    patch = [v for v in action.arguments.values() if isinstance(v, str) and "*** " in v]
    return "\n".join(text for text in (*new, *patch) if text)


def file_in_command(command: str) -> tuple[str, str] | None:
    """Path and text of the file that `command` writes with a here-document; None if it does not."""
    if "<<" not in command or (found := _HEREDOC.search(command)) is None:
        return None
    return within(folder_of(command), found["path"] or found["path2"]), found["body"]


def plain_lines(text: str) -> list[tuple[str, str]]:
    """The lines of `text`, each as it is and without its line number or the place of a match."""
    return [
        (line, line[number.end() :] if (number := _PLACED.match(line)) else line)
        for line in text.split("\n")
    ]


def line_number(line: str) -> str:
    """The number before `line` in a view; empty if it has none."""
    number = _NUMBERED.match(line)
    return number[1] if number else ""


def path_of_match(line: str) -> str:
    """The file that a search found `line` in; empty if the line names none."""
    found = _FOUND_LINE.match(line)
    return (found and found[1]) or ""


def _first_text(arguments: JsonObject, names: Sequence[str]) -> str | None:
    return next((v for name in names if isinstance(v := arguments.get(name), str)), None)


def _inner(text: str) -> str:
    found = _WRAPPED.search(text)
    return found[1] if found else text


def folder_of(command: str) -> str:
    """The folder that `command` first changes to, with a trailing slash."""
    found = _FOLDER.match(command)
    return f"{found['path']}/" if found else ""


def within(folder: str, path: str) -> str:
    """`path`, without quotes, as a command names it that first changed to `folder`."""
    plain = path.strip("'\"")
    return plain if plain.startswith(("/", "~")) else f"{folder}{plain}"
