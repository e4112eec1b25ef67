"""What the line at the bottom says, and how it fits its width."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from textual.content import Content

from agent_tui.commands.core.short_words import count_text, short_count
from agent_tui.config import PermissionMode
from agent_tui.durations import clock_time
from agent_tui.providers.rate_limits import RateLimit
from agent_tui.regular_files import read_regular_file
from agent_tui.safe_text import safe_text
from agent_tui.tokens import ContextUsage

SEPARATOR = " · "
_GAUGE_CELLS = 10
_LITTLE_LEFT = 0.2
"""Of a plan; less is shown as a warning."""

_FULL, _EMPTY, _MARK = "━", "┄", "┃"

ContextLevel = Literal["normal", "warn", "trigger"]
_LEVEL_STYLES: dict[ContextLevel, str] = {
    "normal": "$foreground-muted",
    "warn": "bold $text-warning",
    "trigger": "bold $text-error",
}
_MODE_STYLES: dict[PermissionMode, str] = {
    "ask": "$foreground-muted",
    "accept-edits": "$text-warning",
    "plan": "$text-primary",
    "full": "bold reverse $text-error",
}
_SANDBOX_STYLES = {"no sandbox": "$text-warning", "sandbox off": "bold $text-error"}

USUAL_ORDER = (
    *("badge", "folder", "branch", "model", "mode", "sandbox", "jobs", "mouse", "command"),
    *("totals", "plan", "name"),
)
"""The parts of the bar, as ``status_fields`` names them."""


@dataclass(frozen=True, slots=True)
class StatusFields:
    """What the bar shows. `branch` is empty outside a repository, `name` without a name.

    The context is compacted automatically at `compacts_at` percent of the window; 0 for never.
    `order` names the parts that are shown, from left to right; `command` is what the user's own
    command wrote. `sandbox` is the word for how commands run.
    `plan` is what is left of the account's plan, `plan_level` how close its end is.
    `jobs` counts the background commands that run. `is_mouse_off`: clicks and drags are the
    terminal's.
    """

    folder: str
    branch: str
    model: str
    mode: PermissionMode
    input_tokens: int
    output_tokens: int
    cost_usd: float
    name: str
    usage: ContextUsage
    level: ContextLevel
    compacts_at: int = 0
    badge: str = ""
    sandbox: str = ""
    plan: str = ""
    plan_level: ContextLevel = "normal"
    jobs: int = 0
    is_mouse_off: bool = False
    command: str = ""
    order: tuple[str, ...] = USUAL_ORDER


def status_line(fields: StatusFields, width: int) -> Content:
    """The bar, exactly `width` cells wide.

    The context is always whole at the right. On a narrow screen the other parts give way, the
    least important first: the gauge, the name, the totals, the folder, then the model is cut.
    """
    label = Content.assemble((fields.usage.label, _LEVEL_STYLES[fields.level]))
    separator = Content.assemble((SEPARATOR, "$foreground-disabled"))
    right = Content.assemble(_gauge(fields), " ", label)
    left = separator.join(_parts_at_left(fields, ()))
    if left.cell_length + right.cell_length + 2 > width:
        right = label
        room = max(width - right.cell_length - 1, 0)
        for count in range(len(_GIVE_WAY) + 1):
            left = separator.join(_parts_at_left(fields, _GIVE_WAY[:count]))
            if left.cell_length <= room:
                break
        left = left.truncate(room, ellipsis=True)
    gap = max(width - left.cell_length - right.cell_length, 0)
    return Content.assemble(left, " " * gap, right)


def _gauge(fields: StatusFields) -> Content:
    """How full the window is, with a mark where automatic compaction starts."""
    filled = min(fields.usage.percent * _GAUGE_CELLS // 100, _GAUGE_CELLS)
    mark = fields.compacts_at * _GAUGE_CELLS // 100 if fields.compacts_at else -1
    cells = [
        (_MARK, "$foreground-muted")
        if at == mark
        else (_FULL, _LEVEL_STYLES[fields.level])
        if at < filled
        else (_EMPTY, "$foreground-disabled")
        for at in range(_GAUGE_CELLS)
    ]
    return Content.assemble(*cells)


_GIVE_WAY = (
    *("name", "totals", "mouse", "branch", "plan", "folder", "command", "sandbox", "jobs", "badge"),
)


def _parts_at_left(fields: StatusFields, left_out: tuple[str, ...]) -> list[Content]:
    shown = [key for key in fields.order if key not in left_out]
    branch = f"({fields.branch})" if fields.branch else ""
    totals = _totals_text(fields) if fields.input_tokens or fields.output_tokens else ""
    parts = {
        "badge": (fields.badge, "bold $text-accent"),
        "folder": (fields.folder, "$foreground-muted"),
        "branch": (branch, "$foreground-muted"),
        "model": (fields.model.rpartition("/")[2] or fields.model, "$foreground"),
        "mode": (fields.mode, _MODE_STYLES[fields.mode]),
        "sandbox": (fields.sandbox, _SANDBOX_STYLES.get(fields.sandbox, "$text-success")),
        "jobs": (count_text(fields.jobs, "job") if fields.jobs else "", "$text-accent"),
        "mouse": ("mouse off" if fields.is_mouse_off else "", "$foreground-muted"),
        "command": (fields.command, "$foreground-muted"),
        "totals": (totals, "$foreground-muted"),
        "plan": (fields.plan, _LEVEL_STYLES[fields.plan_level]),
        "name": (fields.name, "$foreground-muted"),
    }
    if (at := _place_of_branch(shown)) and branch:  # the branch belongs to the folder before it
        parts["folder"] = (f"{fields.folder} {branch}", parts["folder"][1])
        del shown[at]
    return [
        Content.assemble((safe_text(parts[key][0], keep_newlines=False), parts[key][1]))
        for key in shown
        if parts[key][0]
    ]


def _place_of_branch(shown: list[str]) -> int:
    """The index of the branch directly after the folder; 0 if it is not there."""
    at = shown.index("branch") if "branch" in shown else 0
    return at if at and shown[at - 1] == "folder" else 0


def _totals_text(fields: StatusFields) -> str:
    """Tokens up and down and the cost, if there is one: ``↑12.3k ↓4.1k $0.18``."""
    text = f"↑{short_count(fields.input_tokens)} ↓{short_count(fields.output_tokens)}"
    if fields.cost_usd > 0:
        text += f" ${fields.cost_usd:.2f}" if fields.cost_usd >= 0.01 else " <$0.01"
    return text


def plan_text(limit: RateLimit | None, now_s: float) -> tuple[str, ContextLevel]:
    """What is left of a plan and until when, and how that is shown: ``5h: 38% left until 14:20``.

    Args:
        limit: The limit with the least left; None without one.
        now_s: The present time, in seconds since 1970.
    """
    if limit is None:
        return "", "normal"
    until = f" until {clock_time(limit.resets_at, now_s)}" if limit.resets_at else ""
    level: ContextLevel = "normal" if limit.left > _LITTLE_LEFT else "warn"
    text = f"{limit.name}: {limit.left_percent}% left{until}"
    return text, "trigger" if limit.left == 0 else level


def git_branch(cwd: Path) -> str:
    """The branch checked out around `cwd`, read from ``.git/HEAD``; empty outside a repository.

    Git itself is not run: a repository's own settings could make it run other programs.
    """
    for folder in (cwd, *cwd.parents):
        marker = folder / ".git"
        try:
            if marker.is_file():  # a worktree or submodule names its folder in a file
                named = read_regular_file(marker).decode("utf-8", "replace")
                marker = folder / named.removeprefix("gitdir:").strip()
            head = read_regular_file(marker / "HEAD").decode("utf-8", "replace").strip()
        except OSError:
            continue
        if head.startswith("ref:"):
            return head.removeprefix("ref:").strip().removeprefix("refs/heads/")
        return head[:8]
    return ""
