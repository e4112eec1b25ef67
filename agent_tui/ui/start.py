"""What happens after the first paint: history, session, first-run chooser, first prompt."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.errors import AgentTuiError
from agent_tui.ui.options import UiOptions
from agent_tui.ui.outcome import UiOutcome
from agent_tui.ui.prompt.pastes import Draft
from agent_tui.ui.status_bar import short_path
from agent_tui.ui.transcript import WelcomeBlock

if TYPE_CHECKING:
    from agent_tui.ui.app import AgentApp

_HINTS = (
    ("/", "commands"),
    ("@", "attach files"),
    ("!", "run a shell command"),
    ("esc", "stop what runs"),
    ("/help", "everything else"),
)


def welcome_block(options: UiOptions) -> WelcomeBlock:
    """The first block of an empty chat."""
    runtime = options.runtime
    facts = [
        ("folder", short_path(runtime.cwd, Path.home())),
        ("model", runtime.model.name or "none yet"),
    ]
    if runtime.context_files:
        names = ", ".join(file.path.name for file in runtime.context_files)
        facts.append(("memory", names))
    if options.welcome:
        facts.append(("note", options.welcome))
    return WelcomeBlock("agent-tui", tuple(facts), _HINTS)


async def begin(app: "AgentApp") -> None:
    """Everything that must not keep the first key waiting."""
    options = app.ready.options
    app.run_worker(options.warm, group="warm", exit_on_error=False)
    if not options.resume:
        app.ready.view.redraw()
    for problem in options.problems:
        app.ready.host.say(f"Setting left out: {problem}", "warning")
    for rule in options.runtime.approvals.problems:
        app.ready.host.say(f"Permission rule left out: {rule}", "warning")
    for notice in options.notices:
        app.ready.host.say(notice)
    await asyncio.gather(
        asyncio.to_thread(app.ready.history.load),
        asyncio.to_thread(app.ready.status.look_at_branch),
    )
    app.refresh_status()
    if options.first_run is not None:
        await choose_model(app)
    if options.resume:
        await _resume(app, options.resume)
    elif options.opens_picker:
        app.dispatch("/resume")
    app.ready.host.show_events(await app.runtime.refresh_usage())
    if options.first_prompt:
        app.dispatch(options.first_prompt)


def send_early(app: "AgentApp", drafts: Iterable[Draft]) -> None:
    """Send what was sent before anything could take it; unknown commands come back."""
    for draft in drafts:
        if reason := app.ready.registry.refusal(draft.text):
            app.prompt.put_before((draft.full_text,))
            app.notify(reason, severity="warning", markup=False)
        else:
            app.take(draft)


async def _resume(app: "AgentApp", ref: str) -> None:
    try:
        keeps_model = app.ready.options.keeps_model
        app.ready.host.show_events(await app.runtime.open_session(ref, keep_model=keeps_model))
    except AgentTuiError as error:
        app.ready.view.redraw()
        app.ready.host.say(str(error), "error")


async def choose_model(app: "AgentApp") -> None:
    """Offer the ways to a model, or say how to choose one where the chooser has no say."""
    from agent_tui.ui.first_run import FirstRunScreen, TakeTour, UseModel

    options = app.ready.options
    if options.first_run is None:
        app.ready.host.say("No model is chosen. Use /model.", "warning")
        return
    match await app.ready.host.ask(FirstRunScreen(options.first_run, options.models)):
        case UseModel(model):
            app.ready.host.show_events(app.runtime.set_model(model))
            app.ready.view.redraw()
        case TakeTour():
            app.exit(UiOutcome(wants="demo"))
        case None:
            app.ready.host.say(
                "No model is set up. /model chooses one when a key is set.", "warning"
            )
