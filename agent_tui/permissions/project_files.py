"""The files of a project that say how to work in it: where they are, without reading any."""

from collections.abc import Iterator
from pathlib import Path

from agent_tui.safe_paths import git_entry, is_folder

CONTEXT_NAMES = ("AGENTS.md", "CLAUDE.md")
"""In each folder the first of these that is there."""

OVERRIDE_NAME = "AGENTS.override.md"
"""Counts in place of those."""

LOCAL_NAME = "CLAUDE.local.md"
"""Counts beside them: what one person wants to have in their copy of a project."""

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
"""Prompt files, which become slash commands, those that win last; the home folder has the same, the
person's own folder ``commands``."""

SKILLS_FOLDERS = (
    Path(".agents", "skills"),
    Path(".agent-tui", "skills"),
    Path(".claude", "skills"),
)
"""Skills, those that win first; the home folder has the same, the person's own one ``skills``."""

AGENTS_FOLDERS = (Path(".agent-tui", "agents"), Path(".claude", "agents"))
"""Definitions of helpers; the person's own folder has ``agents``."""


def repository_root(cwd: Path) -> Path | None:
    """The nearest folder from `cwd` upward with ``.git``. Git itself is not run."""
    entry = git_entry(cwd)
    return entry.parent if entry is not None else None


def project_folders(cwd: Path) -> tuple[Path, ...]:
    """The repository's root down to `cwd`; without a repository only `cwd`."""
    root = repository_root(cwd)
    if root is None:
        return (cwd,)
    below = [folder for folder in cwd.parents if folder.is_relative_to(root)]
    return (*reversed(below), cwd)


def context_candidates(folder: Path) -> Iterator[Path]:
    """The files of `folder` with instructions for the model, the one to prefer first.

    Pipes, folders and empty files of such a name are passed over.
    """
    for name in (OVERRIDE_NAME, *CONTEXT_NAMES):
        if _has_text(folder / name):
            yield folder / name


def local_candidate(folder: Path) -> Iterator[Path]:
    """The file of `folder` with what one person adds to that, if there is one."""
    if _has_text(folder / LOCAL_NAME):
        yield folder / LOCAL_NAME


def config_files(cwd: Path) -> tuple[Path, ...]:
    """The settings of the project that `cwd` is in, the most general first."""
    files = (folder / _CONFIG_FILE for folder in project_folders(cwd))
    return tuple(file for file in files if _has_text(file))


def server_files(cwd: Path) -> tuple[Path, ...]:
    """The files that name MCP servers of the project that `cwd` is in, the most general first."""
    files = (folder / _SERVER_FILE for folder in project_folders(cwd))
    return tuple(file for file in files if _has_text(file))


def hook_files(cwd: Path) -> tuple[Path, ...]:
    """The files that can name hooks of the project that `cwd` is in, the most general first."""
    files = (folder / name for folder in project_folders(cwd) for name in _HOOK_FILES)
    return tuple(file for file in files if _has_text(file))


def _prompt_folders(cwd: Path) -> tuple[Path, ...]:
    """The folders with prompt files, helpers and skills of the project of `cwd`. None is listed."""
    kinds = (*COMMANDS_FOLDERS, *AGENTS_FOLDERS, *SKILLS_FOLDERS)
    folders = (folder / kind for kind in kinds for folder in project_folders(cwd))
    return tuple(folder for folder in folders if is_folder(folder))


def project_files(cwd: Path) -> tuple[Path, ...]:
    """Everything that would be obeyed in `cwd` if its project were trusted; whole folders too."""
    files = [
        file
        for folder in project_folders(cwd)
        for candidates in (context_candidates(folder), local_candidate(folder))
        if (file := next(candidates, None)) is not None
    ]
    settings = (*config_files(cwd), *server_files(cwd), *hook_files(cwd))
    return (*files, *settings, *_prompt_folders(cwd))


def _has_text(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size > 0
    except OSError:
        return False
