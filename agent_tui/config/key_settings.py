"""``[keys]``: a setting for each action that has a key, made from the table of actions."""

from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, create_model, field_validator

from agent_tui.key_actions import KEY_ACTIONS, KeyMap, normal_key


class _Keys(BaseModel):
    """A key is a text, several are a list; ``""`` leaves an action without one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _normal(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, str | list | tuple):
            return value
        keys = [value] if isinstance(value, str) else [*cast("list[object]", value)]
        action = KEY_ACTIONS[info.field_name or ""]
        return tuple(
            normal_key(key, action) if isinstance(key, str) else key for key in keys if key != ""
        )

    @property
    def key_map(self) -> KeyMap:
        """The keys in force, by what the user chose."""
        chosen = {name for name in self.model_fields_set if self._choice(name)}
        return KeyMap({name: getattr(self, name) for name in KEY_ACTIONS if name in chosen})

    def _choice(self, name: str) -> bool:
        return getattr(self, name) != KEY_ACTIONS[name].keys


if TYPE_CHECKING:

    class KeySettings(_Keys):
        """``[keys]``."""

else:
    _fields: dict[str, Any] = {
        name: (tuple[str, ...], Field(default=action.keys, description=action.description))
        for name, action in KEY_ACTIONS.items()
    }
    KeySettings = create_model("KeySettings", __base__=_Keys, **_fields)
