"""Read the settings in force, and change the user's own ``config.toml``.

One value is changed at a time, with comments and order kept.
"""

import re
import tomllib
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agent_tui.atomic_files import replace_private_file
from agent_tui.config.keys import SettingKey, join_key, parse_key
from agent_tui.config.loading import LoadedSettings, keep_valid, merge, nest, unknown_setting
from agent_tui.config.schema import Settings
from agent_tui.config.specs import SettingSpec, spec_of, value_at
from agent_tui.errors import ConfigError
from agent_tui.messages import JsonObject
from agent_tui.regular_files import read_regular_file
from agent_tui.safe_paths import real_path
from agent_tui.secret_text import has_key

_SEE_ALL = "agent-tui config show lists all settings."
_FIX_FIRST = "Fix the file first: agent-tui config edit."

RefuseValue = Callable[[SettingSpec, JsonValue], str]
"""Says why a value of the right type is refused anyway; empty if it is accepted."""


def setting_named(text: str) -> SettingSpec:
    """The setting that the user names, such as ``compaction.auto`` or ``models."openai/x".window``.

    Raises:
        ConfigError: It does not exist; names the likely one, or all.
    """
    try:
        key = parse_key(text)
    except ValueError as error:
        raise ConfigError(f"{error}.", _SEE_ALL) from error
    spec = spec_of(key)
    if spec is None:
        raise ConfigError(f"{text}: {unknown_setting(key)}.".replace("?.", "?"), _SEE_ALL)
    return spec


