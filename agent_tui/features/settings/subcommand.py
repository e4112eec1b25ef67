"""``agent-tui config``: shows the settings, where each is set, and changes the user's own."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agent_tui.cli.command_parser import CommandParser, subcommand_parser
from agent_tui.cli.folders import load_trust, present_folder_or_none
from agent_tui.cli.output import ask, complain, write_json, write_text
from agent_tui.cli.plugins import specs_in_shell
from agent_tui.cli.settings_editor import settings_editor
from agent_tui.config import Settings
from agent_tui.config.keys import SettingKey, join_key, parse_key
from agent_tui.config.loading import LoadedSettings, Origin
from agent_tui.config.specs import SettingSpec, mask, setting_specs, value_at
from agent_tui.config.user_file import SettingsEditor, setting_named
from agent_tui.errors import ConfigError, UsageError
from agent_tui.features.settings.config_file import (
    SCHEMA_URL,
    settings_schema,
    template_text,
    toml_text,
)
from agent_tui.messages import JsonObject
from agent_tui.permissions.project_files import config_files
from agent_tui.permissions.trust import FolderTrust
from agent_tui.providers.keys import secret_values
from agent_tui.safe_text import safe_text
from agent_tui.secret_text import mask_secrets
from agent_tui.text_editor import editor_command, run_editor

_DESCRIPTION = """\
Show the settings in effect and where each is set, and change your config.toml."""
_PATH_NOTE = """\
Your own file goes to standard output, for use in scripts, and the project's
files go to standard error.
"""
_SET_NOTE = """\
A value that is not allowed is not written. Comments and order are kept.

examples:
  agent-tui config set compaction.trigger_at 0.75
  agent-tui config set permissions.allow "bash(pytest *)" "write(docs/**)"
  agent-tui config set 'models."openai/qwen3".window' 32768
"""
_SCHEMA_NOTE = f"""\
Editors use it to complete and check config.toml. Those that use taplo, such as
VS Code with Even Better TOML, find it by the first line of the file:
  #:schema {SCHEMA_URL}
