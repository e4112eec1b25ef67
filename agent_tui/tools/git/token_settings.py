"""Settings with tokens, in git folders and elsewhere."""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from agent_tui.regular_files import open_regular_file
from agent_tui.secret_text import (
    has_key,
    has_password_in_address,
    is_secret_name,
    may_let_in,
    users_in,
    without_user,
)

_MOST_BYTES: Final = 1_000_000
_LEAST_CHARS: Final = 6
_WITH_CONTINUATION: Final = re.compile(r"(?:[^\\\n]|\\.?)*\n?", re.DOTALL)
"""A line of git's settings, with those that continue it."""

_SECTION: Final = re.compile(r'\s*\[[^\]"\n]*(?:"(?:[^"\\\n]|\\.)*"\s*)?\]')


def has_git_tokens(file: Path) -> bool:
    """Whether a file in a git folder is one of git's settings, and has tokens. Blocking."""
    text = read_settings(file)
    is_settings = is_git_settings_name(file) or text.lstrip().startswith("[")
    return is_settings and without_tokens(text) != text


def is_git_settings_name(file: Path) -> bool:
    """Whether a file in a git folder is one of git's settings, by its name."""
    is_remote = file.parent.name in ("remotes", "branches")
    return is_remote or file.name.startswith("config") or "credentials" in file.name


@lru_cache(maxsize=256)
def without_tokens(text: str) -> str:
    """Git settings without users in addresses, and without lines that still may let in."""
    lines: list[str] = []
    for line in _WITH_CONTINUATION.findall(text):
        section, setting = _split(line)
        plain = _plain_setting(section) + _plain_setting(setting)
        lines.append(line if plain == section + setting else plain)
    return "".join(lines)


@lru_cache(maxsize=256)
def tokens_in(text: str) -> tuple[str, ...]:
    """What lets in, of git settings: users and passwords in addresses, and values of settings."""
    parts = (part for line in _WITH_CONTINUATION.findall(text) for part in _split(line))
    found = (token for part in filter(_lets_in, parts) for token in _tokens_of(part))
    return tuple(dict.fromkeys(token for token in found if len(token) >= _LEAST_CHARS))


def _tokens_of(part: str) -> Iterator[str]:
    users = users_in(part)
    yield from users
    yield from (user.partition(":")[2] for user in users)
    if _lets_in(without_user(part)):
        yield part.partition("=")[2].strip().strip('"')


def _split(line: str) -> tuple[str, str]:
    """The name of a section that a line begins with, and the rest, without continuations."""
    joined = line.replace("\\\n", "")
    section = _SECTION.match(joined)
    cut = section.end() if section else 0
    return joined[:cut], joined[cut:]


def _plain_setting(part: str) -> str:
    """The name of a section, or one setting, without what lets in."""
    plain = without_user(part) if _lets_in(part) else part
    if not _lets_in(plain):
        return plain
    return "[hidden]" if plain.lstrip().startswith("[") else "\n"


def _lets_in(part: str) -> bool:
    name, mark, value = (word.strip() for word in part.partition("="))
    is_setting = bool(mark) and not name.startswith("[")  # a branch may have any name
    folded = name.casefold()
    is_secret = is_setting and (
        folded in ("extraheader", "oauth")
        or is_secret_name(name)
        or (folded == "helper" and "password=" in value)
    )
    return is_secret or has_key(part) or has_password_in_address(part) or may_let_in(part)


def read_settings(file: Path) -> str:
    """The text of a settings file; empty if there is none."""
    try:
        with open_regular_file(file) as opened:
            return opened.read(_MOST_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
