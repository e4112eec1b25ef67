"""The screen of settings: what is in force, its origin, and what a change does at once."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import ClassVar, Protocol, TypeVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.types import CSSPathType
from textual.widgets import Input, Static

from agent_tui.cli.settings import usable_settings
from agent_tui.commands.core.between_turns import BetweenTurns
from agent_tui.commands.core.front import Choice, Front, Listing, ScreenControls
from agent_tui.commands.core.plugin_kinds import spec_with_plugins
from agent_tui.commands.core.plugins import Plugins
from agent_tui.config import Settings, TerminalStateSetting
from agent_tui.config.keys import SettingKey, join_key
from agent_tui.config.loading import LoadedSettings
from agent_tui.config.specs import SettingSpec, setting_specs, spec_of, value_at
from agent_tui.config.user_file import SettingsEditor
from agent_tui.errors import AgentTuiError
from agent_tui.features.settings.config_file import template_text, toml_text
from agent_tui.features.settings.values import short_origin, value_text
from agent_tui.key_actions import KeyMap
from agent_tui.safe_text import safe_text
from agent_tui.secret_text import has_password_in_address
from agent_tui.ui.screens.choice import LineInputScreen
from agent_tui.ui.screens.listing import ListingScreen
from agent_tui.ui.screens.picker import PickerRow, PickerScreen, search_rows
from agent_tui.ui.theme.themes import DARK, theme_for_colours

ResultT = TypeVar("ResultT")

_NO_PLUGINS = Plugins()
_VALUE_CHARS = 24
_GENERAL = "general"


def rows_by_section(
    loaded: LoadedSettings, plugins: Plugins = _NO_PLUGINS
) -> list[PickerRow[SettingSpec]]:
    """All settings below the names of their sections; `plugins` bring further choices."""
    rows: list[PickerRow[SettingSpec]] = []
    for section, group in groupby(_specs(loaded, plugins), key=lambda spec: spec.section):
        specs = list(group)
        heading = join_key(section) if section else _GENERAL
        named = replace(specs[0], key=section)  # no setting has this key
        rows.append(PickerRow(named, heading, is_heading=True, is_dim=True))
        rows += [_row(loaded, spec, f"  {join_key(spec.key[-1:])}") for spec in specs]
    return rows


def rows_by_name(loaded: LoadedSettings, plugins: Plugins) -> list[PickerRow[SettingSpec]]:
    """All settings by their whole names, to be searched; `plugins` bring further choices."""
    return [_row(loaded, spec, spec.name) for spec in _specs(loaded, plugins)]


def _specs(loaded: LoadedSettings, plugins: Plugins) -> Iterator[SettingSpec]:
    return (spec_with_plugins(spec, plugins) for spec in setting_specs(loaded.settings))


def _row(loaded: LoadedSettings, spec: SettingSpec, title: str) -> PickerRow[SettingSpec]:
    origins = loaded.origins_of(spec.key)
    origin = short_origin(origins[-1])
    if len(origins) > 1 and spec.kind == "list":
        origin = f"{len(origins)} files"
    value = value_text(loaded.settings, spec)
    if len(value) > _VALUE_CHARS:
        value = f"{value[: _VALUE_CHARS - 1]}…"
    return PickerRow(spec, title, (origin, value), search=f"{spec.name} {spec.description}")


def about(
    spec: SettingSpec,
    editor: SettingsEditor,
    loaded: LoadedSettings,
    *,
    acts_at_once: bool,
    in_use: str = "",
) -> str:
    """The description of a setting, and the effect of changing it.

    Args:
        spec: The setting.
        editor: Where the user's own file is.
        loaded: The settings in force.
        acts_at_once: Whether a change needs no new start.
        in_use: The value in use now if it differs; empty if it is the same.
    """
    lines = [f"{spec.description}."]
    if why := editor.stronger_than_own(loaded, spec):
        own = editor.load_own()
        is_said = own.origin(spec.key).layer != "default"
        said = value_text(own.settings, spec) if is_said else "nothing"
        lines.append(f"Your file has {said}. A change has no effect now: {why}.")
    elif spec.kind == "table":
        lines.append("Set it in the file: ctrl+g opens it.")
    else:
        when = "at once" if acts_at_once else "at the next start"
        lines.append(f"Allowed: {spec.allowed}. Takes effect {when}.")
    if in_use and in_use != value_text(loaded.settings, spec):
        lines.append(f"In use now: {safe_text(in_use, keep_newlines=False)}.")
    return "\n".join(lines)


class SettingsFront(Front, ScreenControls, Protocol):
    """The program as a change of settings reaches it; `ScreenFront` implements it."""

    async def show_screen(self, screen: Screen[ResultT]) -> ResultT | None:
        """Show a screen above the chat; returns its result, or None without one."""
        ...

    def use_status_fields(self, fields: tuple[str, ...]) -> None:
        """Show other parts in the status line, or in another order."""
        ...

    def use_terminal_state(self, setting: TerminalStateSetting) -> None:
        """Show the program's state in the terminal as `setting` says."""
        ...

    def use_modes(self, settings: Settings) -> None:
        """Give the keys of the prompt to the modes that `settings` want, if any."""
        ...

    def use_keys(self, keys: KeyMap) -> None:
        """Use `keys` in the chat and in the prompt from now on."""
        ...


