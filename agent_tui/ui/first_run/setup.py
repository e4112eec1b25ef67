"""Getting a first model: the chooser, the pull that was asked for, and warming a model up."""

import asyncio
from contextlib import nullcontext

from agent_tui.errors import AgentTuiError
from agent_tui.providers.base import LOCAL, ModelRef
from agent_tui.ui.event_view import EventView
from agent_tui.ui.options import UiOptions
from agent_tui.ui.terminal.outcome import UiOutcome
from agent_tui.ui.window import Window


class ModelSetup:
    """Offers the ways to a model and gets the chosen one ready.

    Args:
        window: Shows the chooser, and is left for the demo.
        options: The models there are, and the conversation that is to use one.
        view: Shows what came of it.
    """

    def __init__(self, window: Window, options: UiOptions, view: EventView) -> None:
        self._window = window
        self._options = options
        self._view = view

    async def at_start(self) -> None:
        """Offer the pull requested at the start; else the chooser if no model is set."""
        if not await self._pull() and self._options.demo is None:
            await self.choose()

    async def choose(self) -> bool:
        """Show the chooser; false if the program started with a model, so that there is none."""
        from agent_tui.ui.first_run.chooser import FirstRunScreen, TakeDemo, UseModel

        options = self._options
        if options.first_run is None:
            return False
        chooser = FirstRunScreen(
            options.first_run,
            options.services.models,
            options.local,
            self._window.ask,
            options.clock,
            options.approval_quiet_s,
        )
        match await self._window.ask(chooser):
            case UseModel(model):
                self._use(model)
                if model.base_url:
                    await self._keep_server(model)
            case TakeDemo():
                self._window.leave(UiOutcome(wants_demo=True))
            case None if options.demo is None:
                self._view.say(
                    "No model is set up. Use /model or send a message to see your options.",
                    "warning",
                )
            case None:
                pass
        return True

    @property
    def has_model(self) -> bool:
        """Whether there is a model other than the demo's."""
        demo, name = self._options.demo, self._options.runtime.conversation.model.name
        return bool(name) and (demo is None or name != demo.model.name)

    async def _pull(self) -> bool:
        """Ask for the pull of the built-in model; true if there is a model now."""
        options = self._options
        if not options.pull_first or options.local is None:
            return False
        model = await self._window.ask(options.local.make_screen(options.clock))
        if model is not None:
            self._use(model)
        elif options.first_run is None:
            self._view.say(
                "Nothing was downloaded, so no model is set up. Choose one with /model, "
                "or run agent-tui --local again.",
                "warning",
            )
        return model is not None

    async def _keep_server(self, model: ModelRef) -> None:
        """Have the next start use `model` and its server."""
        from agent_tui.config.user_file import setting_named

        editor = self._options.services.settings
        if editor is None:
            return
        try:
            for name, value in (("base_url", model.base_url), ("model", model.name)):
                await asyncio.to_thread(editor.set, setting_named(name), [value])
        except AgentTuiError as error:
            self._view.say(f"The server is not kept for the next start: {error}", "warning")
        else:
            self._view.say(f"Kept for the next start, in {editor.file.path}: this server and model")

    def _use(self, model: ModelRef) -> None:
        """Use a model that was just set up, and prepare it while the user types."""
        for event in self._options.runtime.set_model(model):
            self._view.show(event)
        self._view.status.refresh()
        self.warm_up()

    def warm_up(self) -> None:
        """Prepare the provider and the model in the background."""
        self._window.start_work(self._warm_up())

    async def _warm_up(self) -> None:
        """Report slow loading and errors."""
        model = self._options.runtime.conversation.model
        is_slow = model.provider == LOCAL
        label = f"Loading {model.model_id}"
        try:
            with self._view.loading(label) if is_slow else nullcontext():
                await self._options.warm()
        except AgentTuiError as error:
            self._view.say(str(error), "error")