class UserConfigFile:
    """The user's ``config.toml``.

    Args:
        path: May be missing; if it is a link, its target is changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def convert(self, spec: SettingSpec, words: Sequence[str]) -> JsonValue:
        """Convert the user's text for `spec` to its type.

        Args:
            spec: The setting.
            words: One text; for a list, its items or one text with a TOML list.

        Raises:
            ConfigError: It is not allowed (says what is), or the file is invalid.
        """
        if spec.kind == "table":
            raise ConfigError(f"{spec.name} is a table.", "Edit it with agent-tui config edit.")
        written: JsonValue = " ".join(words)
        if spec.kind == "list":
            is_written_out = len(words) == 1 and words[0].lstrip().startswith("[")
            written = _toml_list(spec, words[0]) if is_written_out else [*words]
        values, _ = keep_valid(self._parse(self._text()))
        values = merge(values, nest(spec.key, written))
        _, invalid = keep_valid(values)
        for one in invalid:
            if one.key[: len(spec.key)] == spec.key:
                what = f": {one.why}" if one.by_rule else f" takes {spec.allowed}"
                raise ConfigError(f"{spec.name}{what}.")
            if spec.key[: len(one.key)] == one.key:
                raise ConfigError(f"{join_key(one.key)}: {one.why}.")
        value = value_at(Settings.model_validate(values), spec.key)
        if spec.kind == "text" and has_key(str(value)):
            raise ConfigError(
                f"{spec.name}: this looks like an API key. Keys do not belong in config.toml.",
                "Put the key in an environment variable and its name in api_key_env.",
            )
        return value

    def set(self, spec: SettingSpec, value: JsonValue) -> None:
        """Set `spec` to `value`, replacing its commented line if there is one.

        Args:
            spec: The setting.
            value: As returned by `convert`.

        Raises:
            ConfigError: The file is invalid, unreadable or not writable, and stays as it was.
        """
        import tomlkit  # 30 ms that only a change needs

        text = self._text()
        wanted = merge(self._parse(text), nest(spec.key, value))
        line = f"{join_key(spec.key[-1:])} = {tomlkit.item(value).as_string()}"
        changed = _uncomment(text, spec.key, line)
        if changed is None or tomllib.loads(changed) != wanted:
            document = tomlkit.parse(text)
            self._table(document, spec.section)[spec.key[-1]] = value
            changed = tomlkit.dumps(document)
        self._write(changed)

    def unset(self, spec: SettingSpec) -> bool:
        """Remove `spec` from the file; false if it is not set there.

        Raises:
            ConfigError: The rest of the file needs it, or the file is invalid, unreadable or not
                writable; it stays as it was.
        """
        import tomlkit

        text = self._text()
        table: JsonValue = self._parse(text)
        for part in spec.key:
            if not isinstance(table, dict) or part not in table:
                return False
            table = table[part]
        document = tomlkit.parse(text)
        del self._table(document, spec.section)[spec.key[-1]]
        changed = tomlkit.dumps(document)
        _, invalid_before = keep_valid(self._parse(text))
        _, invalid = keep_valid(tomllib.loads(changed))
        for one in invalid:
            if one not in invalid_before:
                raise ConfigError(f"{join_key(one.key)} needs {spec.name}: {one.why}.")
        self._write(changed)
        return True

    def create(self, text: str) -> bool:
        """Create the file with `text`; false if it exists.

        Raises:
            ConfigError: It cannot be written.
        """
        if self.path.exists():
            return False
        self._write(text)
        return True

    def _table(
        self, document: MutableMapping[str, object], section: SettingKey
    ) -> MutableMapping[str, object]:
        """The table `section`, created if it is missing."""
        import tomlkit

        table = document
        for depth, part in enumerate(section, start=1):
            if part not in table:
                table[part] = tomlkit.table(is_super_table=depth < len(section))
            inner = table[part]
            if not isinstance(inner, MutableMapping):
                named = join_key(section[:depth])
                raise ConfigError(f"{self.path}: {named} is not a table.", _FIX_FIRST)
            table = cast("MutableMapping[str, object]", inner)
        return table

    def _text(self) -> str:
        try:
            return read_regular_file(self.path).decode("utf-8-sig")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{self.path} is not UTF-8: {error}.", _FIX_FIRST) from error

    def _parse(self, text: str) -> JsonObject:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{self.path}: not valid TOML: {error}.", _FIX_FIRST) from error

    def _write(self, text: str) -> None:
        try:
            replace_private_file(real_path(self.path), text)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error.strerror}.") from error


def _toml_list(spec: SettingSpec, text: str) -> JsonValue:
    try:
        return cast(JsonValue, tomllib.loads(f"list = {text}")["list"])
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{spec.name} takes {spec.allowed}: {error}.") from error


def _uncomment(text: str, key: SettingKey, line: str) -> str | None:
    """`text` with the commented line of `key` replaced by `line`; None if there is none."""
    lines = text.splitlines(keepends=True)
    is_there = not key[:-1]
    commented = re.compile(rf"#\s?{re.escape(join_key(key[-1:]))}\s*=")
    for number, present in enumerate(lines):
        if header := re.match(r"\s*\[+([^\[\]]+)\]", present):
            try:
                is_there = parse_key(header[1].strip()) == key[:-1]
            except ValueError:
                is_there = False
        elif is_there and commented.match(present):
            end = present[len(present.rstrip("\r\n")) :]
            return "".join((*lines[:number], line, end, *lines[number + 1 :]))
    return None


@dataclass(frozen=True, slots=True)
class SettingsEditor:
    """Reads settings and changes the user's own; never caches.

    Attributes:
        file: The user's settings file.
        load: Loads all settings in force here.
        load_own: Loads only the user's file and the defaults.
        refuse: Refuses values that only the rest of the program can judge.
    """

    file: UserConfigFile
    load: Callable[[], LoadedSettings]
    load_own: Callable[[], LoadedSettings]
    refuse: RefuseValue

    def convert(self, spec: SettingSpec, words: Sequence[str]) -> JsonValue:
        """Convert the user's text for `spec` to the value to store.

        Raises:
            ConfigError: The value is invalid; says what is allowed.
        """
        value = self.file.convert(spec, words)
        if why := self.refuse(spec, value):
            raise ConfigError(f"{spec.name}: {why}")
        return value

    def set(self, spec: SettingSpec, words: Sequence[str]) -> JsonValue:
        """Store the user's text for `spec`; returns the stored value.

        Raises:
            ConfigError: The value is invalid, or the file cannot be changed and stays as it was.
        """
        value = self.convert(spec, words)
        self.file.set(spec, value)
        return value

    def stronger_than_own(self, loaded: LoadedSettings, spec: SettingSpec) -> str:
        """What overrides the user's own value of `spec`, in words; empty if nothing does."""
        origin = loaded.origin(spec.key)
        match origin.layer:
            case "default" | "own file":
                return ""
            case "project file":
                if spec.kind == "list":
                    return ""  # a project's rules are added to the user's
                return f"{origin} sets it for this project"
            case "environment":
                return f"the environment variable {origin} sets it"
            case "command line":
                return f"{origin} on the command line sets it"
