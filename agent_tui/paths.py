"""Where the program keeps its files, and how they are made: for the owner only."""

import os
import re
from pathlib import Path

import platformdirs

_APP = "agent-tui"


def user_config_dir() -> Path:
    """Folder of ``config.toml`` and the user's ``AGENTS.md`` (``AGENT_TUI_CONFIG_DIR`` wins)."""
    override = os.environ.get("AGENT_TUI_CONFIG_DIR")
    return Path(override) if override else Path(platformdirs.user_config_dir(_APP))


def user_data_dir() -> Path:
    """Folder of what must be kept: sessions, prompt history (``AGENT_TUI_DATA_DIR`` wins)."""
    override = os.environ.get("AGENT_TUI_DATA_DIR")
    return Path(override) if override else Path(platformdirs.user_data_dir(_APP))


def user_cache_dir() -> Path:
    """Folder of what may be deleted at any time: whole tool outputs, demo folders."""
    override = os.environ.get("AGENT_TUI_CACHE_DIR")
    return Path(override) if override else Path(platformdirs.user_cache_dir(_APP))


def trust_file() -> Path:
    """Which folders are trusted."""
    return user_data_dir() / "trust.json"


def models_dir() -> Path:
    """Folder of the models that were pulled, and of what is known of those that were added."""
    return user_data_dir() / "models"


def log_file() -> Path:
    """The program's own log; never holds keys or conversation text.

    Beside the data when ``AGENT_TUI_DATA_DIR`` is set, so that all files are in one place then.
    """
    override = os.environ.get("AGENT_TUI_DATA_DIR")
    folder = Path(override) / "log" if override else Path(platformdirs.user_log_dir(_APP))
    return folder / "agent-tui.log"


def default_session_dir() -> Path:
    """Root of all session folders (``AGENT_TUI_SESSION_DIR`` wins)."""
    override = os.environ.get("AGENT_TUI_SESSION_DIR")
    return Path(override) if override else user_data_dir() / "sessions"


def cwd_slug(cwd: Path) -> str:
    """A readable, unique folder name for a working folder.

    The last 60 characters of the path with separators as dashes, and 8 hex digits of the
    SHA-256 of the whole path, so that two folders never share a name.
    """
    import hashlib  # 4 ms that only a session's folder needs

    text = str(cwd)
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[-60:].strip("-") or "root"
    return f"{readable}-{hashlib.sha256(os.fsencode(text)).hexdigest()[:8]}"


def project_dir(cwd: Path) -> Path:
    """Our own folder for a project's rules and prompt history, outside the project itself."""
    return user_data_dir() / "projects" / cwd_slug(cwd)


def make_private_dir(path: Path) -> Path:
    """Create a folder and its missing parents with mode 0700 and return it."""
    for parent in reversed(path.parents):
        # mkdir(parents=True) would give them the default mode.
        parent.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    return path
