"""The way so far: the model's own sentences, and a line per action."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent_tui.compaction.ledger.files import files_of, normalise_path
from agent_tui.compaction.sections.commands import is_commit, is_looking_around, without_folder
from agent_tui.compaction.sections.history import (
    Done,
    HistoryEvent,
    Replied,
    Said,
    announces_only,
    with_short_paths,
    without_code,
)
from agent_tui.compaction.tiers.describe import outcome_line
from agent_tui.compaction.transcript import those_that_fit
from agent_tui.omissions import IMAGE_MARK, SENTENCE_END, one_line
from agent_tui.tokens import TokenCounter

_ITEM = r"[ \t]*(?:\d{1,3}[.)]|[-*•])"
_EMPTY_ITEM = re.compile(rf"\n{_ITEM}\s*\Z")
_MARK = re.compile(rf"{_ITEM}[ \t]+")
_PARAGRAPH = re.compile(rf".*:[ \t]*\n+(?:{_ITEM}[ \t].+(?:\n+|\Z))+|.+")
"""A line, with the list that it announces."""


def first_sentence(text: str, max_chars: int) -> str:
    """The beginning of `text` up to the end of its first sentence."""
    line = text.strip().partition("\n")[0]
    start = mark.end() if (mark := _MARK.match(line)) else 0
    end = SENTENCE_END.search(line, start)
    return one_line(line[: end.start() if end else None], max_chars)


_TEXT_CHARS = (1_200, 300, 120)
_SUBJECT_CHARS = (120, 90, 60)
_RESULT_CHARS = (120, 80, 0)
_LEAST_WORDS = 3
"""In the oldest steps, less, such as "Good point.", says nothing."""

_SAID_CHARS = 40
"""The messages themselves stand in a section of their own."""

_SENTENCE_START = re.compile(r"[.!?:]\s+|\n\s*")
_FILLED_BY_LEVEL = (0.6, 0.9, 1.0)
_SHOWN_PARTS = 4
_FORMS = frozenset({"output_mode", "type"})
"""Arguments of a search that say how to show the matches."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A message or reply, and the actions that followed."""

    lead: Said | Replied | None
    actions: tuple[Done, ...]


def way_so_far(
    events: Sequence[HistoryEvent],
    earlier: Sequence[str],
    room_tokens: int,
    counter: TokenCounter,
    folders: Sequence[str],
) -> list[str]:
    """The lines of the way, oldest first, shortened from the oldest on.

    The newest steps keep their sentences and a line per action. Earlier ones, and those before the
    newest commit, have shorter sentences and no line for actions that only read. The oldest
    keep their first sentence, unless it is very short, and the files they changed. Steps before
    those are left out.

    Args:
        events: The events to describe, oldest first.
        earlier: Lines passed on by a parent session, for the time before `events`.
        room_tokens: Limit of all together.
        counter: Counts their tokens.
        folders: Paths of the working folder, which are removed from paths.
    """
    blocks: list[list[str]] = []
    used, level = 0, 0
    steps = _steps(events)
    commits = (at for at, one in enumerate(steps) if any(is_commit(a.output) for a in one.actions))
    committed = max(commits, default=-1)
    left_out = 0
    for number in range(len(steps) - 1, -1, -1):
        while used > room_tokens * _FILLED_BY_LEVEL[level] and level < len(_FILLED_BY_LEVEL) - 1:
            level += 1
        lines = _step_lines(steps[number], max(level, number < committed), folders)
        tokens = counter.count_text("\n".join(lines)) + 1 if lines else 0
        if used + tokens > room_tokens:
            left_out = number + 1
            break
        blocks.append(lines)
        used += tokens
    more = () if left_out else reversed(earlier)
    kept = those_that_fit(more, room_tokens - used, lambda line: counter.count_text(line) + 1)
    told = _join_equal([*reversed(kept), *(line for block in reversed(blocks) for line in block)])
    if told and (left_out or len(kept) < len(earlier)):
        told.insert(0, "(earlier steps are left out; recall finds them by their words)")
    return told


def _join_equal(lines: Iterable[str]) -> list[str]:
    """`lines`, with one line for the same action again and again, such as edits of one file."""
    joined: list[str] = []
    for line in lines:
        said, mark, entry_id = line.rpartition(" [")
        is_equal = mark and joined and joined[-1].partition(" [")[0] == said
        if is_equal and said.startswith("- ") and entry_id.endswith("]"):
            joined[-1] += f"{mark}{entry_id}"
        else:
            joined.append(line)
    return joined


