"""Builds what works behind the main screen, once the conversation is loaded.

It imports most of the program, so the app imports it only after the first paint.
"""

import asyncio
import os
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial

from agent_tui.agent.prompt.prompt_files import Skill, find_skills
from agent_tui.agent.turn.user_message import image_refusal
from agent_tui.commands.core.command import Completions
from agent_tui.commands.core.found_commands import CommandFinders
from agent_tui.commands.core.registry import CommandRegistry, load_commands
from agent_tui.drafts.history import PromptHistory
from agent_tui.tools.files.walk import relative_files
from agent_tui.ui.approval_panel import ApprovalPanel
from agent_tui.ui.chat.lines_above_prompt import (
    ActivityLine,
    ColdLine,
    FeatureLines,
    PlanView,
    QueueView,
    StepsView,
)
from agent_tui.ui.chat.widgets import ChatWidgets
from agent_tui.ui.controller import Controller, ControllerPorts
from agent_tui.ui.event_view import EventView
from agent_tui.ui.front import ScreenFront
from agent_tui.ui.options import UiOptions
from agent_tui.ui.prompt.completion import PromptSources
from agent_tui.ui.prompt.draft_keeper import DraftKeeper
from agent_tui.ui.prompt.file_index import FileIndex
from agent_tui.ui.questions import EarlyKeys
from agent_tui.ui.status.status_bar import StatusBar
from agent_tui.ui.status.status_view import StatusView
from agent_tui.ui.transcript.thumbnail import SharpPictures, can_show_pictures, draw_sharply
from agent_tui.ui.transcript.view import Transcript
from agent_tui.ui.turns import TurnRunner
from agent_tui.ui.window import Window


@dataclass(frozen=True, slots=True)
class LoadedChat:
    """The parts of the chat that the app uses.

    Attributes:
        view: Shows events.
        controller: Takes what the user does.
        sources: What the prompt completes from and remembers in.
        drafts: Keeps what is not sent yet.
    """

    view: EventView
    controller: Controller
    sources: PromptSources
    drafts: DraftKeeper


def assemble(window: Window, status_bar: StatusBar, options: UiOptions) -> LoadedChat:
    """Build everything behind the main screen; its widgets are not mounted yet."""
    approval = ApprovalPanel(
        options.approval_quiet_s, EarlyKeys(window.prompt, options.approval_quiet_s)
    )
    window.prompt.area.early = approval
    is_sharp = window.app.console.color_system == "truecolor" and can_show_pictures(os.environ)
    draw_sharply(SharpPictures(window.terminal.write) if is_sharp else None)
    widgets = ChatWidgets(
        transcript=Transcript(),
        plan=PlanView(),
        standing=FeatureLines(),
        approval=approval,
        queue=QueueView(),
        steps=StepsView(window.prompt, options.demo),
        cold=ColdLine(options.runtime.cold_price),
        activity=ActivityLine(options.clock, options.runtime.services.wall_clock),
        prompt=window.prompt,
        status_bar=status_bar,
    )
    drafts = DraftKeeper(
        window.prompt,
        lambda: turns.waiting,
        lambda: options.runtime.conversation.log.path,
        lambda text: view.say(text),
    )
    view = EventView(options, widgets, StatusView(window, options, widgets), drafts)
    turns = TurnRunner(options.runtime, view, window.start_work, view.give_back)
    registry = load_commands(options.services.plugins)
    front = ScreenFront(window, options, view, turns, registry)
    finders = CommandFinders(
        registry, options.runtime, options.services, lambda text: view.say(text, "warning")
    )
    sources = _prompt_sources(options, registry, front, finders)

    async def read_files() -> None:
        reads = (sources.history.load, view.status.onboarding.load, view.status.read_folder)
        await asyncio.gather(*(asyncio.to_thread(read) for read in reads))

    async def close() -> None:
        await drafts.aclose()
        await sources.files.aclose()

    ports = ControllerPorts(
        view=view,
        front=front,
        front_for=front.serving,
        fill_form=front.fill_form,
        turns=turns,
        start_work=partial(window.start_work, group="command"),
        read_files=read_files,
        refresh_commands=finders.refresh,
        set_up_model=front.setup.at_start,
        close=close,
    )
    return LoadedChat(view, Controller(options, registry, ports), sources, drafts)


def _prompt_sources(
    options: UiOptions,
    registry: CommandRegistry,
    front: ScreenFront,
    finders: CommandFinders,
) -> PromptSources:
    """The sources of the prompt's completions, and its history."""
    runtime, servers = options.runtime, options.services.servers

    def completions(name: str) -> Completions | Awaitable[Completions]:
        command = registry.find(name)
        if command is None or command.completions is None or command.missing_in(front):
            return ()
        return command.completions(front)

    def skills() -> list[Skill]:
        services, cwd = runtime.services, runtime.conversation.cwd
        found = find_skills(cwd, services.user_config_dir, services.trust).by_name.values()
        return sorted((one for one in found if one.is_for_person), key=lambda one: one.name)

    return PromptSources(
        registry,
        completions,
        FileIndex(lambda: runtime.conversation.cwd, relative_files, options.clock),
        PromptHistory(options.history_file),
        lambda: image_refusal(runtime.conversation.model_info),
        resources=servers.resource_choices,
        look_for_commands=finders.refresh,
        find_skills=skills,
    )
