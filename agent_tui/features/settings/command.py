"""``/settings``: all settings, in a screen or as lines."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front, Page, PageSection
from agent_tui.config import Settings
from agent_tui.config.specs import setting_specs
from agent_tui.config.user_file import SettingsEditor
from agent_tui.features.settings.values import short_origin, value_text

if TYPE_CHECKING:  # a run without the screen imports no Textual
    from textual.screen import Screen

_HOW = "agent-tui config set NAME VALUE saves it in config.toml, for the next start."


@command(
    "[name]",
    aliases=("config",),
    completions=lambda _front: [
        Completion(spec.name, spec.description) for spec in setting_specs(Settings())
    ],
)
async def settings(front: Front, argument: str) -> None:
    """See and change settings."""
    editor = front.services.settings
    if editor is None:
        front.say("No settings can be changed here.", "warning")
        return
    await front.show(SettingsPage(front, editor, argument))


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """All settings; some fronts let the user change them.

    Attributes:
        front: Where they are shown; a screen takes some of them up at once.
        editor: Reads and changes them.
        wanted: The initial search text.
    """

    front: Front
    editor: SettingsEditor
    wanted: str = ""

    def make_screen(self) -> "Screen[None]":
        """The screen where they are changed."""
        from agent_tui.features.settings.screen import SettingsScreen
        from agent_tui.ui.front import ScreenFront

        assert isinstance(self.front, ScreenFront)
        screen = SettingsScreen(self.editor, self.front, wanted=self.wanted)
        return cast("Screen[None]", screen)  # nobody reads its result

    async def page(self) -> Page:
        """Those whose names hold what is wanted, with value and origin, and how to change them."""
        loaded = await asyncio.to_thread(self.editor.load)
        specs = [spec for spec in setting_specs(loaded.settings) if self.wanted in spec.name]
        rows = tuple(
            (spec.name, f"{value_text(loaded.settings, spec)}   {short_origin(origin)}")
            for spec in specs
            for origin in loaded.origins_of(spec.key)[-1:]
        )
        sections = [PageSection("", rows or (("", f"No setting matches {self.wanted}."),))]
        if len(specs) == 1:
            sections[0] = PageSection("", (*rows, ("", f"{specs[0].description}.")))
        if loaded.problems:
            problems = tuple(("", str(problem)) for problem in loaded.problems)
            sections.append(PageSection("Ignored", problems))
        sections.append(PageSection("Change a setting", (("", _HOW),)))
        return Page("Settings", tuple(sections))
