"""The settings: what is in force, and from where."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.pages import Page, PageSection
from agent_tui.config import Origin, Settings
from agent_tui.config.editor import SettingsEditor
from agent_tui.config.specs import SettingSpec, masked, setting_specs, value_at
from agent_tui.config.template import toml_text
from agent_tui.safe_text import safe_text

NOTHING = "–"
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
    await front.show(SettingsPage(editor, argument))


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """All settings; a front that can, lets them be changed.

    Attributes:
        editor: Where they are read and changed.
        wanted: What is looked for at first.
    """

    editor: SettingsEditor
    wanted: str = ""

    async def page(self) -> Page:
        """Those whose names hold what is wanted, with value and origin, and how to change them."""
        loaded = await asyncio.to_thread(self.editor.load)
        specs = [spec for spec in setting_specs(loaded.settings) if self.wanted in spec.name]
        rows = tuple(
            (spec.name, f"{shown_value(loaded.settings, spec)}   {short_origin(origin)}")
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


def shown_value(settings: Settings, spec: SettingSpec) -> str:
    """A value for the eye, without keys; `NOTHING` for an empty one."""
    value = masked(value_at(settings, spec.key))
    text = value if isinstance(value, str) else toml_text(value)
    return safe_text(text, keep_newlines=False) or NOTHING


def short_origin(origin: Origin) -> str:
    """Who says so, in a word or two."""
    match origin.layer:
        case "default":
            return "default"
        case "own file":
            return f"{Path(origin.source).name}:{origin.line}"
        case "project file":
            return "the project"
        case "environment":
            return "environment"
        case "command line":
            return origin.source
