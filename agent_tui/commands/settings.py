"""Settings, and the commands for a screen: theme, mouse, search, copying."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import (
    Choice,
    Front,
    Listing,
    Page,
    PageSection,
    ScreenControls,
)
from agent_tui.commands.model import mark_present
from agent_tui.config import Settings
from agent_tui.config.json_schema import toml_text
from agent_tui.config.loading import Origin
from agent_tui.config.specs import SettingSpec, mask, setting_specs, value_at
from agent_tui.config.user_file import SettingsEditor
from agent_tui.key_actions import keys_in_force
from agent_tui.safe_text import safe_text
from agent_tui.text import code_blocks

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
    """All settings; some fronts let the user change them.

    Attributes:
        editor: Reads and changes them.
        wanted: The initial search text.
    """

    editor: SettingsEditor
    wanted: str = ""

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


def value_text(settings: Settings, spec: SettingSpec) -> str:
    """A value for display, without keys; `NOTHING` for an empty one."""
    value = mask(value_at(settings, spec.key))
    text = value if isinstance(value, str) else toml_text(value)
    return safe_text(text, keep_newlines=False) or NOTHING


def short_origin(origin: Origin) -> str:
    """The source of a setting, in a word or two."""
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


def _screen(front: Front) -> ScreenControls:
    """The screen, without which the commands here are refused."""
    assert front.screen is not None
    return front.screen


@command(
    "[name]",
    completions=lambda front: mark_present(_screen(front).theme_names, _screen(front).theme_in_use),
    needs="screen",
)
async def theme(front: Front, argument: str) -> None:
    """Choose a colour theme."""
    screen = _screen(front)
    wanted = argument or await screen.pick_theme()
    if wanted is None:
        return
    if wanted in screen.theme_names:
        screen.set_theme(wanted)
        front.say(f"Theme: {wanted}")
    else:
        front.say(f"Unknown theme {wanted}. Available: {', '.join(screen.theme_names)}.", "warning")


@command("[on|off]", completions=lambda _front: ("on", "off"), needs="screen")
async def mouse(front: Front, argument: str) -> None:
    """Turn mouse support on or off."""
    screen = _screen(front)
    wanted = argument.lower() or ("off" if screen.is_mouse_on else "on")
    if wanted not in ("on", "off"):
        front.say(f"/mouse takes on or off, not {argument}.", "warning")
        return
    screen.set_mouse(wanted == "on")
    if wanted == "on":
        front.say("Mouse on: scroll, select and click here. In most terminals, Shift bypasses it.")
    else:
        front.say(
            "Mouse off: the terminal handles selecting and copying. "
            f"{keys_in_force().first_key('mouse') or '/mouse'} turns it back on; mouse = false in "
            "config.toml keeps it off."
        )


@command(needs="screen")
async def scrollback(front: Front, _argument: str) -> None:
    """Print the conversation to the terminal's scrollback."""
    _screen(front).show_scrollback()


@command("[text]", needs="screen")
async def find(front: Front, argument: str) -> None:
    """Search the chat."""
    await _screen(front).find(argument)


@command("[code]", completions=lambda _front: ("code",), needs="screen")
async def copy(front: Front, argument: str) -> None:
    """Copy the last reply, or a block of code in it, to the clipboard."""
    screen = _screen(front)
    text: str | None = screen.last_reply
    if not text:
        front.say("No reply to copy yet.", "warning")
        return
    if argument not in ("", "code"):
        front.say(f"/copy takes code (a block of code in the reply), not {argument}.", "warning")
        return
    text = await _choose_block(front, code_blocks(text)) if argument else text
    if text:
        front.say(screen.copy(text))


async def _choose_block(front: Front, blocks: Sequence[str]) -> str | None:
    """The only one of `blocks`, or the one that the user picks."""
    if len(blocks) < 2:
        if not blocks:
            front.say("The last reply has no block of code.", "warning")
        return next(iter(blocks), None)
    choices = tuple(Choice(block, block.strip().partition("\n")[0]) for block in blocks)
    return await front.pick(Listing("Copy which block of code?", choices, ""))
