"""The settings as a person works on them: what is in force, and changes that are kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent_tui.config.catalogue import SettingSpec
from agent_tui.config.loading import LoadedSettings
from agent_tui.config.own_file import OwnFile
from agent_tui.errors import ConfigError

Objection = Callable[[SettingSpec, JsonValue], str]
"""Why a value that is right as such would be refused all the same; empty where it is not."""


@dataclass(frozen=True, slots=True)
class SettingsDesk:
    """Where settings are read and changed; each reading is fresh.

    Attributes:
        file: The person's own.
        load: All that is in force here.
        load_own: What the person's own file says alone, above the defaults.
        objection: What only the rest of the program can know of a value.
    """

    file: OwnFile
    load: Callable[[], LoadedSettings]
    load_own: Callable[[], LoadedSettings]
    objection: Objection

    def checked(self, spec: SettingSpec, words: Sequence[str]) -> JsonValue:
        """What the person wrote for `spec`, as it would be kept.

        Raises:
            ConfigError: It would be refused; says what is allowed.
        """
        value = self.file.checked(spec, words)
        if why := self.objection(spec, value):
            raise ConfigError(f"{spec.name}: {why}")
        return value

    def set(self, spec: SettingSpec, words: Sequence[str]) -> JsonValue:
        """Keep what the person wrote for `spec`, and return it as it is kept.

        Raises:
            ConfigError: It would be refused, or the file cannot be changed; it is as it was.
        """
        value = self.checked(spec, words)
        self.file.set(spec, value)
        return value

    def unset(self, spec: SettingSpec) -> bool:
        """Leave `spec` to the others again; false if the person's file did not speak of it.

        Raises:
            ConfigError: The file cannot be changed; it is as it was.
        """
        return self.file.unset(spec)

    def stronger_than_own(self, loaded: LoadedSettings, spec: SettingSpec) -> str:
        """Who overrules the person's file about `spec`, in words; empty where nobody does."""
        origin = loaded.origin(spec.key)
        match origin.layer:
            case "default" | "own file":
                return ""
            case "project file":
                if spec.kind == "list":
                    return ""  # rules of a project are added to the person's
                return f"{origin} sets it for this project"
            case "environment":
                return f"the variable {origin} is set"
            case "command line":
                return f"{origin} was given on the command line"
