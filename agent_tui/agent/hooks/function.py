"""Hooks that are functions of plugins."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from agent_tui.agent.hooks.files import DEFAULT_TIMEOUT_S, HookFunction, HookSpec, matcher_problem
from agent_tui.config import HookEvent
from agent_tui.messages import JsonObject


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
