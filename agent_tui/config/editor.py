"""Reading the settings in force, and changing the person's own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent_tui.config.loading import LoadedSettings
from agent_tui.config.specs import SettingSpec
from agent_tui.config.user_file import UserConfigFile
from agent_tui.errors import ConfigError

RefuseValue = Callable[[SettingSpec, JsonValue], str]
"""Says why a value of the right type is refused all the same; empty where it is not."""


@dataclass(frozen=True, slots=True)
class SettingsEditor:
    """Reads settings and changes the person's own; each reading is fresh.

    Attributes:
        file: The person's own.
        load: All that is in force here.
        load_own: What the person's own file says alone, above the defaults.
        refuse: Why a value is refused that only the rest of the program can judge.
    """

    file: UserConfigFile
    load: Callable[[], LoadedSettings]
    load_own: Callable[[], LoadedSettings]
    refuse: RefuseValue

    def checked(self, spec: SettingSpec, words: Sequence[str]) -> JsonValue:
        """What the person wrote for `spec`, as it would be kept.

        Raises:
            ConfigError: It would be refused; says what is allowed.
        """
        value = self.file.checked(spec, words)
        if why := self.refuse(spec, value):
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

    def stronger_than_own(self, loaded: LoadedSettings, spec: SettingSpec) -> str:
        """What overrules the person's own value of `spec`, in words; empty where nothing does."""
        origin = loaded.origin(spec.key)
        match origin.layer:
            case "default" | "own file":
                return ""
            case "project file":
                if spec.kind == "list":
                    return ""  # rules of a project are added to the person's
                return f"{origin} sets it for this project"
            case "environment":
                return f"the environment variable {origin} sets it"
            case "command line":
                return f"{origin} on the command line sets it"
