"""Settings of installed tools that may hold tokens: commands do not see them, and reading asks."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent_tui.safe_paths import path_exists
from agent_tui.secret_text import (
    has_key,
    has_password_in_address,
    is_secret_name,
    may_let_in,
)
from agent_tui.tools.files.protected import is_unreadable
from agent_tui.tools.git.token_settings import read_settings

_IN_TOOLCHAINS: Final = (
    *("pip.conf", "etc/npmrc", "lib/node_modules/npm/npmrc", "pipx_metadata.json"),
    *("uv-receipt.toml", ".condarc", "condarc", "etc/conda/.condarc", "conda-meta/state"),
    *("etc/conda/activate.d/*", "bin/postactivate", "postactivate", "conf/settings.xml"),
    *("gradle.properties", "init.d/*.gradle", "go.env", "etc/gemrc", "etc/Renviron"),
    *("etc/Rprofile.site", ".git/config"),
)
"""Settings that tools read from the folder where they are installed."""

OF_THE_SYSTEM: Final = (
    *("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "/etc/npmrc", "/etc/conda/.condarc"),
    *("/etc/uv/uv.toml", "/etc/maven/settings.xml", "/etc/environment"),
)
_XML_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_SECRET_WORDS: Final = ("token", "password", "_auth", "credential")
_SETTING_NAME: Final = re.compile(r"([\w.-]+)[\"']?\s*[=:]")
_PASSWORD_OR_CHANNEL: Final = re.compile(
    r"(?<![\w:/.@-])[^\s:/@\"'=]+:[^\s:/@\"']+@[\w.-]|(?<![\w.-])t/[\w-]+/"
)
"""A password before a host without ``https://``, as cargo has its proxy; a channel of conda with a
token, without its host."""

_LAST_NAMES: Final = frozenset(
    name.rpartition("/")[2] for name in (*_IN_TOOLCHAINS, *OF_THE_SYSTEM) if name[-1] != "*"
)
_FOLDERS: Final = frozenset(name.split("/")[-2] for name in _IN_TOOLCHAINS if "*" in name)


def is_settings_with_token(path: Path, *, is_worked_in: bool) -> bool:
    """Whether `path` is settings of an installed tool, or of the system, that may let in. Blocking.

    Args:
        path: An absolute path.
        is_worked_in: Whether it is in a working folder: then only the settings of an environment
            count, as tools are not installed there.
    """
    if path.name not in _LAST_NAMES and path.parent.name not in _FOLDERS:
        return False
    if is_worked_in:
        is_settings = path.name == "pip.conf" and path_exists(path.with_name("pyvenv.cfg"))
    else:
        is_settings = str(path) in OF_THE_SYSTEM or any(map(path.match, _IN_TOOLCHAINS))
    return is_settings and (holds_token(path) or (is_worked_in and is_unreadable(path)))


def settings_in(installation: Path) -> Iterator[Path]:
    """Where tools read settings in the folder of an `installation`; some may not exist."""
    for name in _IN_TOOLCHAINS:
        yield from list_matches(installation, name) if "*" in name else (installation / name,)


def list_matches(folder: Path, pattern: str) -> list[Path]:
    """What in `folder` matches a glob `pattern`; nothing if it cannot be entered."""
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []


def holds_token(file: Path) -> bool:
    """Whether settings may let in, but for the comments of XML: Maven's are examples. Blocking."""
    text = read_settings(file)  # most places where there may be some have none
    return bool(text) and may_hold_key(_XML_COMMENT.sub("", text))


def may_hold_key(text: str) -> bool:
    """Whether something in the settings `text` of a tool may let in."""
    lowered = text.casefold()
    return (
        has_key(text)
        or has_password_in_address(text)
        or may_let_in(text)
        or _PASSWORD_OR_CHANNEL.search(text) is not None
        or any(word in lowered for word in _SECRET_WORDS)
        or any(map(is_secret_name, _SETTING_NAME.findall(text)))
    )
