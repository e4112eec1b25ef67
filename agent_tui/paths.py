"""The program's folders and files, created for the owner only.

``AGENT_TUI_HOME`` names one folder for all of them; ``AGENT_TUI_CONFIG_DIR``, ``..._DATA_DIR``,
``..._CACHE_DIR`` and ``..._SESSION_DIR`` override it, each for one folder.
"""

import os
import re
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import platformdirs

FOLDER_VARIABLES = (
    "AGENT_TUI_HOME",
    *(f"AGENT_TUI_{name}_DIR" for name in ("CONFIG", "DATA", "CACHE", "SESSION")),
)
"""The variables that move the program's folders."""

CacheName: TypeAlias = Literal[
    "clipboard", "outputs", "packages", "sandbox", "sharing", "unfinished"
]
"""What is in the cache folder for this program alone. Commands run in the demo folder there."""

_APP = "agent-tui"


def ensure_home() -> None:
    """Set HOME to ``/`` if it is missing and the user is unknown, as in containers."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"


def user_config_dir() -> Path:
    """Folder of ``config.toml`` and the user's ``AGENTS.md``."""
    return _folder_in_variables("CONFIG") or Path(platformdirs.user_config_dir(_APP))


def user_data_dir() -> Path:
    """Folder of persistent data: sessions, prompt history."""
    return _folder_in_variables("DATA") or Path(platformdirs.user_data_dir(_APP))


def is_first_time(name: str) -> bool:
    """Whether this is the first call for `name` on this machine; stored as an empty file.

    False if that cannot be stored, or it would always be true.
    """
    told = user_data_dir() / name
    try:
        if told.exists():
            return False
        make_private_dir(told.parent)
        told.touch(mode=0o600)
    except OSError:
        return False
    return True


def user_cache_dir() -> Path:
    """Folder of data that may be deleted at any time: whole tool outputs, demo folders."""
    return _folder_in_variables("CACHE") or Path(platformdirs.user_cache_dir(_APP))


def cache_folder(name: CacheName) -> Path:
    """The folder `name` in `user_cache_dir`."""
    return user_cache_dir() / name


def cache_folders() -> tuple[Path, ...]:
    """Every `cache_folder`, whether it exists or not."""
    return tuple(map(cache_folder, get_args(CacheName)))


def trust_file() -> Path:
    """The file that records which folders are trusted."""
    return user_data_dir() / "trust.json"


def find_manual() -> Path | None:
    """The folder of the program's pages: in the package, or in the checkout that it runs from."""
    package = Path(__file__).parent
    places = (package / "docs", package.parent / "docs" / "pages")
    return next((place for place in places if (place / "reference" / "tools.md").is_file()), None)


def models_dir() -> Path:
    """Folder of pulled models, and of facts about added ones."""
    return user_data_dir() / "models"


def log_file() -> Path:
    """The program's own log; never holds keys or conversation text.

    If a variable moves the data folder, the log is inside it, so that all files are together.
    """
    data = _folder_in_variables("DATA")
    return (data / "log" if data else Path(platformdirs.user_log_dir(_APP))) / "agent-tui.log"


def default_session_dir() -> Path:
    """Root of all session folders."""
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


def why_not_writable(folder: Path) -> str:
    """Why nothing can be stored in `folder` or it cannot be created; empty if it can."""
    nearest = next((place for place in (folder, *folder.parents) if os.path.lexists(place)), folder)
    if not nearest.is_dir():
        return f"{nearest} is not a folder"
    return "" if os.access(nearest, os.W_OK | os.X_OK) else f"{nearest} is read-only"


def make_private_dir(path: Path) -> Path:
    """Create a folder and its missing parents with mode 0700 and return it."""
    for parent in reversed(path.parents):
        # mkdir(parents=True) would give them the default mode.
        parent.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def _folder_in_variables(kind: str) -> Path | None:
    """The folder of a `kind`, such as ``DATA``, that the variables name."""
    if own := os.environ.get(f"AGENT_TUI_{kind}_DIR"):
        return Path(own)
    whole = os.environ.get("AGENT_TUI_HOME")
    return Path(whole) / kind.lower() if whole else None
