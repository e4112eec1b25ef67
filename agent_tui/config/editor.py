"""Read the settings in force, and change the user's own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent_tui.config.loading import LoadedSettings
from agent_tui.config.specs import SettingSpec
from agent_tui.config.user_file import UserConfigFile
from agent_tui.errors import ConfigError

RefuseValue = Callable[[SettingSpec, JsonValue], str]
"""Says why a value of the right type is refused anyway; empty if it is accepted."""


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

    def checked(self, spec: SettingSpec, words: Sequence[str]) -> JsonValue:
        """Convert the user's text for `spec` to the value to store.

        Raises:
            ConfigError: The value is invalid; says what is allowed.
        """
        value = self.file.checked(spec, words)
        if why := self.refuse(spec, value):
            raise ConfigError(f"{spec.name}: {why}")
        return value

    def set(self, spec: SettingSpec, words: Sequence[str]) -> JsonValue:
        """Store the user's text for `spec`; returns the stored value.

        Raises:
            ConfigError: The value is invalid, or the file cannot be changed and stays as it was.
        """
        value = self.checked(spec, words)
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
