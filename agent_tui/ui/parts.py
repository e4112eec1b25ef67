"""Everything on the screen but the prompt and the status bar, built after the first paint."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from agent_tui.agent.prompt_shelf import PromptShelf
from agent_tui.agent.said import image_refusal
from agent_tui.commands.core.discovery import built_in_commands
from agent_tui.commands.core.prompt_commands import PromptFileCommands
from agent_tui.commands.core.registry import CommandRegistry
from agent_tui.tools.files.walk import project_files
from agent_tui.ui.activity_line import ActivityLine
from agent_tui.ui.approval_panel import ApprovalPanel
from agent_tui.ui.event_view import EventView, ViewParts
from agent_tui.ui.front import ScreenFront
from agent_tui.ui.hints import Newcomer
from agent_tui.ui.notifying import Attention
from agent_tui.ui.options import UiOptions
from agent_tui.ui.plan_view import PlanView
from agent_tui.ui.prompt import PromptHistory
from agent_tui.ui.prompt.file_index import FileIndex
from agent_tui.ui.prompt.sources import PromptSources
from agent_tui.ui.queue_view import QueueView
from agent_tui.ui.status_fields import StatusSource
from agent_tui.ui.transcript import Transcript
from agent_tui.ui.turn_driver import DriverHooks, TurnDriver
from agent_tui.ui.welcome import welcome_block

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from agent_tui.commands.core.command import Completions
    from agent_tui.ui.app import AgentApp


@dataclass(frozen=True, slots=True)
class Parts:
    """The widgets above the prompt, and what works on them."""

    options: UiOptions
    registry: CommandRegistry
    prompt_files: PromptFileCommands
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
    front: ScreenFront
    newcomer: Newcomer
    attention: Attention

    @property
    def widgets(self) -> tuple[Transcript, PlanView, ApprovalPanel, QueueView, ActivityLine]:
        """From top to bottom."""
        return (self.chat, self.plan, self.approval, self.queue, self.activity)


def build_parts(app: "AgentApp", options: UiOptions) -> Parts:
    """The parts of `app`, not mounted yet. Call on the event loop."""
    front, registry, runtime = ScreenFront(app), built_in_commands(), options.runtime
    shelf = PromptShelf(runtime.user_config_dir, runtime.trust, registry.own_names)
    chat, plan, queue = Transcript(), PlanView(), QueueView()
    approval, activity = ApprovalPanel(options.approval_quiet_s), ActivityLine(options.clock)
    view_parts = ViewParts(
        chat=chat,
        activity=activity,
        approval=approval,
        queue=queue,
        plan=plan,
        status_changed=app.refresh_status,
        noticed=app.notice,
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
        registry=registry,
        prompt_files=PromptFileCommands(
            registry, shelf, lambda: runtime.cwd, lambda line: front.say(line, "warning")
        ),
        files=FileIndex(lambda: options.runtime.cwd, project_files, options.clock),
        history=PromptHistory(options.history_file),
        chat=chat,
        plan=plan,
        approval=approval,
        queue=queue,
        activity=activity,
        status=StatusSource(options, app.guest),
        view=view,
        turns=TurnDriver(options.runtime, view, hooks),
        front=front,
        newcomer=Newcomer(options.newcomer_file),
        attention=Attention(options.settings.notify, options.clock),
    )


def prompt_sources(parts: Parts) -> PromptSources:
    """What the prompt completes from and remembers in."""

    def completions(name: str) -> "Completions | Awaitable[Completions]":
        command = parts.registry.find(name)
        if command is None or command.completions is None or command.missing_in(parts.front):
            return ()
        return command.completions(parts.front)

    return PromptSources(
        parts.registry,
        completions,
        parts.files,
        parts.history,
        lambda: image_refusal(parts.options.runtime.model_info),
        look_for_commands=parts.prompt_files.refresh,
    )
