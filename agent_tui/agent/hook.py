"""Hooks that are functions of plugins: what they bring, whether anything runs hooks or not."""

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias, get_args

from agent_tui.config import HookEvent
from agent_tui.messages import JsonObject
from agent_tui.safe_text import printable_line

DEFAULT_TIMEOUT_S = 60.0
_MAX_MATCHER_CHARS = 500


HookFunction: TypeAlias = Callable[[JsonObject], object]
"""A hook of a plugin: takes what a command reads, and returns what it prints; may be async."""


@dataclass(frozen=True, slots=True)
class HookSpec:
    """One hook as it is defined.

    Args:
        event: The moment it is run at.
        command: Shell text; the full name of a function.
        matcher: The tools or other kinds of the event it runs for: a regular expression for the
            whole name that ignores case; empty or ``*`` for all.
        timeout_s: How long it may take.
        source: The file that names it.
        is_projects: Whether the file belongs to a project, so that the user is asked first.
        function: Runs instead of a command.
    """

    event: HookEvent
    command: str
    matcher: str = ""
    timeout_s: float = DEFAULT_TIMEOUT_S
    source: str = ""
    is_projects: bool = False
    function: HookFunction | None = None

    @property
    def shown(self) -> str:
        """What runs, as a line."""
        return printable_line(self.command if self.function else f"$ {self.command}", 80)

    def is_for(self, names: Collection[str]) -> bool:
        """Whether the matcher fits one of `names`; always true if there are none."""
        if self.matcher in ("", "*") or not names:
            return True
        pattern = re.compile(self.matcher, re.IGNORECASE)
        return any(pattern.fullmatch(name) for name in names)

    @property
    def fingerprint(self) -> str:
        """A hash of what runs, when it runs, and which file defines it."""
        text = json.dumps([self.event, self.matcher, self.command, self.source])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def matcher_problem(matcher: str) -> str:
    """Why `matcher` cannot be used; empty if it can."""
    if len(matcher) > _MAX_MATCHER_CHARS:
        return f"its matcher is longer than {_MAX_MATCHER_CHARS} characters"
    try:
        re.compile("" if matcher == "*" else matcher)
    except (re.error, RecursionError) as error:
        return f"its matcher {matcher!r} is not a valid regular expression: {error}"
    return ""


@dataclass(frozen=True, slots=True)
class Hook:
    """A function that runs when something happens; it can still be called as what it is.

    Attributes:
        name: The function's.
        spec: When it runs.
    """

    name: str
    spec: HookSpec
    _function: HookFunction

    def __call__(self, facts: JsonObject) -> object:
        """Call the function."""
        return self._function(facts)


def hook(
    event: HookEvent, *, matcher: str = "", timeout_s: float = DEFAULT_TIMEOUT_S
) -> Callable[[HookFunction], Hook]:
    """Make a function a hook.

        @hook("PreToolUse", matcher="bash")
        def no_pushes(facts):
            if "git push" in facts["tool_input"]["command"]:
                return {"decision": "block", "reason": "Pushing is for people."}

    It takes what a command reads as JSON. It returns what one prints: nothing, text, or a dict.
    What it raises is reported and changes nothing. A function that is not ``async`` runs in a
    thread, which is left alone when its time is up.

    Args:
        event: The moment it runs at.
        matcher: The tools or other kinds of the event it is for; empty for all.
        timeout_s: How long it may take.

    Raises:
        ValueError: There is no such event, or the matcher is no regular expression.
    """
    if event not in get_args(HookEvent):
        raise ValueError(
            f"there is no event {event!r}; the events are {', '.join(get_args(HookEvent))}"
        )
    if problem := matcher_problem(matcher):
        raise ValueError(problem)

    def make(function: HookFunction) -> Hook:
        name = getattr(function, "__name__", "")
        shown = f"{function.__module__}.{name}"
        source = inspect.getsourcefile(function) or ""
        return Hook(
            name, HookSpec(event, shown, matcher, timeout_s, source, function=function), function
        )

    return make
