"""Every setting: its type, limits, default, and the one line that says what it is.

The lines are read by ``config show``, the file that ``config edit`` begins with, and ``/settings``.
A new section is a class here and a field of `Settings`; all else follows from that.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from agent_tui.config.addresses import check_address
from agent_tui.config.defaults import MOST_PROCESSES
from agent_tui.config.section import OnlyStricter, SettingsSection
from agent_tui.errors import ConfigError
from agent_tui.feature import load_object, own_features, own_names
from agent_tui.key_actions import KEY_ACTIONS, KeyMap, normal_key
from agent_tui.messages import ThinkingLevel

PermissionMode: TypeAlias = Literal["ask", "accept-edits", "plan", "full"]
Durability: TypeAlias = Literal["entry", "turn", "none"]
TerminalStateSetting: TypeAlias = Literal["auto", "title", "off"]
StatusField: TypeAlias = Literal[
    "badge",
    "folder",
    "branch",
    "model",
    "mode",
    "sandbox",
    "jobs",
    "mouse",
    "command",
    "totals",
    "plan",
    "name",
]
HookEvent: TypeAlias = Literal[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "Stop",
    "SessionEnd",
]

STATUS_FIELDS: tuple[StatusField, ...] = get_args(StatusField)
"""What the status line can show, in its usual order."""

PLUGIN_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]*"
"""A regular expression for the name of what a plugin brings: one word."""

STRATEGY_NAMES: tuple[str, ...] = ("tiered", *own_names("agent_tui.strategies"))
"""The built-in strategies. ``tiered`` is what the others fall back on; plugins bring more."""

_TARGET = 0.20
"""One deep cut costs less than several shallow ones: `tests.benchmarks.compaction_price`."""

_LEAST_TARGET_TOKENS = 16_000
"""A smaller context no longer has the task, the newest messages and what is being changed."""

_LARGEST_TARGET = 0.40
_HYBRID_THRESHOLDS: Mapping[str, float] = {"warn_at": 0.60, "trigger_at": 0.70}
"""``hybrid`` needs more room than the tiers, as it leaves every message in its place."""


class _Keys(BaseModel):
    """One key is a string, several are a list; ``""`` leaves an action without a key."""

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


def _address_or_empty(text: str) -> str:
    return check_address(text) if text else text


WebAddress: TypeAlias = Annotated[str, AfterValidator(_address_or_empty)]


def _strategy_name(name: str) -> str:
    if not re.fullmatch(PLUGIN_NAME, name):
        raise ValueError(f"give the name of a strategy: {', '.join(STRATEGY_NAMES)}, or a plugin's")
    return name


def check_target(value: float) -> float:
    """`value` if it can be a compaction's target: a fraction, or a whole number of tokens.

    Raises:
        ValueError: It is neither.
    """
    if 0 <= value < 1 or (value >= 1_000 and value.is_integer()):
        return value
    raise ValueError("give a fraction below 1, or a whole number of tokens, at least 1,000")


TargetSize: TypeAlias = Annotated[float, AfterValidator(check_target)]


StrategyName: TypeAlias = Annotated[str, AfterValidator(_strategy_name)]
"""Any word: settings are read before plugins, so `CompactionPlanner` says if there is no such."""


class CompactionSettings(SettingsSection):
    """``[compaction]``. Fractions are of the model's window, as everywhere they are shown.

    A large window is not filled: agent-tui compacts at `trigger_tokens`, whatever fraction of the
    window that is, and the other thresholds keep their proportion to it. A compaction that frees
    less than `min_gain` is not worth losing the prompt cache. `strategy` says how to compact;
    ``hybrid`` warns at 0.60 and compacts at 0.70 unless these are set.
    """

    strategy: StrategyName = Field(
        default="tiered",
        examples=[*STRATEGY_NAMES],
        description="How to compact: old outputs first, then a summary (tiered), message by "
        "message (hybrid), with a compression agent (agent), or with a plugin's strategy",
    )
    model: str = Field(
        default="",
        description="Model that chooses what a compaction keeps; empty: the conversation's own",
    )
    auto: bool = Field(default=True, description="Compact automatically")
    warn_at: float = Field(
        default=0.70, gt=0, lt=1, description="Fraction of the window at which you are warned"
    )
    trigger_at: float = Field(
        default=0.80,
        gt=0,
        lt=1,
        description="Fraction of the window at which to compact; earlier if a reply would not fit",
    )
    target: TargetSize = Field(
        default=0,
        ge=0,
        description="Tokens left after compaction, such as 20000, or a fraction of the window; "
        "0: 20 %, in small windows up to 40 % to keep 16,000 tokens",
    )
    trigger_tokens: int = Field(
        default=100_000,
        ge=0,
        description="Tokens at which to compact, however large the window; 0: only trigger_at",
    )
    min_gain: float = Field(
        default=0.10,
        ge=0,
        lt=1,
        description="Fraction of the window that compaction must free to be worth losing the "
        "prompt cache",
    )
    protected_messages: int = Field(
        default=12, ge=1, description="Number of newest messages that stay unchanged"
    )
    keep_recent_tokens: int = Field(
        default=0,
        ge=0,
        description="Tokens of recent messages kept out of a summary; 0: 20 % of the window, "
        "at most 20,000",
    )
    max_summary_tokens: int = Field(
        default=6_000,
        ge=200,
        description="Longest notes that a model writes for a compaction or a branch, in tokens",
    )
    max_output_tokens: int = Field(
        default=2_000,
        ge=600,
        description="Old tool outputs above this many tokens are cut to head and tail",
    )
    template: Literal["structured", "seven-section"] = Field(
        default="structured", description="Headings of a model's notes"
    )
    summary_role: Literal["user", "system"] = Field(
        default="user", description="Send the summary as a user message or in the system prompt"
    )
    background: bool = Field(
        default=True,
        description="Ask the model what to keep in the background once warn_at is reached",
    )
    idle_compaction: float = Field(
        default=0,
        ge=0,
        description="Most US dollars to spend in a pause on choosing what to keep, just before the "
        "provider's cache of a large context expires; 0: off",
    )

    @model_validator(mode="before")
    @classmethod
    def _thresholds_of_strategy(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        given = cast("dict[str, object]", values)
        return {**_HYBRID_THRESHOLDS, **given} if given.get("strategy") == "hybrid" else given

    def effective_window(self, window: int) -> int:
        """How many tokens of a `window` are used; thresholds are fractions of these."""
        most = round(self.trigger_tokens / self.trigger_at)
        return min(window, most or window)

    def target_share(self, window: int) -> float:
        """The fraction of `window` tokens left after compaction: the setting, or by its size."""
        suits = min(max(_TARGET, _LEAST_TARGET_TOKENS / max(window, 1)), _LARGEST_TARGET)
        return self.target if 0 < self.target < 1 else suits

    def target_tokens(self, window: int) -> int:
        """The tokens left after compaction in a `window`; at most half of it if set in tokens."""
        if self.target >= 1:
            return min(int(self.target), window // 2)
        return int(window * self.target_share(window))

    def keep_recent(self, window: int) -> int:
        """Tokens of recent messages to keep: the setting, or 20 % of `window` up to 20,000."""
        return self.keep_recent_tokens or min(window // 5, 20_000)


class PermissionSettings(SettingsSection):
    """``[permissions]``: rules such as ``bash(git status)`` or ``write(docs/**)``.

    `pass_environment` names variables (``GITHUB_TOKEN``, ``AWS_*``) that commands are given
    although they hold secrets.
    """

    allow: tuple[str, ...] = Field(
        default=(),
        description='What runs without asking, such as "bash(pytest *)" or "write(docs/**)"',
    )
    ask: tuple[str, ...] = Field(default=(), description="What asks first, whatever the mode")
    deny: tuple[str, ...] = Field(default=(), description="What never runs; overrides other rules")
    pass_environment: tuple[str, ...] = Field(
        default=(),
        description="Environment variables the model's commands get even though they look secret",
    )


class ModelSettings(SettingsSection):
    """``[models."name"]``: facts about one model that replace those of the built-in table."""

    window: int | None = Field(
        default=None, gt=0, description="Context window in tokens; overrides the known value"
    )
    max_output: int | None = Field(
        default=None, gt=0, description="Longest reply in tokens; overrides the known value"
    )
    base_url: WebAddress | None = Field(
        default=None, description="URL of the OpenAI-compatible server for this model"
    )
    api_key_env: str | None = Field(
        default=None, description="Name of the environment variable that holds this model's key"
    )
    sees_images: bool | None = Field(
        default=None, description="Whether it accepts images; overrides the known value"
    )


class HookSettings(SettingsSection):
    """``[[hooks.EVENT]]``: a command that runs when something happens."""

    matcher: str = Field(
        default="",
        description="Tools it applies to, as a regular expression such as Edit|Write; empty: all",
    )
    command: str = Field(min_length=1, description="Shell command; it reads JSON")
    timeout_s: float = Field(
        default=60.0, gt=0, le=3_600, description="Seconds after which it is stopped"
    )


_BROUGHT = tuple(
    cast("type[BaseModel]", load_object(one.settings)) for one in own_features() if one.settings
)
"""The settings of features."""

SectionT = TypeVar("SectionT", bound=BaseModel)
ModelT = TypeVar("ModelT", bound=BaseModel)


def _add_brought(core: type[SectionT]) -> type[SectionT]:
    """`core` with the settings of features behind its own."""
    bases = (*reversed(_BROUGHT), core)
    made = create_model(
        core.__name__, __base__=bases, __module__=core.__module__, __doc__=core.__doc__
    )
    return cast("type[SectionT]", made)


@_add_brought
class Settings(SettingsSection, defer_build=True):
    """All settings. Times in seconds, sizes in tokens."""

    model: str = Field(
        default="",
        description="Model to use, any litellm name; empty: chosen from the available keys",
    )
    base_url: WebAddress = Field(
        default="", description="URL of an OpenAI-compatible server for the model"
    )
    api_key_env: str = Field(
        default="", description="Name of the environment variable that holds the key, not the key"
    )
    thinking: ThinkingLevel = Field(
        default="auto",
        description="How much the model thinks before it answers; auto: medium if supported; "
        "xhigh and max: the highest level that the model supports",
    )
    permission_mode: Annotated[
        PermissionMode, OnlyStricter(("plan", "ask", "accept-edits", "full"))
    ] = Field(
        default="ask",
        description="Ask before writes and commands (ask), before commands outside the sandbox "
        "(accept-edits) or before destructive actions (full), or only read (plan)",
    )
    session_dir: str = Field(
        default="", description="Folder for session files; empty: the user's data folder"
    )
    durability: Durability = Field(
        default="entry",
        description="When a session file is synced to disk: after each entry, after each turn, or "
        "never (none)",
    )
    plugins: tuple[str, ...] = Field(
        default=(),
        description="Installed packages whose plugins agent-tui loads",
    )
    recall_other_sessions: bool = Field(
        default=True,
        description="Let recall also search the folder's other sessions",
    )
    fetch_private: bool = Field(
        default=False,
        description="Let fetch read from this machine and from private networks",
    )
    theme: str = Field(
        default="",
        description="Colours; empty: match the terminal, else agent-dark; /theme previews them",
    )
    mouse: bool = Field(default=True, description="Use the mouse; false leaves it to the terminal")
    status_fields: tuple[StatusField, ...] = Field(
        default=STATUS_FIELDS,
        description="What the status line shows left of the context gauge, in this order",
    )
    status_command: str = Field(
        default="",
        description="Shell command whose first output line becomes the status field command; "
        "it reads JSON",
    )
    status_interval_s: float = Field(
        default=5.0,
        ge=1,
        description="Minimum seconds between runs of status_command",
    )
    terminal_state: TerminalStateSetting = Field(
        default="auto",
        description="Where the terminal shows that agent-tui works or asks you: in its title, and "
        "as progress if it can (auto), only in the title, or nowhere (off)",
    )
    bash_timeout_s: float = Field(
        default=120.0,
        gt=0,
        description="Seconds before a command is stopped; the model's commands continue in the "
        "background instead",
    )
    max_processes: int = Field(
        default=MOST_PROCESSES,
        ge=10,
        le=1_000_000,
        description="Processes a command may have at a time; with more, it is killed (Linux)",
    )
    request_idle_timeout_s: float = Field(
        default=600.0,
        gt=0,
        description="Seconds without data from a server before a request is stopped",
    )
    loopback_idle_timeout_s: float = Field(
        default=3_600.0,
        gt=0,
        description="The same for a server on this machine, which may take long to read a prompt",
    )
    limit_wait_h: float = Field(
        default=12.0,
        ge=0,
        le=168,
        description="Hours that one turn may wait in all until a model's usage limit resets or an "
        "outage ends; 0: do not wait",
    )
    compaction: CompactionSettings = Field(
        default=CompactionSettings(),
        description="Compaction; fractions are of the model's context window",
    )
    permissions: PermissionSettings = Field(
        default=PermissionSettings(),
        description="Rules for what runs, asks or is denied; deny wins",
    )
    hooks: dict[HookEvent, tuple[HookSettings, ...]] = Field(
        default_factory=dict[HookEvent, tuple[HookSettings, ...]],
        description="Commands to run on events, such as [[hooks.PostToolUse]] "
        'with matcher = "Edit|Write" and command = "..."',
    )
    keys: KeySettings = Field(
        default=KeySettings(),
        description='Key bindings: one key such as "ctrl+e", several as a list, "" for none',
    )
    models: dict[str, ModelSettings] = Field(
        default_factory=dict,
        description='Settings for one model, such as [models."openai/qwen3"]',
    )

    plugin: dict[str, dict[str, JsonValue]] = Field(
        default_factory=dict[str, dict[str, JsonValue]],
        description="Settings of plugins, such as [plugin.weather]; each plugin says what it reads",
    )

    def of_plugin(self, name: str, kind: type[ModelT]) -> ModelT:
        """The settings in ``[plugin.NAME]``, or the defaults of `kind` without them.

        Raises:
            ConfigError: They do not fit `kind`.
        """
        try:
            return kind.model_validate(self.plugin.get(name, {}))
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, ("plugin", name, *first["loc"])))
            raise ConfigError(f"The setting {key} cannot be used: {first['msg']}.") from error

    def of(self, kind: type[SectionT]) -> SectionT:
        """The settings of a feature, by their class."""
        assert isinstance(self, kind)
        return self

    def brought(self) -> Mapping[str, object]:
        """The settings of all features."""
        return {name: getattr(self, name) for one in _BROUGHT for name in one.model_fields}
