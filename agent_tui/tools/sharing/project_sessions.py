"""Which stored sessions belong to a project, and the form in which they travel from it."""

from collections.abc import Sequence
from pathlib import Path

from agent_tui.safe_paths import follow_links, git_entry
from agent_tui.sessions.listing import SessionSummary
from agent_tui.sessions.sharing.form import SharedForm
from agent_tui.sessions.sharing.guard import is_session_id
from agent_tui.sessions.store import SessionStore


def sessions_of_project(store: SessionStore, root: Path) -> list[SessionSummary]:
    """The sessions that work in the work tree at `root`, newest first.

    Those of a repository inside it are not part of it, and neither are those of the tour.
    """
    return [found for found in store.list() if belongs_to(found, root)]


def belongs_to(found: SessionSummary, root: Path) -> bool:
    """Whether a session works in the work tree at `root` and may travel."""
    if not found.cwd.is_absolute() or not is_session_id(found.id) or found.origin == "tour":
        return False
    cwd = Path(follow_links(str(found.cwd)))
    entry = git_entry(cwd) if cwd.is_relative_to(root) else None
    return entry is not None and entry.parent == root


def form_for(cwd: str, root: Path, secrets: Sequence[str]) -> SharedForm:
    """The form in which a session that works in `cwd` leaves the work tree at `root`."""
    real = Path(follow_links(cwd)) if cwd else root
    below = len(real.relative_to(root).parts) if real.is_relative_to(root) else 0
    spelled = Path(cwd).parents[below - 1] if below and len(Path(cwd).parts) > below else Path(cwd)
    is_same = bool(cwd) and Path(follow_links(str(spelled))) == root
    return SharedForm((root, spelled) if is_same else (root,), secrets)