class SettingsScreen(PickerScreen[SettingSpec]):
    """Returns nothing; every change is stored and, if possible, applied at once.

    Args:
        editor: Where the settings are read and changed.
        front: The program that they are about.
        wanted: The initial search text.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = [
        "../../ui/screens/modal.tcss",
        "../../ui/screens/picker.tcss",
        "screen.tcss",
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "reset", "Default", priority=True),
        Binding("ctrl+g", "edit_file", "Edit the file", priority=True),
    ]
    heading = "Settings"
    column_titles = ("from", "value")
    title_width = 26

    def __init__(self, editor: SettingsEditor, front: SettingsFront, *, wanted: str = "") -> None:
        super().__init__()
        self._editor = editor
        self._front = front
        self._first_wanted = wanted
        self._by_name: list[PickerRow[SettingSpec]] = []
        self._loaded: LoadedSettings | None = None
        self._news = ""
        self._news_of: SettingSpec | None = None

    @property
    def keys_hint(self) -> str:
        """The line at the bottom."""
        return "↑↓ move · enter change · ctrl+r default · ctrl+g edit the file · esc close"

    def on_mount(self) -> None:
        """Begin with what was asked for; the base loads the rows."""
        self.query_one("#picker-search", Input).value = self._first_wanted

    async def load_rows(self) -> Sequence[PickerRow[SettingSpec]]:
        """Every setting, by section."""
        self._loaded = loaded = await asyncio.to_thread(self._editor.load)
        self._by_name = rows_by_name(loaded, self._plugins)
        rows = rows_by_section(loaded, self._plugins)
        if loaded.problems:
            first, *others = loaded.problems
            more = f" And {len(others)} more." if others else ""
            self._news = f"Ignored: {first}.{more}"
            self._news_of = rows[self.first_row(rows)].value
        return rows

    def matching(self, wanted: str) -> Sequence[PickerRow[SettingSpec]]:
        """By section while nothing is searched for, else by name."""
        return search_rows(self._by_name, wanted) if wanted else super().matching("")

    def first_row(self, rows: Sequence[PickerRow[SettingSpec]]) -> int:
        """The first that is no heading."""
        return next((place for place, row in enumerate(rows) if not row.is_heading), 0)

    def row_highlighted(self, row: PickerRow[SettingSpec]) -> None:
        """Say what the setting is, and what the last change did."""
        if self._loaded is None:
            return
        spec = row.value
        lines = about(
            spec,
            self._editor,
            self._loaded,
            acts_at_once=acts_at_once(spec.key),
            in_use=in_use(self._front, spec.key),
        )
        is_news = bool(self._news) and self._news_of == spec
        self.say(f"{self._news}\n{lines}" if is_news else lines)

    def pick(self, row: PickerRow[SettingSpec]) -> None:
        """Change the setting, in the way of its kind."""
        if not row.is_heading:
            self.run_worker(self._change(row.value), group="change", exclusive=True)

    def action_reset(self) -> None:
        """Take the setting out of the user's file."""
        row = self.present_row
        if row is not None and not row.is_heading:
            self.run_worker(self._reset(row.value), group="change", exclusive=True)

    def action_edit_file(self) -> None:
        """Open the user's file in their editor; make a commented one first."""
        self.run_worker(self._edit(), group="change", exclusive=True)

    def _show_message(self) -> None:
        """Show the message, which may have several lines for a setting."""
        super()._show_message()
        if self._note:
            self.query_one("#picker-message", Static).update(Content(safe_text(self._note)))

    async def _change(self, spec: SettingSpec) -> None:
        words = await self._ask(spec)
        if words is None:
            return
        try:
            value = await asyncio.to_thread(self._editor.set, spec, words)
        except AgentTuiError as error:
            self.say(str(error))
            return
        await self._follow(f"Saved: {spec.name} = {toml_text(value)}", [spec])

    async def _reset(self, spec: SettingSpec) -> None:
        try:
            was_there = await asyncio.to_thread(self._editor.file.unset, spec)
        except AgentTuiError as error:
            self.say(str(error))
            return
        if was_there:
            await self._follow(f"Removed from your file: {spec.name}", [spec])
        else:
            self.say(f"Your file does not set {spec.name}.")

    async def _edit(self) -> None:
        try:
            self._editor.file.create(template_text())
        except AgentTuiError as error:
            self.say(str(error))
            return
        before = self._now.settings
        if not await self._front.edit_file(self._editor.file.path):
            return
        loaded = await asyncio.to_thread(self._editor.load)
        specs = _specs(loaded, self._plugins)
        changed = [s for s in specs if value_at(before, s.key) != value_at(loaded.settings, s.key)]
        wrong = "; ".join(str(problem) for problem in loaded.problems)
        await self._follow(f"Ignored: {wrong}" if wrong else "Settings reloaded.", changed)

    async def _ask(self, spec: SettingSpec) -> Sequence[str] | None:
        """The value that the user wants; None if they left the question."""
        settings = self._now.settings
        if self._editor.stronger_than_own(self._now, spec):
            settings = self._editor.load_own().settings
        present = value_at(settings, spec.key)
        if spec.kind == "switch":
            return ["false" if present else "true"]
        if spec.kind == "table":
            self.say(f"{spec.name} is set in the file: ctrl+g opens it.")
            return None
        if spec.key == ("theme",):
            return await self._ask_theme()
        if spec.key[-1] == "model" and spec.section in ((), ("compaction",)):
            return await self._ask_model(str(present))
        if spec.kind == "choice":
            picked = await self._front.show_screen(_values(spec, str(present)))
            return None if picked is None else [picked]
        text = present if isinstance(present, str) else toml_text(present)
        written = await self._front.show_screen(
            LineInputScreen(
                spec.name,
                f"{spec.description}. Allowed: {spec.allowed}.",
                "" if has_password_in_address(text) else text,
                problem_of=lambda text: _problem(spec, text, self._editor.file.convert),
                last_look=lambda text: _problem(spec, text, self._editor.convert),
            )
        )
        return None if written is None else _words(spec, written)

    async def _ask_theme(self) -> Sequence[str] | None:
        picked = await self._front.pick_theme()
        return None if picked is None else [picked]

    async def _ask_model(self, present: str) -> Sequence[str] | None:
        from agent_tui.providers.base import ModelRef
        from agent_tui.ui.screens.listing import ModelPicker

        services = self._front.services
        in_use = ModelRef(present) if present else self._front.runtime.conversation.model
        picked = await self._front.show_screen(
            ModelPicker(services.models, in_use, services.known_models)
        )
        return None if picked is None else [picked.name]

    async def _follow(self, news: str, specs: Sequence[SettingSpec]) -> None:
        """Show the present settings, and apply those that changed."""
        self._loaded = loaded = await asyncio.to_thread(self._editor.load)
        later: list[str] = []
        for spec in specs:
            if self._editor.stronger_than_own(loaded, spec):
                continue
            if not acts_at_once(spec.key):
                later.append(spec.name)
                continue
            try:
                await act_on(self._front, spec.key, loaded)
            except AgentTuiError as error:
                news = f"{news}, but not yet in effect. {error}"
        self._news = f"{news} (at the next start: {', '.join(later)})" if later else news
        self._news_of = self.present_row.value if self.present_row else None
        self._by_name = rows_by_name(loaded, self._plugins)
        self.show_rows(rows_by_section(loaded, self._plugins))

    @property
    def _plugins(self) -> Plugins:
        return self._front.services.plugins

    @property
    def _now(self) -> LoadedSettings:
        assert self._loaded is not None
        return self._loaded


