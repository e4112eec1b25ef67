"""Which stored sessions belong to a project, and the form in which they travel from it."""

from collections.abc import Sequence
from pathlib import Path

from agent_tui.features.sharing.form import SharedForm
from agent_tui.features.sharing.guard import is_session_id
from agent_tui.safe_paths import follow_links, git_entry, is_folder
from agent_tui.sessions.listing import SessionSummary
from agent_tui.sessions.store import SessionStore


def sessions_of_project(store: SessionStore, roots: Sequence[Path]) -> list[SessionSummary]:
    """The sessions that work in one of the worktrees at `roots`, newest first.

    Those of a repository inside it are not part of it, and neither are those of the tour.
    """
    return [found for found in store.list() if belongs_to(found, roots)]


def belongs_to(found: SessionSummary, roots: Sequence[Path]) -> bool:
    """Whether a session works in one of the worktrees at `roots` and may travel."""
    may_travel = is_session_id(found.id) and found.origin != "tour"
    return may_travel and root_around(str(found.cwd), roots) is not None


def root_around(cwd: str, roots: Sequence[Path]) -> Path | None:
    """The one of `roots` that is the top folder of the worktree around `cwd`; None if none is.

    A worktree that was removed counts by its name.
    """
    if not Path(cwd).is_absolute():
        return None
    real = Path(follow_links(cwd))
    around = [root for root in roots if real.is_relative_to(root)]
    entry = git_entry(real) if around else None
    present = (root for root in around if entry is not None and entry.parent == root)
    gone = (root for root in around if not is_folder(root))
    return next(present, None) or next(gone, None)


def form_for(cwd: str, roots: Sequence[Path], secrets: Sequence[str]) -> SharedForm:
    """The form in which a session that works in `cwd` leaves the worktrees at `roots`."""
    root = root_around(cwd, roots)
    if root is None:
        return SharedForm(roots, secrets)
    below = len(Path(follow_links(cwd)).relative_to(root).parts)
    spelled = Path(cwd).parents[below - 1] if below and len(Path(cwd).parts) > below else Path(cwd)
    is_same = Path(follow_links(str(spelled))) == root
    return SharedForm((*roots, spelled) if is_same else roots, secrets)
