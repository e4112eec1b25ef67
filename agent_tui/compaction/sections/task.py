"""The task's text: what a tracker, a plan or a named document says should be done."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from agent_tui.attachments import plan_approved_by
from agent_tui.compaction.sections.file_views import file_view
from agent_tui.compaction.sections.history import Done, HistoryEvent, Said
from agent_tui.compaction.transcript import beginning_of
from agent_tui.omissions import recall_mark
from agent_tui.sessions.actions import Action, Output
from agent_tui.sessions.entries import TaskText
from agent_tui.sessions.shell_files import programs_run
from agent_tui.text import markdown_sections
from agent_tui.tokens import TokenCounter

_ITEM = re.compile(r"#?\d{1,6}|[A-Za-z]\w*(?:-[\w.]+)+|https?://\S+/(?:issues|pull)/\d+")
_KIND = re.compile(r"issues?|bugs?|tickets?|tasks?|pr|stor(?:y|ies)|cards?", re.IGNORECASE)
_SHOWS = frozenset({"show", "view", "get", "read"})
_SETTLES = frozenset({"close", "resolve", "complete", "finish", "done"})
_CHANGES = frozenset({"update", "edit", "move", "transition", "set", "reopen", "start", "claim"})
_STATE_OPTION = re.compile(r"--?(?:status|state|s)(?:=(.+))?")
_DONE = re.compile(r"clos|done|resolv|complet|finish", re.IGNORECASE)
_BEGUN = re.compile(r"progress|doing|active|start|wip|claim", re.IGNORECASE)
_OPEN = re.compile(r"open|to-?do|pending|blocked|backlog", re.IGNORECASE)
_DOCUMENTS = frozenset({".md", ".markdown", ".txt", ".rst", ".org", ".adoc"})
_TICKED, _UNTICKED = (
    re.compile(rf"^[ \t]*[-*+] \[{box}\] ", re.MULTILINE) for box in ("[xX]", " ")
)
"""Task list items of GitHub Flavored Markdown."""

_GAP, _DONE_MARK = "[...]", " (done)"
_PLAN = "the plan that was handed over"
_BETWEEN = ", "
_LEAST_CHARS = 60
_LEAST_TOKENS = 80


@dataclass(frozen=True, slots=True)
class TrackerOrder:
    """An instruction to a tracker about items.

    `tracker` is the program or tool, `state` the items' new state (``done``, ``open``, ``in
    progress``, or empty), `is_plain` whether the command says that it is about issues.
    """

    tracker: str
    verb: str
    items: tuple[str, ...]
    state: str
    is_plain: bool


def tracker_orders(action: Action) -> Iterator[TrackerOrder]:
    """The orders that `action` gives a tracker: by commands, or by its tool."""
    if action.command:
        for program, arguments in programs_run(action.command):
            if (order := _order(program, arguments)) is not None:
                yield order
    elif action.kind == "other":
        words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", action.tool).lower())
        values = [str(v) for v in action.arguments.values() if isinstance(v, str | int)]
        items = tuple(value for value in values if _ITEM.fullmatch(value))[:1]
        named = (action.arguments.get("state"), action.arguments.get("status"))
        state = next((state_named(value) for value in named if isinstance(value, str)), "")
        is_plain = any(_KIND.fullmatch(word) for word in words)
        if is_plain and items and (verb := _verb(words)):
            if verb in _SHOWS:
                state = ""
            yield TrackerOrder(
                action.tool, verb, items, "done" if verb in _SETTLES else state, True
            )


def _order(program: str, arguments: Sequence[str]) -> TrackerOrder | None:
    """The order in a command: words, a verb, items, and perhaps a state; None if it is none."""
    at = next((n for n, word in enumerate(arguments) if _verb([word])), len(arguments))
    before, verb, after = arguments[:at], "".join(arguments[at : at + 1]), arguments[at + 1 :]
    is_plain = any(_KIND.fullmatch(word) for word in before)
    if not verb or len(before) > (3 if is_plain else 0):
        return None
    plain = [word for word in after if not word.startswith("-")]
    count = next((n for n, word in enumerate(plain) if not _ITEM.fullmatch(word)), len(plain))
    items = tuple(plain[:count])
    if not items:
        return None
    state = "done" if verb in _SETTLES else ""
    if verb in _CHANGES:
        state = _state_in_command(verb, after, plain[count : count + 1])
    name = PurePosixPath(program).name
    return TrackerOrder(name, verb, items, state, is_plain)


def _verb(words: Sequence[str]) -> str:
    known = (*_SHOWS, *_SETTLES, *_CHANGES)
    return next((word for word in words if word in known), "")


def _state_in_command(verb: str, arguments: Sequence[str], behind: Sequence[str]) -> str:
    """The state that a change of items names: in an option, or as the word after them."""
    for at, word in enumerate(arguments):
        if word == "--claim":
            return "in progress"
        if found := _STATE_OPTION.fullmatch(word):
            return state_named(found[1] or "".join(arguments[at + 1 : at + 2]))
    if verb == "reopen":
        return "open"
    return state_named("".join(behind)) if verb in ("move", "transition", "set") else ""


def state_named(word: str) -> str:
    """The state that a tracker's `word` means, as `TrackerOrder.state`; empty if it means none."""
    if _DONE.search(word):
        return "done"
    if _BEGUN.search(word):
        return "in progress"
    return "open" if _OPEN.search(word) else ""


