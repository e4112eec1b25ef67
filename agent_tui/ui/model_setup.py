"""Getting a first model: the ways to one, the pull that was asked for, and warming a model up."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext

from textual.screen import Screen

from agent_tui.commands.core.demo import Demo
from agent_tui.commands.model import no_model_error
from agent_tui.errors import AgentTuiError
from agent_tui.providers.base import LOCAL, ModelRef
from agent_tui.ui.event_view import EventView
from agent_tui.ui.options import UiOptions
from agent_tui.ui.terminal.outcome import UiOutcome
from agent_tui.ui.window import Window


class ModelSetup:
    """Offers the ways to a model and gets the chosen one ready.

    Args:
        window: Shows the ways, and is left for the demo.
        options: The models there are, and the conversation that is to use one.
        view: Shows what came of it.
        picker_screen: Makes a feature's screen to choose from; None if no feature brings one.
    """

    def __init__(
        self,
        window: Window,
        options: UiOptions,
        view: EventView,
        picker_screen: Callable[[object], Screen[object] | None],
    ) -> None:
        self._window = window
        self._options = options
        self._view = view
        self._picker_screen = picker_screen

    async def at_start(self) -> None:
        """Offer the pull requested at the start; else the ways to a model if none is set."""
        if await self._pull() or self._options.demo is not None or await self.choose():
            return
        if self._options.first_run is not None:
            self._view.say(str(no_model_error()), "warning")

    async def choose(self) -> bool:
        """Show the chooser; false if the program started with a model, or no feature brings one."""
        options = self._options
        chooser = options.first_run and self._picker_screen(options.first_run)
        if chooser is None:
            return False
        match await self._window.ask(chooser):
            case ModelRef() as model:
                self._use(model)
                if model.base_url:
                    await self._keep_server(model)
            case Demo():
                self._window.leave(UiOutcome(wants_demo=True))
            case _ if options.demo is None:
                self._view.say(
                    "No model is set up. Use /model or send a message to see your options.",
                    "warning",
                )
            case _:
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
