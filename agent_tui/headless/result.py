"""What a run came to: the one object of ``--output-format json``, the last line of the stream."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import JsonValue

from agent_tui.events import TurnOutcome


@dataclass(frozen=True, slots=True)
class ContextResult:
    """How full the context is, in tokens; `is_estimate` where the provider sent no counts."""

    used: int
    window: int
    is_estimate: bool


@dataclass(frozen=True, slots=True)
class TokensResult:
    """What the session took, in tokens."""

    input: int
    output: int


RunOutcome: TypeAlias = TurnOutcome | Literal["timeout"]


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that was not allowed: `reason` is a rule, a mode, a hook, or what nobody approved."""

    tool: str
    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """How the run ended, and what it came to.

    `result` is the text of the last reply. `error` says why an `outcome` is not ``done``;
    ``timeout`` is the end of ``--max-time``. `refused_calls` were not allowed, and did not run.
    `exit_code` is the program's. `session_path` is null where none is kept, `cost_usd` where no
    price is known. `stopped_jobs` are the commands that still ran and ended with the program.
    `structured_output` is the answer that ``--json-schema`` asked for, else null.
    """

    result: str
    outcome: RunOutcome
    error: str
    exit_code: int
    session_id: str
    session_path: str | None
    model: str
    context: ContextResult
    tokens: TokensResult
    cost_usd: float | None
    stopped_jobs: tuple[str, ...]
    refused_calls: tuple[RefusedCall, ...] = ()
    structured_output: JsonValue = None
    type: Literal["result"] = field(default="result", kw_only=True)
