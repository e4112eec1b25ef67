"""The specification of each setting: its meaning, its values, and its variable."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Final, Literal, TypeAlias, cast, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

from agent_tui.config.keys import SettingKey, join_key
from agent_tui.config.schema import Settings
from agent_tui.config.section import AT_ONCE, NO_DEFAULT
from agent_tui.paths import FOLDER_VARIABLES
from agent_tui.secret_text import REMOVED, is_secret_name, mask_secrets

SettingKind: TypeAlias = Literal["switch", "choice", "number", "text", "list", "table"]


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """One setting.

    Attributes:
        key: Its section and name.
        kind: The kind of its value.
        description: One line about it.
        choices: All values of a choice; of a name, those that need no plugin.
        limits: The limits of a number, in words; empty for none.
        default: The value if nothing sets it.
        variable: The environment variable that sets it; empty if there is none.
        acts_at_once: Whether it says that a change needs no new start, as those of features do.
        needs_value: Whether its default may not stand in for a wrong value.
    """

    key: SettingKey
    kind: SettingKind
    description: str
    choices: tuple[str, ...]
    limits: str
    default: JsonValue
    variable: str
    acts_at_once: bool = False
    needs_value: bool = False

    @property
    def name(self) -> str:
        """The key as it is written in TOML."""
        return join_key(self.key)

    @property
    def section(self) -> SettingKey:
        """The table of the setting; empty for those before all tables."""
        return self.key[:-1]

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        match self.kind:
            case "switch":
                return "true or false"
            case "choice":
                return ", ".join(self.choices)
            case "number":
                return " ".join(filter(None, ("a number", self.limits)))
            case "text":
                return "a string"
            case "list":
                return 'a list of strings: ["…", "…"]'
            case "table":
                return "a table"


def setting_specs(settings: Settings) -> tuple[SettingSpec, ...]:
    """Every setting, those without a section first; in ``[models]`` those that `settings` name."""
    found = tuple(_specs(Settings, (), settings, has_variables=True))
    return (*(one for one in found if not one.section), *(one for one in found if one.section))


def spec_of(key: SettingKey) -> SettingSpec | None:
    """The specification of the setting `key`; None if it does not exist."""
    model: type[BaseModel] = Settings
    depth, is_named = 0, False
    while depth < len(key):
        field = model.model_fields.get(key[depth])
        if field is None:
            return None
        depth += 1
        if depth == len(key):
            return None if _inner(field) else _spec(key, field, has_variable=not is_named)
        inner = _inner(field)
        if inner is None:
            return None
        if _is_named_tables(field):
            is_named = True
            depth += 1
        model = inner
    return None


def section_of(key: SettingKey) -> type[BaseModel]:
    """The table of `key`, which need not exist; as deep as tables are known."""
    model: type[BaseModel] = Settings
    rest = list(key[:-1])
    while rest and (field := model.model_fields.get(rest.pop(0))):
        inner = _table_in_lists(field) or _inner(field)
        if inner is None:
            break
        named = _is_named_tables(field) + _is_named_lists(field)  # a name, then a number
        del rest[:named]
        model = inner
    return model


def section_description(section: SettingKey) -> str:
    """The description of ``[section]``."""
    field = Settings.model_fields.get(section[0]) if section else None
    return (field.description or "") if field else ""


_NO_SETTINGS: Final = frozenset(
    {
        *FOLDER_VARIABLES,
        "AGENT_TUI_DEBUG_CONTEXT",  # every request's context goes to the log
        "AGENT_TUI_LOCAL_KEY",  # between the program and a model server of its own
        "AGENT_TUI_MCP_TOKENS",
        "AGENT_TUI_MCP_URL",  # for a command that prints headers, with AGENT_TUI_MCP_HEADER_...
    }
)


def unknown_variables(environ: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Names in `environ` that look like ours but mean nothing, and which may be meant."""
    known = {*setting_variables(), *_NO_SETTINGS}
    for name in sorted(environ):
        is_header = name.startswith("AGENT_TUI_MCP_HEADER_")
        if name.startswith("AGENT_TUI_") and not is_header and name not in known:
            yield name, next(iter(difflib.get_close_matches(name, known, n=1)), "")


def setting_variables() -> Mapping[str, str]:
    """Environment variable -> the setting it sets, as ``compaction.auto``."""
    return {spec.variable: spec.name for spec in setting_specs(Settings()) if spec.variable}


