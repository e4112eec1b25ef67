"""What was set for a run without a screen: its limits, and what its answer must be."""

from dataclasses import dataclass

from agent_tui.durations import shortest
from agent_tui.headless.answer_schema import AnswerSchema


@dataclass(slots=True)
class TimeLimit:
    """How long a run may take, and whether it has taken that long."""

    seconds: float
    is_over: bool = False

    @property
    def words(self) -> str:
        """Why a run ended that took too long."""
        return f"Stopped: --max-time {shortest(self.seconds)} reached."


@dataclass(frozen=True, slots=True)
class RunTerms:
    """What was set for a run.

    Attributes:
        schema: What the answer must be; None for anything.
        time_limit: When the run is ended; None for never.
        fails_on_refusal: Whether a run in which a call was refused has an exit code of its own.
        goes_on: Whether the conversation goes on after this message, and its background commands
            with it.
    """

    schema: AnswerSchema | None = None
    time_limit: TimeLimit | None = None
    fails_on_refusal: bool = False
    goes_on: bool = False

    @property
    def is_out_of_time(self) -> bool:
        """Whether the run has taken as long as it may."""
        return self.time_limit is not None and self.time_limit.is_over


NO_TERMS = RunTerms()