def _values(spec: SettingSpec, present: str) -> ListingScreen[str]:
    """Lets the user pick one of the values a setting may have, a dot before the present one."""
    choices = tuple(
        Choice(value, f"{'●' if value == present else ' '} {value}")
        for value in dict.fromkeys((*spec.choices, present))  # or what no plugin brings now
    )
    listing = Listing(spec.name, choices, "No such value.")
    return ListingScreen(listing, note=f"{spec.description}.", present=present)


def _words(spec: SettingSpec, text: str) -> Sequence[str]:
    """What was written as `SettingsEditor` takes it; nothing written is an empty list or text."""
    return [] if spec.kind == "list" and not text.strip() else [text.strip()]


def _problem(
    spec: SettingSpec, text: str, check: Callable[[SettingSpec, Sequence[str]], object]
) -> str:
    """Why `text` cannot be used; empty if it can."""
    try:
        check(spec, _words(spec, text))
    except AgentTuiError as error:
        return str(error)
    return ""


_AT_ONCE: frozenset[SettingKey] = frozenset(
    {
        ("theme",),
        ("mouse",),
        ("status_fields",),
        ("terminal_state",),
        ("permission_mode",),
        ("thinking",),
        ("model",),
        ("bash_timeout_s",),
        ("limit_wait_h",),
        ("permissions", "allow"),
        ("permissions", "ask"),
        ("permissions", "deny"),
    }
)
_SECTIONS_AT_ONCE = frozenset({"compaction", "keys"})