"""
_EXIT_CODES = "\nExit codes: 0 done, 1 failed or a problem in the settings, 2 usage error."


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui config``."""
    parser = subcommand_parser("config", _DESCRIPTION, _EXIT_CODES)
    add_verb = parser.verb_adder()

    def add(name: str, summary: str, more: str = "") -> CommandParser:
        return add_verb(name, summary, more + _EXIT_CODES)

    add("path", "print the paths of your settings file and the project's", _PATH_NOTE)
    show = add("show", "show the settings in effect and where each is set", SHOW_JSON)
    show.add_argument(
        "key", nargs="?", default="", metavar="KEY", help="setting or section to show"
    )
    show.add_json()
    add("edit", "edit your settings in $VISUAL or $EDITOR, then check them")
    setting = add("set", "set a value in your settings", _SET_NOTE)
    setting.add_argument("key", metavar="KEY", help="setting, such as theme or compaction.auto")
    setting.add_argument("value", nargs="+", metavar="VALUE", help="value; several make a list")
    unsetting = add("unset", "remove a value from your settings")
    unsetting.add_argument("key", metavar="KEY", help="setting, such as theme or compaction.auto")
    add("schema", "print the JSON Schema of config.toml", _SCHEMA_NOTE)
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui config`` with the arguments after that word; returns the exit code.

    Raises:
        UsageError: There is no setting of that name.
        ConfigError: A value is not allowed, or a file cannot be read or written.
    """
    arguments = build_parser().parse_args(list(argv))
    if arguments.verb == "schema":
        write_json(settings_schema())
        return 0
    trust, folder = load_trust(), present_folder_or_none()
    files = config_files(folder) if folder else ()
    editor = settings_editor(lambda: tuple(filter(trust.may_obey, files)))
    match arguments.verb:
        case "path":
            return _path(editor, files, trust)
        case "show":
            for file in files:
                if not trust.may_obey(file):
                    _tell(f"Not read: {file} (the folder is not trusted).")
            return _show(editor, cast(str, arguments.key), folder, is_json=arguments.is_json)
        case "edit":
            return _edit(editor)
        case "set":
            return _set(editor, _spec(arguments), cast("list[str]", arguments.value))
        case _:
            return _unset(editor, _spec(arguments))


def _path(editor: SettingsEditor, project: Sequence[Path], trust: FolderTrust) -> int:
    sys.stdout.flush()
    sys.stdout.buffer.write(os.fsencode(editor.file.path) + b"\n")
    sys.stdout.buffer.flush()
    if not editor.file.path.exists():
        _tell("  does not exist yet; agent-tui config edit creates it")
    for file in project:
        state = "trusted" if trust.may_obey(file) else "not trusted, not read"
        _tell(f"{file}\n  project file, {state}")
    return 0


def _show(editor: SettingsEditor, name: str, folder: Path | None, *, is_json: bool) -> int:
    loaded = editor.load()
    specs = settings_under(loaded, _key(name) if name else ())
    if not specs:
        specs = (_spec_by_name(name),)
    specs = specs_in_shell(specs)
    if is_json:
        write_json(settings_json(loaded, specs))
    elif len(specs) == 1 and name:
        write_text(setting_text(loaded, specs[0], folder))
    else:
        write_text(settings_text(loaded, specs, folder))
    return 1 if loaded.problems else 0


def _edit(editor: SettingsEditor) -> int:
    file = editor.file
    command = editor_command(os.environ)
    if file.create(template_text()):
        _tell(f"Created {file.path}. It changes nothing yet.")
    while True:
        if (exit_code := run_editor(command, file.path)) != 0:
            raise ConfigError(f"{command[0]} exited with code {exit_code}.")
        problems = [str(problem) for problem in editor.load_own().problems]
        if not problems:
            _tell(f"No problems found in {file.path}.")
            return 0
        for problem in problems:
            complain(problem)
        if not (sys.stdin.isatty() and ask("Edit again?", is_yes_usual=True)):
            return 1


def _set(editor: SettingsEditor, spec: SettingSpec, words: Sequence[str]) -> int:
    value = editor.set(spec, words)
    _tell(f"{editor.file.path}: {spec.name} = {toml_text(value)}")
    if spec.kind == "choice" and value not in (known := specs_in_shell([spec])[0]).choices:
        _tell(f"No plugin brings {value}. Available: {known.allowed}.")
    _tell_who_is_stronger(editor, spec)
    return 0


def _unset(editor: SettingsEditor, spec: SettingSpec) -> int:
    if editor.file.unset(spec):
        _tell(f"Removed {spec.name} from {editor.file.path}. Default: {toml_text(spec.default)}")
    else:
        _tell(f"{spec.name} is not set in {editor.file.path}.")
    _tell_who_is_stronger(editor, spec)
    return 0


def _tell_who_is_stronger(editor: SettingsEditor, spec: SettingSpec) -> None:
    if why := editor.stronger_than_own(editor.load(), spec):
        _tell(f"No effect here: {why}.")


def _spec(arguments: argparse.Namespace) -> SettingSpec:
    return _spec_by_name(cast(str, arguments.key))


def _spec_by_name(name: str) -> SettingSpec:
    try:
        return setting_named(name)
    except ConfigError as error:
        raise UsageError(error.message, error.advice) from error


def _key(name: str) -> SettingKey:
    try:
        return parse_key(name)
    except ValueError as error:
        raise UsageError(f"{error}.", "See agent-tui config show.") from error


def _tell(text: str) -> None:
    print(safe_text(text), file=sys.stderr)


SHOW_JSON = """\
With --json:
  {"settings": [{"key", "value", "default", "origin", "layer", "also",
    "description", "allowed", "variable"}],
   "problems": [{"source", "line", "key", "problem"}]}
