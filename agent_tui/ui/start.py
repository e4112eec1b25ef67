"""What happens after the first paint: history, session, first-run chooser, first prompt."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from agent_tui.commands.trust import ask_about_servers
from agent_tui.errors import AgentTuiError
from agent_tui.providers.base import ModelRef
from agent_tui.ui.activity_line import ActivityState
from agent_tui.ui.outcome import UiOutcome
from agent_tui.ui.prompt.pastes import Draft
from agent_tui.ui.theme import wanted_theme

if TYPE_CHECKING:
    from agent_tui.ui.app import AgentApp
    from agent_tui.ui.chat_app import ChatApp


async def begin(app: "AgentApp") -> None:
    """Everything that must not keep the first key waiting."""
    options = app.ready.options
    if options.settings.theme:  # it may come from the project, which the first paint did not know
        app.theme = wanted_theme(options.settings.theme, frozenset(app.available_themes))
    app.guest.switch_mouse(options.settings.mouse)  # likewise
    app.run_worker(warm_up(app), group="warm", exit_on_error=False)
    if options.servers is not None:
        options.servers.listen(lambda line: app.ready.front.say(line, "warning"))
        options.servers.start(app.runtime.cwd)
    if not options.resume:
        app.ready.view.redraw()
    _tell_problems(app)
    await asyncio.gather(
        asyncio.to_thread(app.ready.history.load),
        asyncio.to_thread(app.ready.newcomer.load),
        asyncio.to_thread(app.ready.status.look_at_branch),
    )
    app.refresh_status()
    if not await _pull_first(app) and options.first_run is not None:
        await choose_model(app)
    if options.resume:
        await _resume(app, options.resume)
    elif options.opens_picker:
        app.dispatch("/resume")
    app.ready.front.show_events(await app.runtime.refresh_usage())
    await ask_about_servers(app.ready.front)
    await app.ready.prompt_files.refresh()  # of the folder of the session that was opened
    if options.first_prompt:
        app.dispatch(options.first_prompt)


def _tell_problems(app: "AgentApp") -> None:
    options = app.ready.options
    for problem in options.problems:
        app.ready.front.say(f"Setting left out: {problem}", "warning")
    if (theme := options.settings.theme) and theme not in app.available_themes:
        app.ready.front.say(f"No theme is called {theme}; /theme has them all.", "warning")
    for rule in options.runtime.approvals.problems:
        app.ready.front.say(f"Permission rule left out: {rule}", "warning")
    for notice in options.notices:
        app.ready.front.say(notice)


async def warm_up(app: "ChatApp") -> None:
    """Get the provider and the model ready; say what takes long, and what went wrong."""
    activity, model = app.ready.activity, app.runtime.model
    loading = None
    if model.provider == "local" and activity.state is None:
        now = app.ready.options.clock()
        loading = ActivityState(f"Getting {model.model_id} ready", now, can_stop=False)
        activity.show(loading)
    try:
        await app.ready.options.warm()
    except AgentTuiError as error:
        app.ready.front.say(str(error), "error")
    finally:
        if loading is not None and activity.state is loading:
            activity.show(None)


def send_early(app: "AgentApp", drafts: Iterable[Draft]) -> None:
    """Send what was sent before anything could take it; unknown commands come back."""
    for draft in drafts:
        if reason := app.ready.registry.refusal(draft.text):
            app.prompt.put_before((draft,))
            app.notify(reason, severity="warning", markup=False)
        else:
            app.take(draft)


async def _resume(app: "AgentApp", ref: str) -> None:
    from agent_tui.commands.sessions import open_session
    from agent_tui.commands.trust import ask_about_workspace

    keep_model = app.ready.options.keeps_model
    if not await open_session(app.ready.front, ref, keep_model=keep_model):
        app.ready.view.redraw()
        return
    await ask_about_workspace(app.ready.front)


async def choose_model(app: "ChatApp") -> None:
    """Offer the ways to a model, or say how to choose one where the chooser has no say."""
    from agent_tui.ui.first_run import FirstRunScreen, TakeTour, UseModel

    options = app.ready.options
    if options.first_run is None:
        app.ready.front.say("No model is chosen. Use /model.", "warning")
        return
    ask = app.ready.front.show_screen
    chooser = FirstRunScreen(options.first_run, options.models, options.local, ask, options.clock)
    match await ask(chooser):
        case UseModel(model):
            _go_on_with(app, model)
        case TakeTour():
            app.exit(UiOutcome(wants="demo"))
        case None:
            app.ready.front.say(
                "No model is set up. /model, or a message, shows the ways to one again.", "warning"
            )


async def _pull_first(app: "AgentApp") -> bool:
    """Ask for the pull that was wanted from the start; true if there is a model now."""
    options = app.ready.options
    if not options.pull_first or options.local is None:
        return False
    from agent_tui.ui.screens.pull import PullScreen

    model = await app.ready.front.show_screen(PullScreen(options.local, options.clock))
    if model is not None:
        _go_on_with(app, model)
    elif options.first_run is None:
        app.ready.front.say(
            "Nothing was pulled, so no model is set up. /model chooses another one; "
            "agent-tui --local asks again.",
            "warning",
        )
    return model is not None


def _go_on_with(app: "ChatApp", model: ModelRef) -> None:
    """Use a model that was just set up, and get it ready while the person types."""
    app.ready.front.show_events(app.runtime.set_model(model))
    app.run_worker(warm_up(app), group="warm", exit_on_error=False)
