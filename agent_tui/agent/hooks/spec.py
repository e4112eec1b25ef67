"""One hook: which command is run when, and what it is remembered by."""

import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_tui.config import HookEvent

DEFAULT_TIMEOUT_S = 60.0
MAX_TIMEOUT_S = 3_600.0
_MAX_MATCHER_CHARS = 500


@dataclass(frozen=True, slots=True)
class HookSpec:
    """One hook as it was written down.

    Args:
        event: The moment it is run at.
        command: Shell text.
        matcher: For which tools, or for what other kind of the event: a regular expression for
            the whole name, upper and lower case alike; empty or ``*`` for all.
        timeout_s: How long it may take.
        source: The file that names it.
        is_projects: Whether the file belongs to a project, so that the person is asked first.
    """

    event: HookEvent
    command: str
    matcher: str = ""
    timeout_s: float = DEFAULT_TIMEOUT_S
    source: str = ""
    is_projects: bool = False

    def is_for(self, names: Collection[str]) -> bool:
        """Whether it is run for what has one of `names`; where nothing is named it always is."""
        if self.matcher in ("", "*") or not names:
            return True
        pattern = re.compile(self.matcher, re.IGNORECASE)
        return any(pattern.fullmatch(name) for name in names)

    @property
    def fingerprint(self) -> str:
        """A hash of all that says what would be run, when, and by which file."""
        text = json.dumps([self.event, self.matcher, self.command, self.source])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def matcher_problem(matcher: str) -> str:
    """Why `matcher` cannot be used; empty where it can."""
    if len(matcher) > _MAX_MATCHER_CHARS:
        return f"its matcher is longer than {_MAX_MATCHER_CHARS} characters"
    try:
        re.compile("" if matcher == "*" else matcher)
    except (re.error, RecursionError) as error:
        return f"its matcher {matcher!r} is not a valid regular expression: {error}"
    return ""


@dataclass(frozen=True, slots=True)
class FoundHook:
    """A hook that some file names; `is_allowed` is None where the person was not asked yet."""

    spec: HookSpec
    is_allowed: bool | None = True


@dataclass(frozen=True, slots=True)
class FoundHooks:
    """The hooks for a folder, and what of the files that name them cannot be used."""

    hooks: tuple[FoundHook, ...] = ()
    problems: tuple[str, ...] = ()


class HookSources(Protocol):
    """Where hooks are named (`HookFiles` does it)."""

    def find(self, cwd: Path) -> FoundHooks:
        """The hooks for work in `cwd`. Reads files; nothing of a folder without trust."""
        ...

    def answer(self, spec: HookSpec, *, is_allowed: bool) -> None:
        """Keep what the person said about a project's hook.

        Raises:
            ConfigError: It cannot be kept; it holds for this run.
        """
        ...


class NoHookFiles:
    """There are no hooks."""

    def find(self, cwd: Path) -> FoundHooks:
        """None."""
        return FoundHooks()

    def answer(self, spec: HookSpec, *, is_allowed: bool) -> None:
        """Nothing is asked about."""
