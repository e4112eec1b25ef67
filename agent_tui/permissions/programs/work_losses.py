"""Commands that lose work in the folder itself, where a sandbox must let them write.

A sandboxed command cannot do anything else that `destruction` and `dangers` list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.permissions.programs.dangers import FolderChange, folder_change
from agent_tui.permissions.programs.destruction import git_loss, known_loss
from agent_tui.permissions.protected_paths import ProtectedPaths, is_inside_git
from agent_tui.permissions.shell.words import CommandPart

_HISTORY_VERBS = frozenset(
    {"stash", "branch", "reflog", "gc", "prune", "filter-branch", "filter-repo", "worktree"}
)
"""Git verbs that lose what no file of the work tree holds."""
_FILE_VERBS = frozenset(
    {
        *("reset", "clean", "checkout", "switch", "restore", "rm", "checkout-index", "read-tree"),
        *("merge", "rebase", "cherry-pick", "am", "revert"),
    }
)
"""Git verbs that lose changes to files."""
_OTHER_SYSTEMS = frozenset({"hg", "svn", "jj"})
_ELSEWHERE = ("--git-dir", "--work-tree", "--recurse-submodules")


@dataclass(frozen=True, slots=True)
class WorkLoss:
    """What a command would lose. `is_kept`: undo keeps such files and can restore them."""

    what: str
    is_kept: bool = False


def work_loss(part: CommandPart, bases: Sequence[Path], guard: ProtectedPaths) -> WorkLoss | None:
    """The work that `part` would lose in the folders it may run in; None if none.

    Args:
        part: One part of a command.
        bases: Folders it may run in.
        guard: Knows the working folders.
    """
    name = part.name.rpartition("/")[2].casefold()
    words = [word.value or "" for word in part.arguments]
    if name == "git":
        return _loss_by_git(words, bases, guard)
    if name in _OTHER_SYSTEMS:
        lost = known_loss(name, words)
        return WorkLoss(lost) if lost else None
    change = folder_change(name, part)
    return _loss_by_removal(change, bases, guard) if change is not None else None


def _loss_by_git(
    words: Sequence[str], bases: Sequence[Path], guard: ProtectedPaths
) -> WorkLoss | None:
    verb, others = git_loss(words)
    if verb in _HISTORY_VERBS:
        return WorkLoss(_shown(verb, others))
    if verb not in _FILE_VERBS:
        return None
    letters = "".join(word for word in others if word[:1] == "-" and word[:2] != "--")
    takes_ignored = verb == "clean" and bool({"x", "X", "e"} & set(letters))
    takes_repositories = verb == "clean" and (
        letters.count("f") + sum(word.startswith("--f") for word in others) > 1
    )
    is_elsewhere = any(word.startswith(_ELSEWHERE) for word in words) or any(
        guard.why_git_asks(base) or not base.is_relative_to(guard.workspace) for base in bases
    )
    is_kept = not (takes_ignored or takes_repositories or is_elsewhere)
    return WorkLoss(_shown(verb, others), is_kept)


def _shown(verb: str, others: Sequence[str]) -> str:
    what = "history" if verb in _HISTORY_VERBS - {"stash"} else "uncommitted work"
    return f"git {' '.join([verb, *others])[:60]} discards {what}"


def _loss_by_removal(
    change: FolderChange, bases: Sequence[Path], guard: ProtectedPaths
) -> WorkLoss | None:
    for path in change.paths(bases):
        if any(root.is_relative_to(path) for root in guard.roots):
            return WorkLoss(f"{change.action} removes all of {path}")
        if guard.is_inside(path) and is_inside_git(path):
            return WorkLoss(f"{change.action} removes {path}")
    return None