def value_at(settings: Settings, key: SettingKey) -> JsonValue:
    """The value of `key` in `settings`; None if a named table lacks it."""
    value: object = settings
    for part in key:
        if isinstance(value, BaseModel):
            value = getattr(value, part, None)
        elif isinstance(value, dict):
            value = cast("dict[str, object]", value).get(part)
    return _plain(value)


def mask(value: JsonValue, known: Iterable[str] = ()) -> JsonValue:
    """`value` without the `known` secrets, what looks like a secret, and what is named like one."""
    secrets = tuple(known)
    match value:
        case str():
            return mask_secrets(value, secrets)
        case list():
            return [mask(one, secrets) for one in value]
        case dict():
            return {
                name: REMOVED if one and is_secret_name(name) else mask(one, secrets)
                for name, one in value.items()
            }
        case _:
            return value


def _specs(
    model: type[BaseModel], prefix: SettingKey, present: BaseModel | None, *, has_variables: bool
) -> Iterator[SettingSpec]:
    for name, field in model.model_fields.items():
        key = (*prefix, name)
        inner, value = _inner(field), getattr(present, name, None)
        if _is_named_lists(field) or _is_free(field):
            for own in cast("dict[str, object]", value or {}):
                yield _spec((*key, own), field, has_variable=False)
        elif inner is None:
            yield _spec(key, field, has_variable=has_variables)
        elif isinstance(value, dict):
            for own, table in cast("dict[str, BaseModel]", value).items():
                yield from _specs(inner, (*key, own), table, has_variables=False)
        else:
            yield from _specs(
                inner, key, cast("BaseModel | None", value), has_variables=has_variables
            )


def _spec(key: SettingKey, field: FieldInfo, *, has_variable: bool) -> SettingSpec:
    kind, choices = _kind(field.annotation)
    if field.examples:
        kind, choices = "choice", tuple(map(str, field.examples))
    is_set_from_outside = has_variable and kind != "table"
    return SettingSpec(
        key=key,
        kind=kind,
        description=field.description or "",
        choices=choices,
        limits=_limits(field),
        default=_plain(field.get_default(call_default_factory=True)),
        variable="AGENT_TUI_" + "__".join(key).upper() if is_set_from_outside else "",
        acts_at_once=AT_ONCE in field.metadata,
        needs_value=NO_DEFAULT in field.metadata,
    )


def _kind(annotation: object) -> tuple[SettingKind, tuple[str, ...]]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is UnionType:
        return _kind(next(one for one in arguments if one is not type(None)))
    if origin is Literal:
        return "choice", tuple(str(choice) for choice in arguments)
    if origin in (tuple, list):
        return "list", ()
    if annotation is bool:
        return "switch", ()
    if annotation is int or annotation is float:
        return "number", ()
    return ("text", ()) if annotation is str else ("table", ())


def _inner(field: FieldInfo) -> type[BaseModel] | None:
    """The table that a field is, or the one under each name in it."""
    annotation: object = field.annotation
    if get_origin(annotation) is dict:
        annotation = get_args(annotation)[1]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None


def _table_in_lists(field: FieldInfo) -> type[BaseModel] | None:
    """The table that occurs several times under each name in a field."""
    if not _is_named_lists(field):
        return None
    found: object = get_args(get_args(field.annotation)[1])[0]
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _is_named_lists(field: FieldInfo) -> bool:
    arguments = get_args(field.annotation)
    return _is_named_tables(field) and get_origin(arguments[1]) is tuple


def _is_free(field: FieldInfo) -> bool:
    """Whether the core does not know what is in the tables under each name of a field."""
    return _is_named_tables(field) and get_origin(get_args(field.annotation)[1]) is dict


def _is_named_tables(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is dict


def _limits(field: FieldInfo) -> str:
    words: list[str] = []
    for limit in field.metadata:
        match limit:
            case Gt():
                words.append(f"above {limit.gt}")
            case Ge():
                words.append(f"at least {limit.ge}")
            case Lt():
                words.append(f"below {limit.lt}")
            case Le():
                words.append(f"at most {limit.le}")
            case _:
                pass
    return ", ".join(words)


def _plain(value: object) -> JsonValue:
    """A value converted for TOML and JSON."""
    if isinstance(value, BaseModel):
        return cast(JsonValue, value.model_dump(mode="json"))
    if isinstance(value, tuple):
        return [_plain(one) for one in cast("tuple[object, ...]", value)]
    return cast(JsonValue, value)