def acts_at_once(key: SettingKey) -> bool:
    """Whether a change of `key` is in force without a new start."""
    if key in _AT_ONCE or key[0] in _SECTIONS_AT_ONCE:
        return True
    spec = spec_of(key)
    return spec is not None and spec.acts_at_once


def in_use(front: SettingsFront, key: SettingKey) -> str:
    """The value in use now, if it can differ from the setting; else empty."""
    match key:
        case ("model",):
            return front.runtime.conversation.model.name
        case ("thinking",):
            return front.runtime.conversation.thinking
        case ("permission_mode",):
            return front.runtime.conversation.permissions.mode
        case ("compaction", "target" | "warn_at" | "trigger_at" as name):
            limits = front.runtime.conversation.limits
            sizes = {"target": limits.target, "warn_at": limits.warn, "trigger_at": limits.trigger}
            return f"{sizes[name]:,} tokens"
        case ("theme",):
            return front.theme_in_use
        case ("mouse",):
            return "true" if front.is_mouse_on else "false"
        case _:
            return ""


async def act_on(front: SettingsFront, key: SettingKey, loaded: LoadedSettings) -> None:
    """Bring the running program in line with what is in force of `key` now.

    Raises:
        AgentTuiError: It cannot be done now; the setting is kept all the same.
    """
    now, runtime = usable_settings(loaded), front.runtime
    match key:
        case ("theme",):
            by_terminal = theme_for_colours(os.environ.get("COLORFGBG", ""))
            front.set_theme(now.theme or by_terminal or DARK)
        case ("mouse",):
            front.set_mouse(now.mouse)
        case ("status_fields",):
            front.use_status_fields(now.status_fields)
        case ("terminal_state",):
            front.use_terminal_state(now.terminal_state)
        case ("keys", *_):
            front.use_keys(now.keys.key_map)
        case ("permission_mode",):
            runtime.sessions.use_mode(now.permission_mode)
            front.show_events(())
        case ("thinking",):
            front.show_events(runtime.set_thinking(now.thinking))
        case ("model",):
            await _use_model(front, now.model)
        case ("permissions", "allow" | "ask" | "deny"):
            front.show_events(await runtime.sessions.apply_trust())
        case ("bash_timeout_s",) | ("limit_wait_h",) | ("compaction", *_):
            runtime.use_settings(now)
            front.show_events(())
        case _ if acts_at_once(key):  # a feature's
            runtime.use_settings(now)
            front.use_modes(now)
            front.show_events(await BetweenTurns(front).look())
        case _:  # it takes effect at the next start
            return


async def _use_model(front: SettingsFront, name: str) -> None:
    if front.runtime.is_busy:
        raise AgentTuiError(
            "The running turn uses another model.", "Change it afterwards with /model."
        )
    if name:
        front.show_events(front.runtime.set_model(front.services.models.resolve(name)))
        front.show_events(await front.runtime.refresh_usage())
