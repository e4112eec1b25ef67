"""Everything on the screen but the prompt and the status bar, built after the first paint."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from agent_tui.tools.walk import project_files
from agent_tui.ui.activity_line import ActivityLine
from agent_tui.ui.app_host import AppHost
from agent_tui.ui.approval_panel import ApprovalPanel
from agent_tui.ui.commands import CommandRegistry, built_in_commands
from agent_tui.ui.event_view import EventView, ViewParts
from agent_tui.ui.options import UiOptions
from agent_tui.ui.plan_view import PlanView
from agent_tui.ui.prompt import PromptHistory
from agent_tui.ui.prompt.file_index import FileIndex
from agent_tui.ui.prompt.sources import PromptSources
from agent_tui.ui.queue_view import QueueView
from agent_tui.ui.start import welcome_block
from agent_tui.ui.status_fields import StatusSource
from agent_tui.ui.transcript import Transcript
from agent_tui.ui.turn_driver import DriverHooks, TurnDriver

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_tui.ui.app import AgentApp


@dataclass(frozen=True, slots=True)
class Parts:
    """The widgets above the prompt, and what works on them."""

    options: UiOptions
    registry: CommandRegistry
    files: FileIndex
    history: PromptHistory
    chat: Transcript
    plan: PlanView
    approval: ApprovalPanel
    queue: QueueView
    activity: ActivityLine
    status: StatusSource
    view: EventView
    turns: TurnDriver
    host: AppHost

    @property
    def widgets(self) -> tuple[Transcript, PlanView, ApprovalPanel, QueueView, ActivityLine]:
        """From top to bottom."""
        return (self.chat, self.plan, self.approval, self.queue, self.activity)


def build_parts(app: "AgentApp", options: UiOptions) -> Parts:
    """The parts of `app`, not mounted yet. Call on the event loop."""
    host = AppHost(app)
    chat, plan, queue = Transcript(), PlanView(), QueueView()
    approval, activity = ApprovalPanel(options.approval_quiet_s), ActivityLine(options.clock)
    view_parts = ViewParts(
        chat=chat,
        activity=activity,
        approval=approval,
        queue=queue,
        plan=plan,
        status_changed=app.refresh_status,
        attention=app.call_for_attention,
        welcome=lambda: welcome_block(options),
        edit_again=app.edit_again,
    )
    view = EventView(view_parts, options.runtime, options.clock)
    hooks = DriverHooks(
        start_work=partial(app.run_worker, group="activity", exit_on_error=True),
        give_back=app.prompt.put_before,
    )
    return Parts(
        options=options,
        registry=built_in_commands(),
        files=FileIndex(options.runtime.cwd, project_files, options.clock),
        history=PromptHistory(options.history_file),
        chat=chat,
        plan=plan,
        approval=approval,
        queue=queue,
        activity=activity,
        status=StatusSource(options),
        view=view,
        turns=TurnDriver(options.runtime, view, hooks),
        host=host,
    )


def prompt_sources(parts: Parts) -> PromptSources:
    """What the prompt completes from and remembers in."""

    def choices(name: str) -> "Iterable[str]":
        command = parts.registry.find(name)
        return command.choices(parts.host) if command is not None and command.choices else ()

    return PromptSources(parts.registry, choices, parts.files, parts.history)
