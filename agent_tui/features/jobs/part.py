"""Wakes the model when a job that it started ends while nothing runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent_tui.agent.activity import Emit
from agent_tui.agent.part import Answer, Host, Part
from agent_tui.events import Notice
from agent_tui.features.jobs.settings import JobSettings
from agent_tui.messages import ToolCall
from agent_tui.tools.base import ToolOutput

MOST_WAKES = 10
"""The most turns in a row without a message from the user, so that a loop of jobs ends."""

_TOLD = "; you are told when it ends, even after your turn]"
_LAST = (
    f"The model has continued after a job {MOST_WAKES} times without you. It learns how later "
    "jobs end with your next message."
)


class JobsPart(Part):
    """Knows the jobs that the model started here, and how often they woke it.

    Args:
        host: The conversation.
    """

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._started: set[str] = set()
        self._wakes = 0

    def wake(self) -> bool:
        """Wake the model if a job that it started has ended without being stopped."""
        is_woken = self._may_wake and self._wakes < MOST_WAKES and self._has_ended
        self._wakes += is_woken
        return is_woken

    async def before_message(self, text: str, emit: Emit) -> Answer:
        """The user is there: count again."""
        self._wakes = 0
        return Answer()

    async def before_continuing(self, emit: Emit) -> None:
        """Say that the model is not woken again until the user writes."""
        if self._wakes == MOST_WAKES:
            emit(Notice("info", _LAST, "job"))

    async def after_call(
        self, call: ToolCall, paths: Sequence[Path], output: ToolOutput, emit: Emit
    ) -> ToolOutput:
        """Remember the jobs that a call began, and say that the model learns of their end."""
        begun = {job.id for job in output.for_person.jobs if not job.ending} - self._started
        if call.name == "job" or not begun:
            return output
        self._started |= begun
        if not self._may_wake:
            return output
        return replace(output, for_model=output.for_model.removesuffix("]") + _TOLD)

    @property
    def _may_wake(self) -> bool:
        settings = self.host.services.settings
        return self.host.can_wake and settings.of(JobSettings).continue_after_jobs

    @property
    def _has_ended(self) -> bool:
        jobs = self.host.conversation.jobs
        ended = (jobs.find(job.id) for job in self.host.conversation.untold_jobs())
        return any(job and job.id in self._started and not job.was_stopped for job in ended)
