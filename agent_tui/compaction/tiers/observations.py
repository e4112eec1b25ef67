"""Results that come as messages of the user's, as agents without tool calls record them."""

import re

from agent_tui.compaction.tiers.actions import run_action
from agent_tui.compaction.tiers.model import Action
from agent_tui.messages import AssistantMessage, UserMessage

_OPENING = re.compile(
    r"\s*(?:<returncode>|<output>|<warning>|<function_results>|<tool_(?:result|response|output)>"
    r"|OBSERVATION:|Observation:|EXECUTION RESULT of \[)"
)
_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>|\bexit (?:code|status) (\d+)")
_FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LOOKED_AT_CHARS = 400


def observed_action(message: UserMessage, before: AssistantMessage | None) -> Action | None:
    """What `message` is the result of; None where a person wrote it.

    It is a result when it opens as one and the reply before it asked for a command in a fenced
    block rather than by a call.
    """
    if before is None or before.tool_calls or not _OPENING.match(message.text[:_LOOKED_AT_CHARS]):
        return None
    blocks = _FENCED.findall(before.text)
    return run_action("bash", blocks[-1].strip()) if blocks else None


def observed_exit_code(text: str) -> int | None:
    """The exit code that a recorded result names, if it names one."""
    found = _RETURN_CODE.search(text[:_LOOKED_AT_CHARS])
    return int(found[1] or found[2]) if found else None