def task_texts(
    events: Sequence[HistoryEvent],
    earlier: Iterable[TaskText] = (),
    said: Iterable[str] = (),
    begun: Sequence[str] = (),
) -> tuple[TaskText, ...]:
    """The newest text of each open item, the most recently shown last.

    A program counts as a tracker if it changes items' states or is told which kind of item to show;
    of others, items and documents count if the user named them. An output with several items is the
    text of all of them until each is closed or shown again. A submitted plan belongs to the item in
    progress, if any, until that is closed.

    Args:
        events: The conversation.
        earlier: Texts passed on by a parent session.
        said: The user's messages in earlier sessions.
        begun: Items that were in progress when those ended.
    """
    begun = list(begun)
    found = {task.item: task for task in earlier}
    named = "\n".join((*said, *(event.text for event in events if isinstance(event, Said))))
    actions = [event.output.action for event in events if isinstance(event, Done)]
    trackers = {
        order.tracker for action in actions for order in tracker_orders(action) if order.state
    }
    for event in events:
        if isinstance(event, Said) and plan_approved_by(event.text):
            found = _without_plan(found)  # it stands among what the user said, as they changed it
        if not isinstance(event, Done) or event.output.has_failed:
            continue
        action = event.output.action
        for order in tracker_orders(action):
            begun = [item for item in begun if item not in order.items]
            if order.state == "done":
                found = _without(_without_plan(found, order.items), order.items)
            elif order.state == "in progress":
                begun += order.items
        plan = plan_in(action)
        items = _items_shown(event.output, trackers, named, tuple(found))
        if plan:
            found, items = _without_plan(found), (" for ".join((_PLAN, *begun[-1:])),)
        view = file_view(event.output)
        shown = "\n".join(view.lines) if view is not None else event.output.text
        text = "\n".join(map(str.rstrip, (plan or shown.strip()).split("\n")))
        if items and len(text) >= _LEAST_CHARS:
            found = _without(found, items)
            label = _BETWEEN.join(items)
            found[label] = TaskText(item=label, text=text, entry_id=event.entry_id)
    return tuple(found.values())


def lists_steps(task: TaskText) -> bool:
    """Whether the text has boxes to tick."""
    return bool(_TICKED.search(task.text) or _UNTICKED.search(task.text))


def is_done(task: TaskText) -> bool:
    """Whether all boxes of the text are ticked."""
    return bool(_TICKED.search(task.text)) and not _UNTICKED.search(task.text)


def is_document(path: str) -> bool:
    """Whether the file at `path` is prose, as its name says."""
    return PurePosixPath(path).suffix.lower() in _DOCUMENTS


def items_of(task: TaskText) -> list[str]:
    """The items whose text `task` is."""
    return task.item.split(_BETWEEN)


def _without(tasks: dict[str, TaskText], items: Sequence[str]) -> dict[str, TaskText]:
    """`tasks` without `items`; a text of several items then belongs to the others."""
    left: dict[str, TaskText] = {}
    for label, task in tasks.items():
        others = [item for item in items_of(task) if item not in items]
        if label not in items and others:
            label = _BETWEEN.join(others)
            left[label] = task.model_copy(update={"item": label})
    return left


