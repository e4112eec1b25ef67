"""The text of the task: what a tracker, a plan or a specification says is to be done."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent_tui.approved_plan import approved_plan
from agent_tui.compaction.sections.history import Done, Event, Said
from agent_tui.compaction.tiers.model import Action, Output
from agent_tui.omissions import recall_mark
from agent_tui.sessions.entries import TaskText
from agent_tui.tokens import TokenCounter

_NO_TRACKERS = frozenset(
    {
        *("git", "docker", "podman", "kubectl", "helm", "systemctl", "launchctl", "brew", "apt"),
        *("apt-cache", "dpkg", "rpm", "pip", "pip3", "uv", "conda", "npm", "pnpm", "yarn", "cargo"),
        *("gem", "go", "rustup", "ip", "aws", "gcloud", "az", "terraform", "code", "poetry", "man"),
        *(
            "cat",
            "less",
            "grep",
            "rg",
            "echo",
            "sed",
            "awk",
            "find",
            "ls",
            "head",
            "tail",
            "tmux",
            "screen",
            "nmcli",
            "snap",
            "flatpak",
            "sqlite3",
            "redis-cli",
        ),
    }
)
"""Programs whose ``show``, ``view`` or ``get`` is about other things than work to be done."""

_ITEM = (
    r"(?:#?\d{1,7}(?![\w.-])|[A-Za-z]\w*(?:-[\w.]+)+|[0-9a-f]{7,40}"
    r"|https?://\S+/(?:issues|pull)/\d+)"
)
_KIND = r"(?:issues?|bugs?|tickets?|tasks?|pr|stor(?:y|ies)|workitem|cards?|status)"
_BEGINS = r"(?:^|&&|;|\n|\|\|)\s*(?:\w+=\S+\s+)*([\w./-]+)"
_SHOWS = re.compile(
    rf"{_BEGINS}((?:\s+{_KIND})*)\s+(?:show|view|get|describe|read|open|display)"
    rf"((?:\s+(?:-\S+|{_ITEM}))+)"
)
_SETTLES = re.compile(
    rf"{_BEGINS}((?:\s+{_KIND})*)\s+"
    rf"(?:close|resolved?|done|complete|finish|fix(?:ed)?|delete|wontfix)((?:\s+{_ITEM})+)"
)
_UPDATES = re.compile(
    rf"{_BEGINS}((?:\s+{_KIND})*)\s+"
    rf"(update|edit|move|transition|set|start|claim|begin|take|reopen|assign)"
    rf"((?:\s+{_ITEM})+)([^\n;&|]*)"
)
_STATE = re.compile(
    r"(?:^|--?(?:status|state|s)[ =])\s*[\"']?(?P<state>[A-Za-z][A-Za-z_-]*(?:[ _-][Pp]rogress)?)"
)
_OF_ITEM = re.compile(_ITEM)
_PLAN_FILE = re.compile(
    r"(?:^|/)[\w.-]*(?:plan|spec|todos?|tasks?|prd|requirements?|design|roadmap|milestones?|brief"
    r"|proposal|rfc|issue|backlog)[\w.-]*\.(?:md|markdown|txt|rst|org|adoc)$",
    re.IGNORECASE,
)
_ITEM_TOOL = re.compile(r"issue|ticket|task|bug|story|card|work_?item", re.IGNORECASE)
_CHANGING_TOOL = re.compile(r"update|close|resolve|transition|complete|edit|set|move", re.I)
_SHOWING_TOOL = re.compile(r"get|show|view|read|fetch", re.IGNORECASE)
_PLAN = "the plan that was handed over"
_RULE = re.compile(
    r"\b(?:must|never|always|only|do not|does not|don['’]t|no|without|keep|unchanged|cannot"
    r"|may not|should not|avoid)\b",
    re.IGNORECASE,
)
_LEAST_RULE, _LONGEST_RULE = 15, 240
_LEAST_CHARS = 60
_LEAST_TOKENS = 80


@dataclass(frozen=True, slots=True)
class ItemChange:
    """What a tracker's command says of items: ``done``, ``open`` or ``in progress``."""

    items: tuple[str, ...]
    state: str


def item_changes(action: Action) -> list[ItemChange]:
    """The items whose state `action` changes: a tracker's command, or its tool."""
    if not action.command:
        return _changes_by_tool(action)
    command = _squeezed(action.command)
    changes = [
        ItemChange(tuple(_OF_ITEM.findall(found[3])), "done")
        for found in _SETTLES.finditer(command)
        if found[2] or _is_tracker(found[1])
    ]
    for found in _UPDATES.finditer(command):
        if (found[2] or _is_tracker(found[1])) and (state := _state_in(found[3], found[5])):
            changes.append(ItemChange(tuple(_OF_ITEM.findall(found[4])), state))
    return changes


def _squeezed(command: str) -> str:
    """`command` without runs of blanks, over which the patterns would take very long."""
    lines = (" ".join(line.split()) for line in command.splitlines())
    return "\n".join(filter(None, lines))


def _changes_by_tool(action: Action) -> list[ItemChange]:
    if not (_ITEM_TOOL.search(action.tool) and _CHANGING_TOOL.search(action.tool)):
        return []
    values = [str(v) for v in action.arguments.values() if isinstance(v, str | int)]
    items = tuple(value for value in values if _OF_ITEM.fullmatch(value))[:1]
    named = (action.arguments.get("state"), action.arguments.get("status"))
    state = next((_known_state(v) for v in named if isinstance(v, str)), "")
    if re.search(r"close|resolve|complete", action.tool, re.IGNORECASE):
        state = "done"
    return [ItemChange(items, state)] if items and state else []


