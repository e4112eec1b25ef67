"""What the work toward a goal changed, as diffs for its judge."""

import contextlib
import hashlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.agent.prompt.fitted_prompt import even_shares
from agent_tui.agent.session.restoring import shown_path
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.file.kept_files import KeptFiles
from agent_tui.sessions.replay.file_changes import FileVersion, file_changes_in
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.tools.files.versions import text_of_version, version_of

_NO_TEXT = "(its content is not text, or not known)"
_ONLY_MODE = "(only its permissions changed)"


@dataclass(frozen=True, slots=True)
class FileDifference:
    """One file that is not as it was when the goal began.

    Attributes:
        path: Relative to the workspace if it is inside.
        what: ``changed``, ``new`` or ``removed``.
        diff: A unified diff, or why there is none.
        digest: The hash of its present content; empty if it was removed.
    """

    path: str
    what: str
    diff: str
    digest: str


def changes_since(
    written: Sequence[Entry], since: str, kept: KeptFiles, cwd: Path
) -> tuple[FileDifference, ...]:
    """The files that differ from their state at the entry `since`. Blocking.

    Files that existed then come first: only a change of those can weaken a check.

    Args:
        written: All entries of the conversation, in the order they were written.
        since: Id of the entry; if it is not among them, all changes count.
        kept: Holds the earlier contents.
        cwd: The workspace.
    """
    ids = [entry.id for entry in written]
    first = ids.index(since) + 1 if since in ids else 0
    before: dict[str, FileVersion] = {}
    for entry in written[first:]:
        found = file_changes_in(entry)
        for change in found.changes if found is not None else ():
            before.setdefault(change.path, change.before)
    differences = [_difference(Path(path), was, kept, cwd) for path, was in before.items()]
    return tuple(sorted(filter(None, differences), key=lambda each: each.what == "new"))


def named_in_checks(
    changes: Sequence[FileDifference], checks: Sequence[str], cwd: Path
) -> tuple[str, ...]:
    """The paths of files that existed before and that a check names, or whose folder it names."""
    named: set[Path] = set()
    for check in checks:
        with contextlib.suppress(ValueError):
            named.update(Path(os.path.normpath(cwd / word)) for word in shlex.split(check))
    named -= {cwd, *cwd.parents}
    paths = (each.path for each in changes if each.what != "new")
    return tuple(
        path for path in paths if not named.isdisjoint((cwd / path, *(cwd / path).parents))
    )


def digest_of_changes(changes: Sequence[FileDifference]) -> str:
    """A hash of the present state of all changed files."""
    lines = sorted(f"{each.path}\0{each.digest}" for each in changes)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def changes_text(changes: Sequence[FileDifference], room_chars: int) -> str:
    """All diffs within `room_chars`: small ones whole, the beginnings of large ones."""
    shares = even_shares([len(each.diff) for each in changes], room_chars)
    parts: list[str] = []
    for each, share in zip(changes, shares, strict=True):
        is_cut = share < len(each.diff)
        left_out = len(each.diff) - share
        cut = f"\n[... {left_out:,} more characters of this diff are left out]" if is_cut else ""
        parts.append(f"## {each.path} ({each.what})\n{each.diff[:share]}{cut}")
    return "\n\n".join(parts) or "(no file changed)"


def _difference(path: Path, was: FileVersion, kept: KeptFiles, cwd: Path) -> FileDifference | None:
    present = version_of(path)
    if present.is_as(was):
        return None
    shown = shown_path(str(path), cwd)
    what = "new" if not was.digest else "changed" if present.digest else "removed"
    before, after = text_of_version(was, kept), text_of_version(present, path)
    is_text = before is not None and after is not None
    diff = unified_diff(before or "", after or "", shown).text if is_text else _NO_TEXT
    return FileDifference(shown, what, diff or _ONLY_MODE, present.digest)