def _without_plan(
    tasks: dict[str, TaskText], items: Sequence[str] | None = None
) -> dict[str, TaskText]:
    """`tasks` without the submitted plan; with `items`, only if it is for one of them."""
    plans = None if items is None else {f"{_PLAN} for {item}" for item in items}
    return {
        label: task
        for label, task in tasks.items()
        if not label.startswith(_PLAN) or (plans is not None and label not in plans)
    }


def plan_in(action: Action) -> str:
    """The text of a plan that `action` submits for approval; empty if it submits none."""
    plan = action.arguments.get("plan")
    if not isinstance(plan, str) or "plan" not in action.tool.lower():
        return ""
    return plan.strip()


def _items_shown(
    output: Output, trackers: set[str], named: str, known: Sequence[str]
) -> tuple[str, ...]:
    """The items whose text `output` is, in the order in which they were requested."""
    action = output.action
    if action.kind == "read":
        name = PurePosixPath(action.path).name
        return (action.path,) if is_document(name) and _is_named(name, named) else ()
    return tuple(
        dict.fromkeys(
            item
            for order in tracker_orders(action)
            if order.verb in _SHOWS
            for item in order.items
            if order.is_plain
            or order.tracker in trackers
            or item in known
            or _is_named(item, named)
        )
    )


def _is_named(item: str, text: str) -> bool:
    """Whether `text` names `item` or the item it is part of (``x-1`` of ``x-1.2``)."""
    whole = re.escape(item)
    return bool(re.search(rf"(?<![\w-]){whole}(?![\w-]|\.\w)", text)) and not item.isdigit()


def task_blocks(tasks: Iterable[TaskText], room_tokens: int, counter: TokenCounter) -> list[str]:
    """The texts that fit, as `text_shown` has them, newest first; the last one may be cut."""
    lines: list[str] = []
    for task in reversed(list(tasks)):
        text = text_shown(task)
        tokens = counter.count_text(text) + 4
        if tokens > room_tokens:
            if room_tokens < _LEAST_TOKENS:
                continue
            text = _cut_to(text, room_tokens, task.entry_id, counter)
            tokens = room_tokens
        lines.append(text)
        room_tokens -= tokens
    return lines


def text_shown(task: TaskText) -> str:
    """The text of `task` below its name; parts whose boxes are all ticked keep their heading."""
    parts = map(_without_ticked, markdown_sections(task.text))
    return "\n".join((f"### {task.item}{_outdated_note(task)}", *parts))


def _outdated_note(task: TaskText) -> str:
    """A note that an item's text may be outdated; empty for documents, whose edits are known."""
    is_known = is_document(task.item) or task.item.startswith(_PLAN)
    return "" if is_known else " (as it was shown then)"


def _cut_to(text: str, room: int, entry_id: str, counter: TokenCounter) -> str:
    """Cut `text` to `room` tokens.

    Parts with open boxes have priority, then headings of finished ones, then others that fit.
    """
    parts = markdown_sections(text)
    left = room - 16
    taken: dict[int, str] = {}
    whole: set[int] = set()
    for at in sorted(range(len(parts)), key=lambda at: _rank(parts[at])):
        tokens = counter.count_text(parts[at]) + 1
        if tokens > left:
            taken[at] = beginning_of(parts[at], left, counter)
            break
        taken[at] = parts[at]
        whole.add(at)
        left -= tokens
    lines: list[str] = []
    for at in sorted(filter(taken.get, taken)):
        lines += [taken[at]] if at == 0 or at - 1 in whole else [_GAP, taken[at]]
    return "\n".join([*lines, f"[... the rest is left out ...] {recall_mark(entry_id)}"])


def _without_ticked(part: str) -> str:
    has_only_done = _TICKED.search(part) and not _UNTICKED.search(part)
    return f"{part.splitlines()[0]}{_DONE_MARK}" if has_only_done else part


def _rank(part: str) -> int:
    return 0 if _UNTICKED.search(part) else 1 if part.endswith(_DONE_MARK) else 2
