"""``agent-tui config``: shows the settings in force and changes the user's own."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from agent_tui.cli.command_parser import CommandParser, subcommand_parser
from agent_tui.cli.config.show import (
    SHOW_JSON,
    setting_text,
    settings_json,
    settings_text,
    settings_under,
)
from agent_tui.cli.folders import kept_trust, present_folder_or_none
from agent_tui.cli.output import ask, complain, write_json, write_text
from agent_tui.cli.settings import settings_editor
from agent_tui.config.json_schema import SCHEMA_URL, settings_schema, template_text, toml_text
from agent_tui.config.keys import SettingKey, parse_key
from agent_tui.config.specs import SettingSpec
from agent_tui.config.user_file import SettingsEditor, setting_named
from agent_tui.errors import ConfigError, UsageError
from agent_tui.permissions.project_files import config_files
from agent_tui.permissions.trust import FolderTrust
from agent_tui.safe_text import safe_text
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
    trust, folder = kept_trust(), present_folder_or_none()
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
        specs = (_named(name),)
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
    if spec.kind == "choice" and value not in spec.choices:
        _tell(f"{value} is not built in ({spec.allowed}): a plugin must bring it.")
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
    return _named(cast(str, arguments.key))


def _named(name: str) -> SettingSpec:
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
