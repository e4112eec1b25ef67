"""The rows of ``/settings``: each setting with its value, who says so, and what it is."""

from dataclasses import replace
from itertools import groupby

from agent_tui.commands.settings import short_origin, shown_value
from agent_tui.config import LoadedSettings
from agent_tui.config.editor import SettingsEditor
from agent_tui.config.keys import dotted
from agent_tui.config.specs import SettingSpec, setting_specs
from agent_tui.safe_text import safe_text
from agent_tui.ui.screens.picker import PickerRow

_VALUE_CHARS = 24
_GENERAL = "general"


def rows_by_section(loaded: LoadedSettings) -> list[PickerRow[SettingSpec]]:
    """All settings below the names of their sections."""
    rows: list[PickerRow[SettingSpec]] = []
    for section, group in groupby(setting_specs(loaded.settings), key=lambda spec: spec.section):
        specs = list(group)
        heading = dotted(section) if section else _GENERAL
        named = replace(specs[0], key=section)  # no setting has this key
        rows.append(PickerRow(named, heading, is_heading=True, is_dim=True))
        rows += [_row(loaded, spec, f"  {dotted(spec.key[-1:])}") for spec in specs]
    return rows


def rows_by_name(loaded: LoadedSettings) -> list[PickerRow[SettingSpec]]:
    """All settings by their whole names, to be searched."""
    return [_row(loaded, spec, spec.name) for spec in setting_specs(loaded.settings)]


def _row(loaded: LoadedSettings, spec: SettingSpec, title: str) -> PickerRow[SettingSpec]:
    origins = loaded.origins_of(spec.key)
    origin = short_origin(origins[-1])
    if len(origins) > 1 and spec.kind == "list":
        origin = f"{len(origins)} files"
    value = shown_value(loaded.settings, spec)
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
    """What a setting is, and what a change of it would do.

    Args:
        spec: The setting.
        editor: Where the person's own file is.
        loaded: What is in force by the settings.
        acts_at_once: Whether a change needs no new start.
        in_use: What is in use just now, which may be another value; empty where it is the same.
    """
    lines = [f"{spec.description}."]
    if why := editor.stronger_than_own(loaded, spec):
        own = editor.load_own()
        is_said = own.origin(spec.key).layer != "default"
        said = shown_value(own.settings, spec) if is_said else "nothing"
        lines.append(f"Your file has {said}. A change has no effect now: {why}.")
    elif spec.kind == "table":
        lines.append("Set it in the file: ctrl+g opens it.")
    else:
        when = "at once" if acts_at_once else "at the next start"
        lines.append(f"Allowed: {spec.allowed}. Takes effect {when}.")
    if in_use and in_use != shown_value(loaded.settings, spec):
        lines.append(f"In use now: {safe_text(in_use, keep_newlines=False)}.")
    return "\n".join(lines)