def _steps(events: Sequence[HistoryEvent]) -> list[_Step]:
    steps: list[_Step] = []
    lead: Said | Replied | None = None
    actions: list[Done] = []
    for event in events:
        if isinstance(event, Done):
            actions.append(event)
            continue
        if lead is not None or actions:
            steps.append(_Step(lead, tuple(actions)))
        lead, actions = event, []
    if lead is not None or actions:
        steps.append(_Step(lead, tuple(actions)))
    return steps


def _step_lines(step: _Step, level: int, folders: Sequence[str]) -> list[str]:
    lines: list[str] = []
    match step.lead:
        case Said(text=text):
            said = with_short_paths(text, folders)
            said = said.replace(IMAGE_MARK, "[image]")  # the mark is with the user's messages
            lines.append(f"[the user] {one_line(said, _SAID_CHARS)}")
        case Replied(text=text):
            if own := _own_words(text, level):
                lines.append(own)
        case None:
            pass
    if level == 0:
        return lines + [_action_line(action, level, folders) for action in step.actions]
    others = [action for action in step.actions if not _is_look(action)]
    if level > 1:
        others = [one for one in others if files_of(one).modified or is_commit(one.output)]
    return lines + [_action_line(action, level, folders) for action in others]


def _own_words(text: str, level: int) -> str:
    """What a reply says, in whole sentences where it is cut."""
    plain = without_code(text).strip()
    room = _TEXT_CHARS[level]
    if level and announces_only(plain):
        return ""
    if level == len(_TEXT_CHARS) - 1:
        firsts = (
            one_line(part, room) if "\n" in part.strip() else first_sentence(part, room)
            for part in _PARAGRAPH.findall(plain)
        )
        return next(
            (one for one in firsts if len(one.split()) >= _LEAST_WORDS and one[-1] != ":"), ""
        )
    if len(plain) <= room:
        return plain
    if level:
        return f"{_until_sentence_end(plain[:room])} …"
    end = plain[-room // 2 :]  # it says what comes next
    start = _SENTENCE_START.search(end)
    return f"{_until_sentence_end(plain[: room // 2])} … {end[start.end() if start else 0 :]}"


def _until_sentence_end(cut: str) -> str:
    """`cut` up to the end of its last sentence or line, if that is in its second half."""
    end = max(cut.rfind(". "), cut.rfind(".\n"), cut.rfind("\n"))
    whole = cut[: end + 1 if end > len(cut) // 2 else len(cut)]
    return _EMPTY_ITEM.sub("", whole).strip()


def _action_line(action: Done, level: int, folders: Sequence[str]) -> str:
    came = _outcome(action, level)
    subject = _subject(action, level, folders)
    images = f" {IMAGE_MARK}" * action.output.images
    return f"- {subject}{f' -> {came}' if came else ''}{images} [{action.entry_id}]"


def _subject(event: Done, level: int, folders: Sequence[str]) -> str:
    action = event.output.action
    chars = _SUBJECT_CHARS[level]
    if action.command:
        return f"$ {one_line(without_folder(action.command), chars)}"
    path = _short_path(normalise_path(action.path, folders) or action.path)
    if action.kind == "other" or not path:
        texts = {name: text for name, text in action.arguments.items() if isinstance(text, str)}
        asked = [text for name, text in texts.items() if text != action.path and name not in _FORMS]
        return f"{action.tool} {one_line(' '.join([*asked, path]), chars)}".strip()
    span = ""
    offset, limit = action.arguments.get("offset"), action.arguments.get("limit")
    if isinstance(offset, int):
        span = f":{offset}" + (f"-{offset + limit - 1}" if isinstance(limit, int) else "")
    return f"{action.tool} {path}{span}"


def _short_path(path: str) -> str:
    """`path` shortened to its last parts if it is long; the file lists have the full path."""
    parts = path.split("/")
    long = path.startswith("/") and len(parts) > _SHOWN_PARTS + 2
    return "/".join(["…", *parts[-_SHOWN_PARTS:]]) if long else path


def _outcome(event: Done, level: int) -> str:
    output = event.output
    if output.failure:
        return output.failure
    chars = _RESULT_CHARS[level]
    match output.action.kind:
        case "read" | "write" | "edit":
            return output.summary if output.action.kind != "read" else ""
        case _:
            return one_line(outcome_line(output), chars) if chars else ""


def _is_look(event: Done) -> bool:
    output = event.output
    if output.has_failed:
        return False
    if output.action.command:
        return is_looking_around(output.action.command)
    is_look = output.action.kind in ("read", "other") and not output.images
    return is_look and "todos" not in output.action.arguments
