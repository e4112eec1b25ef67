"""What a run came to: the one object of ``--output-format json``, the last line of the stream."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import JsonValue

from agent_tui.events import TurnOutcome


@dataclass(frozen=True, slots=True)
class ContextResult:
    """Context used, in tokens; `is_estimate` if the provider sent no counts."""

    used: int
    window: int
    is_estimate: bool


@dataclass(frozen=True, slots=True)
class TokensResult:
    """Tokens that the session used."""

    input: int
    output: int


RunOutcome: TypeAlias = TurnOutcome | Literal["timeout"]


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A tool call that was refused; `reason` names the rule, mode, hook or missing approval."""

    tool: str
    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """How the run ended, and its result.

    `result` is the text of the last reply. `error` says why `outcome` is not ``done``;
    ``timeout`` means that ``--max-time`` was reached. `refused_calls` did not run, or are
    hosts that commands were not let reach (``network``). `exit_code` is
    the program's. `session_path` is null if the session is not saved, and `cost_usd` if a price
    is unknown. `stopped_jobs` are background commands that ended with the program.
    `structured_output` is the answer to ``--json-schema``, else null.
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
