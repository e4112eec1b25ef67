"""Finds and checks the folder of a run, and whether it is trusted."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_tui import paths
from agent_tui.cli.arguments import Arguments
from agent_tui.errors import UsageError
from agent_tui.permissions.project_files import context_candidates
from agent_tui.permissions.protected_paths import ProtectedPaths
from agent_tui.permissions.trust import FolderTrust, TrustFile, WithheldFile
from agent_tui.safe_paths import path_from, real_path
from agent_tui.tools.git.worktree_records import WorktreeRecords

_NAME_ANOTHER = "Name an existing folder."


def present_folder() -> Path:
    """The folder the program was started in.

    Raises:
        UsageError: It was removed.
    """
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError(
            "The current folder no longer exists.", "Change to another one, or name one with --cwd."
        ) from error


def existing_folder(folder: Path) -> Path:
    """`folder` resolved, ``~`` expanded.

    Raises:
        UsageError: It is not a folder, or cannot be accessed.
    """
    try:
        resolved = folder.expanduser().resolve(strict=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}.", _NAME_ANOTHER) from error
    except (RuntimeError, ValueError) as error:  # unknown user after ~, circular links, a NUL
        raise UsageError(f"{folder}: {str(error).rstrip('.')}.", _NAME_ANOTHER) from error
    if not resolved.is_dir():
        raise UsageError(f"{folder} is not a folder.", _NAME_ANOTHER)
    return resolved


def present_folder_or_none() -> Path | None:
    """As `present_folder`; None if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def launch_folder(arguments: Arguments) -> Path:
    """The folder to begin in.

    Raises:
        UsageError: It does not exist.
    """
    return existing_folder(arguments.cwd or present_folder())


def folders_to_add(
    arguments: Arguments, trust: FolderTrust, own_folders: Sequence[Path]
) -> tuple[Path, ...]:
    """The folders of ``--add-dir`` that are not inside the folder to begin in.

    Args:
        arguments: The command line.
        trust: Knows which folders are too broad.
        own_folders: Where the program keeps its settings and sessions.

    Raises:
        UsageError: One is not a folder, or contains keys, sessions or whole home folders.
    """
    launched, added = launch_folder(arguments), dict[Path, None]()
    for named in arguments.added_folders:
        folder = existing_folder(named)
        guard = ProtectedPaths(workspace=folder, own_folders=tuple(own_folders))
        holds_own = any(own.is_relative_to(folder) for own in own_folders)
        why = guard.why_writing_asks(folder) or (
            f"{folder} is too broad to work in" if trust.is_too_broad(folder) or holds_own else ""
        )
        if why:
            raise UsageError(f"--add-dir: {why}.", "Name one project's folder.")
        if not folder.is_relative_to(launched):
            added[folder] = None
    return tuple(added)


def instructions_not_obeyed(added: Sequence[Path], trust: FolderTrust) -> Iterator[str]:
    """A line for each of the `added` folders whose instructions do not take effect."""
    for folder in added:
        if (file := next(context_candidates(folder), None)) and (why := trust.why_not(file)):
            yield f"Not read: {file} ({why}). To trust it: agent-tui trust add {folder}"


def folder_trust(arguments: Arguments) -> FolderTrust:
    """The decisions about folders, including ``--trust``.

    Raises:
        UsageError: The folder to trust does not exist.
    """
    kept = load_trust()
    if arguments.trusts_folder:
        others = map(existing_folder, arguments.added_folders)
        for folder in (launch_folder(arguments), *others):
            kept.trust_for_this_run(kept.folder_to_ask_about(folder))
    return kept


def load_trust() -> FolderTrust:
    """The decisions about folders that the user made in earlier runs."""
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and the system does not know this user
        home = None
    return FolderTrust(TrustFile(paths.trust_file()), home=home, worktrees=worktree_records())


def worktree_records() -> WorktreeRecords:
    """The records of the worktrees that agent-tui created."""
    return WorktreeRecords(paths.user_data_dir() / "worktrees")


def project_store(workspace: Path) -> Path:
    """Our folder for rules and prompt history; the worktrees of a repository share it."""
    return paths.project_dir(worktree_records().home_of(real_path(workspace)) or workspace)


def withheld_notice(withheld: Sequence[WithheldFile], cwd: Path) -> str:
    """A line that names what does not take effect in `cwd` and what to do; empty if none."""
    if not withheld:
        return ""
    names = ", ".join(path_from(file.path, cwd) for file in withheld)
    reasons = "; ".join(dict.fromkeys(file.why for file in withheld))
    return (
        f"Not read: {names} ({reasons}). To trust this folder: agent-tui trust add, "
        "or --trust for one run."
    )
