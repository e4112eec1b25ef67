"""``agent-tui sessions import|rename|delete``: what changes which sessions there are."""

import sys
from pathlib import Path

from agent_tui.cli.output import write_json
from agent_tui.errors import SessionError, UsageError
from agent_tui.safe_text import printable_line, strip_control_characters
from agent_tui.sessions.importers.import_session import import_session
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore

IMPORT_JSON = """\
FILE does not change. With --json:
  {"id", "path", "entries", "warnings"}
"id" and "path" are those of the new session. "entries" is the number of
imported entries, and "warnings" says what could not be imported."""

DELETE_JSON = """\
The file moves to the folder "trash" next to the sessions. With --json:
  {"id", "path", "trashedTo"}"""


def import_file(
    store: SessionStore,
    file: Path,
    cwd: Path,
    *,
    written_by: str | None,
    until: int | None,
    is_json: bool,
) -> None:
    """Take over the session in `file` and print where the new one is. Raises as `import_session`.

    `file` is taken from `cwd`, which is the new session's folder where `file` names none.
    """
    try:
        path = cwd / file.expanduser()
    except RuntimeError as error:
        raise UsageError(f"{file}: no such home folder.", "Write the full path.") from error
    imported = import_session(store, path, cwd=cwd, format_name=written_by, until=until)
    if is_json:
        write_json(
            {
                "id": imported.id,
                "path": str(imported.path),
                "entries": imported.entries,
                "warnings": list(imported.warnings),
            }
        )
        return
    for warning in imported.warnings:
        print(f"warning: {strip_control_characters(warning)}", file=sys.stderr)
    print(f"Imported {imported.entries:,} entries as {imported.id}")
    print(f"  {strip_control_characters(str(imported.path))}")
    print(f"To continue it: agent-tui --resume {imported.id[:8]}")


def rename_session(store: SessionStore, ref: str, name: str, cwd: Path) -> None:
    """Give the session `ref` means the name `name`.

    Raises:
        UsageError: The name is empty.
        SessionError: There is no such session, it is open elsewhere, or not ours.
    """
    wanted = printable_line(name)
    if not wanted:
        raise UsageError("The name is empty.", "Write the name in quotes.")
    store.rename(_own_file(store, ref, cwd), wanted)
    print(f"Renamed to {wanted}")


def delete_session(
    store: SessionStore, ref: str, cwd: Path, *, is_sure: bool, is_json: bool
) -> int:
    """Put the session `ref` means in the trash; returns the exit code.

    At a terminal the person is asked first, unless `is_sure`.

    Raises:
        SessionError: There is no such session, it is open elsewhere, or not ours.
    """
    path = _own_file(store, ref, cwd)
    with SessionLog.open(path, read_only=True) as log:
        session_id, name = log.header.id, printable_line(log.name, 60)
    if not is_sure and sys.stdin.isatty() and not _agrees(name or session_id):
        print("Nothing deleted.", file=sys.stderr)
        return 1
    trashed = store.delete(path)
    if is_json:
        write_json({"id": session_id, "path": str(path), "trashedTo": str(trashed)})
    else:
        print(f"Moved to {strip_control_characters(str(trashed))}")
    return 0


def _agrees(what: str) -> bool:
    print(f"Delete {what}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _own_file(store: SessionStore, ref: str, cwd: Path) -> Path:
    """The file of the session `ref` means, which must be one of the store's."""
    path = store.find(ref, cwd).resolve()
    root = store.root.resolve()
    if not path.is_relative_to(root) or path.relative_to(root).parts[0] == "trash":
        raise SessionError(
            f"{path} is not one of the sessions in {root}.",
            "Other programs' files are never changed. Use --session-dir for another folder.",
        )
    return path