def _state_in(verb: str, rest: str) -> str:
    if verb in ("start", "claim", "begin", "take"):
        return "in progress"
    if verb == "reopen":
        return "open"
    found = _STATE.search(rest.strip())
    return _known_state(found["state"]) if found else ""


def _known_state(word: str) -> str:
    plain = re.sub(r"[ _-]", "", word).lower()
    if plain in ("closed", "close", "done", "resolved", "complete", "completed", "finished"):
        return "done"
    if plain in ("inprogress", "doing", "active", "started", "wip"):
        return "in progress"
    return "open" if plain in ("open", "reopened", "todo", "pending", "blocked", "backlog") else ""


def task_texts(events: Iterable[Event], earlier: Iterable[TaskText] = ()) -> tuple[TaskText, ...]:
    """The newest text of each item, the one shown last at the end; of closed ones their rules.

    Args:
        events: The conversation.
        earlier: What a parent session handed on.
    """
    found = {task.item: task for task in earlier}
    for event in events:
        if isinstance(event, Said) and approved_plan(event.text):
            found.pop(_PLAN, None)  # it stands among what the person said, as they changed it
        if not isinstance(event, Done):
            continue
        for change in item_changes(event.output.action):
            for item in change.items if change.state == "done" else ():
                if (task := found.pop(item, None)) and (rules := rules_in(task.text)):
                    done = TaskText(item=item, text="\n".join(rules), is_done=True)
                    found[item] = done.model_copy(update={"entry_id": task.entry_id})
        if event.output.has_failed:
            continue
        plan = plan_in(event.output.action)
        item = _PLAN if plan else _item_shown(event.output)
        text = plan or event.output.text.strip()
        if item and len(text) >= _LEAST_CHARS:
            found.pop(item, None)
            found[item] = TaskText(item=item, text=text, entry_id=event.entry_id)
    return tuple(found.values())


def rules_in(text: str) -> list[str]:
    """The lines of an item's text that say what must, may not or is to stay as it is."""
    lines = (line.strip().lstrip("-*• ").strip() for line in text.split("\n"))
    return [
        line for line in lines if _LEAST_RULE <= len(line) <= _LONGEST_RULE and _RULE.search(line)
    ]


def plan_in(action: Action) -> str:
    """The text of a plan that was handed over for approval; empty where `action` does not."""
    plan = action.arguments.get("plan")
    if not isinstance(plan, str) or "plan" not in action.tool.lower():
        return ""
    return plan.strip()


def task_blocks(
    tasks: Iterable[TaskText], room_tokens: int, counter: TokenCounter
) -> tuple[list[str], list[TaskText]]:
    """The texts that fit, newest first, and the tasks they are of; the last one may end early."""
    lines: list[str] = []
    taken: list[TaskText] = []
    for task in reversed([task for task in tasks if not task.is_done]):
        text = f"### {task.item}\n{task.text}"
        tokens = counter.count_text(text) + 4
        if tokens > room_tokens:
            if room_tokens < _LEAST_TOKENS:
                continue
            text = _beginning(text, tokens, room_tokens, task.entry_id, counter)
            tokens = room_tokens
        lines.append(text)
        taken.append(task)
        room_tokens -= tokens
    return lines, taken


def rules_of_finished(
    tasks: Iterable[TaskText], elsewhere: str, room_tokens: int, counter: TokenCounter
) -> list[str]:
    """What items that are done ask to stay true, newest item first, as far as there is room.

    Args:
        tasks: Oldest first; only those that are done count.
        elsewhere: What is said anyway: the texts of open items.
        room_tokens: Bound of all together.
        counter: Measures them.
    """
    lines: list[str] = []
    for task in reversed([task for task in tasks if task.is_done]):
        head, rules = (
            f"{task.item}:",
            [f"- {r}" for r in task.text.split("\n") if r not in elsewhere],
        )
        for line in rules:
            tokens = counter.count_text("\n".join((head, line))) + 1
            if tokens > room_tokens:
                continue
            lines += [head, line] if head else [line]
            room_tokens -= tokens
            head = ""
    return lines


def _beginning(text: str, tokens: int, room: int, entry_id: str, counter: TokenCounter) -> str:
    head = text[: len(text) * max(room - 24, 20) // tokens]
    while head and counter.count_text(head) > room - 16:
        head = head[: len(head) * 9 // 10]
    mark = f"[... the rest is left out ...] {recall_mark(entry_id)}"
    lines = head.rpartition("\n")[0]
    return f"{lines if 4 * len(lines) > 3 * len(head) else head}\n{mark}"


def _item_shown(output: Output) -> str:
    """The item whose text `output` is; empty where it is none."""
    action = output.action
    if action.command:
        for found in _SHOWS.finditer(_squeezed(action.command)):
            items = _OF_ITEM.findall(found[3])
            if items and (found[2] or _is_tracker(found[1])):
                return items[0]
        return ""
    if action.kind == "read":
        return action.path if _PLAN_FILE.search(action.path) else ""
    if (
        action.kind == "other"
        and _ITEM_TOOL.search(action.tool)
        and _SHOWING_TOOL.search(action.tool)
    ):
        values = [str(v) for v in action.arguments.values() if isinstance(v, str | int)]
        return next((value for value in values if _OF_ITEM.fullmatch(value)), "")
    return ""


def _is_tracker(program: str) -> bool:
    return program.rpartition("/")[2] not in _NO_TRACKERS