"origin" is the file and line, the variable or the option that sets the value.
"layer" is one of default, own file, project file, environment, command line.
"also" lists other origins: they add to a list, and are overridden otherwise.
"""

_WIDEST_VALUE = 44


def settings_under(loaded: LoadedSettings, name: SettingKey) -> tuple[SettingSpec, ...]:
    """The setting called `name`, all settings of that section, or all if `name` is empty."""
    specs = setting_specs(loaded.settings)
    return tuple(spec for spec in specs if spec.key[: len(name)] == name)


def settings_text(loaded: LoadedSettings, specs: Sequence[SettingSpec], folder: Path | None) -> str:
    """One TOML line for each of `specs`, followed by where it is set; problems come last."""
    secrets = secret_values(os.environ)
    lines: list[str] = []
    for section, group in groupby(specs, key=lambda spec: spec.section):
        if section:
            lines += ["", f"[{join_key(section)}]"] if lines else [f"[{join_key(section)}]"]
        for spec in group:
            assignment = f"{join_key(spec.key[-1:])} = {_value_text(loaded.settings, spec)}"
            origins = _origins_text(loaded, spec, folder)
            lines.append(f"{assignment.ljust(_WIDEST_VALUE)}  # {origins}")
    lines += _problem_lines(loaded, folder)
    return safe_text(mask_secrets("\n".join(lines), secrets)) + "\n"


def setting_text(loaded: LoadedSettings, spec: SettingSpec, folder: Path | None) -> str:
    """Everything about one setting, as text."""
    rows = [
        ("value", _value_text(loaded.settings, spec)),
        ("from", _origins_text(loaded, spec, folder)),
        ("default", toml_text(spec.default)),
        ("takes", spec.allowed),
        ("variable", spec.variable),
    ]
    lines = [f"{spec.name}: {spec.description}"]
    lines += [f"  {label:8}  {text}" for label, text in rows if text]
    key = spec.name
    lines += [f"{problem}" for problem in loaded.problems if problem.key == key or not problem.key]
    return safe_text(mask_secrets("\n".join(lines), secret_values(os.environ))) + "\n"


def settings_json(loaded: LoadedSettings, specs: Sequence[SettingSpec]) -> JsonObject:
    """`specs` as JSON, with a description of each setting."""
    secrets = secret_values(os.environ)

    def row(spec: SettingSpec) -> JsonObject:
        origins = loaded.origins_of(spec.key)
        return {
            "key": spec.name,
            "value": mask(value_at(loaded.settings, spec.key), secrets),
            "default": spec.default,
            "origin": str(origins[-1]),
            "layer": origins[-1].layer,
            "also": [str(origin) for origin in origins[:-1]],
            "description": spec.description,
            "allowed": spec.allowed,
            "variable": spec.variable or None,
        }

    problems: list[JsonValue] = [
        {
            "source": problem.source,
            "line": problem.line or None,
            "key": problem.key,
            "problem": mask(problem.problem, secrets),
        }
        for problem in loaded.problems
    ]
    return {"settings": [row(spec) for spec in specs], "problems": problems}


def _value_text(settings: Settings, spec: SettingSpec) -> str:
    return toml_text(mask(value_at(settings, spec.key)))


def _origins_text(loaded: LoadedSettings, spec: SettingSpec, folder: Path | None) -> str:
    """Where the value in force is set, and what it overrides, or for lists extends."""
    *others, last = (_origin_text(origin, folder) for origin in loaded.origins_of(spec.key))
    if not others:
        return last
    if spec.kind == "list":
        return " and ".join((*others, last))
    return f"{last}, overrides {', '.join(others)}"


def _origin_text(origin: Origin, folder: Path | None) -> str:
    """An origin in words; files in the current folder are shown relative to it."""
    text = str(origin)
    return text.replace(f"{folder}/", "", 1) if folder and text.startswith(f"{folder}/") else text


def _problem_lines(loaded: LoadedSettings, folder: Path | None) -> Iterator[str]:
    if not loaded.problems:
        return
    yield ""
    yield "Ignored:"
    for problem in loaded.problems:
        text = str(problem)
        yield f"  {text.replace(f'{folder}/', '', 1) if folder else text}"
