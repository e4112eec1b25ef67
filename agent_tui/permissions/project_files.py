"""What a project's files may do here: its instructions and settings, and what git would follow.

Instruction and settings files are found by name, and git is not run.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import git_entry, is_folder, is_link, path_exists
from agent_tui.tools.git.settings import odd_settings, read_bytes

CONTEXT_NAMES = ("AGENTS.md", "CLAUDE.md")
"""In each folder the first existing file is used."""

OVERRIDE_NAME = "AGENTS.override.md"
"""Replaces those if it exists."""

LOCAL_NAME = "CLAUDE.local.md"
"""Added to those: what one user wants in their own copy of a project."""

INSTRUCTION_NAMES = (OVERRIDE_NAME, *CONTEXT_NAMES, LOCAL_NAME)
_CONFIG_FILE = Path(".agent-tui", "config.toml")
_SERVER_FILE = ".mcp.json"
_HOOK_FILES = (
    Path(".agent-tui", "hooks.json"),
    Path(".claude", "settings.json"),
    Path(".claude", "settings.local.json"),
    Path(".codex", "hooks.json"),
)
COMMANDS_FOLDERS = (
    Path(".claude", "commands"),
    Path(".agents", "commands"),
    Path(".agent-tui", "commands"),
)
"""Folders of prompt files (slash commands), later ones win; the home folder has the same."""

SKILLS_FOLDERS = (
    Path(".agents", "skills"),
    Path(".agent-tui", "skills"),
    Path(".claude", "skills"),
)
"""Folders of skills, earlier ones win; the home folder has the same, the user's is ``skills``."""

AGENTS_FOLDERS = (Path(".agent-tui", "agents"), Path(".claude", "agents"))
"""Folders of helper definitions; the user's own folder is ``agents``."""

_INDEX_BLOCK_BYTES = 1 << 20
_HELD_REPOSITORY = (0o160000).to_bytes(4, "big")


def repository_root(cwd: Path) -> Path | None:
    """The nearest folder from `cwd` upward that holds ``.git``. Does not run git."""
    entry = git_entry(cwd)
    return entry.parent if entry is not None else None


def project_folders(cwd: Path) -> tuple[Path, ...]:
    """The folders from the repository's root down to `cwd`; without a repository only `cwd`."""
    root = repository_root(cwd)
    if root is None:
        return (cwd,)
    below = [folder for folder in cwd.parents if folder.is_relative_to(root)]
    return (*reversed(below), cwd)


def context_candidates(folder: Path) -> Iterator[Path]:
    """The files of `folder` with instructions for the model, the preferred one first.

    Pipes, folders and empty files with such a name are skipped.
    """
    for name in (OVERRIDE_NAME, *CONTEXT_NAMES):
        if has_text(folder / name):
            yield folder / name


def local_candidate(folder: Path) -> Iterator[Path]:
    """The file in `folder` with one user's additions, if it exists."""
    if has_text(folder / LOCAL_NAME):
        yield folder / LOCAL_NAME


def config_files(cwd: Path) -> tuple[Path, ...]:
    """The settings files of the project around `cwd`, the most general first."""
    files = (folder / _CONFIG_FILE for folder in project_folders(cwd))
    return tuple(file for file in files if has_text(file))


def server_files(cwd: Path) -> tuple[Path, ...]:
    """The files that name MCP servers of the project around `cwd`, the most general first."""
    files = (folder / _SERVER_FILE for folder in project_folders(cwd))
    return tuple(file for file in files if has_text(file))


def hook_files(cwd: Path) -> tuple[Path, ...]:
    """The files that may name hooks of the project around `cwd`, the most general first.

    Claude Code's settings hold much else, most often only its own permissions.
    """
    files = (folder / name for folder in project_folders(cwd) for name in _HOOK_FILES)
    return tuple(file for file in files if has_text(file) and _may_name_hooks(file))


def _may_name_hooks(file: Path) -> bool:
    """Whether the JSON in `file` has a key ``hooks``, or cannot be read."""
    try:
        content: object = json.loads(read_bytes(file, follow_links=True))
    except (OSError, ValueError, RecursionError):
        return True
    return not isinstance(content, dict) or "hooks" in content


def _prompt_folders(cwd: Path) -> tuple[Path, ...]:
    """The project's folders of prompts, helpers and skills; their content is not read."""
    kinds = (*COMMANDS_FOLDERS, *AGENTS_FOLDERS, *SKILLS_FOLDERS)
    folders = (folder / kind for kind in kinds for folder in project_folders(cwd))
    return tuple(folder for folder in folders if is_folder(folder))


def project_files(cwd: Path) -> tuple[Path, ...]:
    """Everything that takes effect in `cwd` if its project is trusted, whole folders included."""
    files = [
        file
        for folder in project_folders(cwd)
        for candidates in (context_candidates(folder), local_candidate(folder))
        if (file := next(candidates, None)) is not None
    ]
    settings = (*config_files(cwd), *server_files(cwd), *hook_files(cwd))
    return (*files, *settings, *_prompt_folders(cwd))


def has_text(path: Path) -> bool:
    """Whether `path` is a file that is not empty."""
    try:
        return path.is_file() and path.stat().st_size > 0
    except OSError:
        return False


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
    if held := _find_held_repositories(inside):
        return held
    try:
        for hook in sorted((inside / "hooks").iterdir()):
            if hook.suffix != ".sample":
                return f"{hook} is a hook"
    except OSError:
        pass  # the file is missing
    try:
        config = inside / "config"
        content = read_bytes(config, follow_links=True)
        return next((doubt for _, doubt, _ in odd_settings(config, content)), "")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        return f"{inside / 'config'} cannot be read"


def _find_held_repositories(inside: Path) -> str:
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
