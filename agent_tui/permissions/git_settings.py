"""Whether a repository's settings could make git run programs, found without running git."""

from pathlib import Path

from agent_tui.permissions.project_files import repository_root
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import is_folder, is_link, path_exists
from agent_tui.tools.sandbox.git_controls import odd_settings

_INDEX_BLOCK_BYTES = 1 << 20
_HELD_REPOSITORY = (0o160000).to_bytes(4, "big")


def git_risk(cwd: Path) -> str:
    """Which settings around `cwd` git could follow; empty if harmless or not a repository."""
    root = repository_root(cwd)
    for folder in (cwd, *cwd.parents):
        if path_exists(folder / "HEAD") and is_folder(folder / "objects"):
            return f"{folder} is itself a git directory"
        if folder == root:
            return _risk_in(folder / ".git")
    return ""


def _risk_in(inside: Path) -> str:
    if is_link(inside) or not is_folder(inside):
        return f"{inside} points elsewhere"
    for name in ("commondir", "config.worktree"):
        if path_exists(inside / name):
            return f"{inside / name} loads settings from elsewhere"
    if held := _held_repositories(inside):
        return held
    try:
        for hook in sorted((inside / "hooks").iterdir()):
            if hook.suffix != ".sample":
                return f"{hook} is a hook"
    except OSError:
        pass  # the file is missing
    try:
        return next((doubt for _, doubt in odd_settings(inside / "config")), "")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        return f"{inside / 'config'} cannot be read"


def _held_repositories(inside: Path) -> str:
    """Why git may enter repositories within this one and follow their settings.

    The index has an entry for each, with mode 160000 (octal) whatever ``.gitmodules`` says.
    """
    if any(inside.glob("sharedindex.*")):
        return f"{inside} has a split index"
    try:
        with open_regular_file(inside / "index") as file:
            before = b""
            while block := file.read(_INDEX_BLOCK_BYTES):
                if _HELD_REPOSITORY in before + block:
                    return f"{inside / 'index'} may list submodules, whose settings apply"
                before = block[-len(_HELD_REPOSITORY) :]
    except FileNotFoundError:
        return ""
    except OSError:
        return f"{inside / 'index'} cannot be read"
    return ""
