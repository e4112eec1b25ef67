"""The settings of MCP servers."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, model_validator

from agent_tui.config.addresses import check_address
from agent_tui.config.section import SettingsSection


def _address_with_variables(text: str) -> str:
    """Accept ``${NAME}`` in an address: it is checked again once the variables are filled in."""
    return check_address(text) if text and "${" not in text else text


_OF_OTHERS = frozenset({"tools", "exclude", "always", "enabled", "timeout_s"})


class McpServerSettings(SettingsSection):
    """``[mcp.servers.NAME]``: a program to start, or the `url` of a server.

    With neither, it has your settings for a server that a project or an editor calls NAME. `env` is
    added to the program's environment, which holds no keys. `headers_env` names the variable with
    the value of each HTTP header, so that the file holds no key.
    """

    command: str = Field(default="", description="Program to start")
    args: tuple[str, ...] = Field(default=(), description="Arguments of the program")
    env: dict[str, str] = Field(default_factory=dict, description="Environment variables for it")
    url: Annotated[str, AfterValidator(_address_with_variables)] = Field(
        default="", description="URL of the server, instead of a program"
    )
    headers_env: dict[str, str] = Field(
        default_factory=dict,
        description="HTTP header -> name of the environment variable with its value",
    )
    tools: tuple[str, ...] = Field(
        default=(), description="Tools to offer, as names or patterns (search_*); empty: all"
    )
    exclude: tuple[str, ...] = Field(default=(), description="Tools not to offer")
    always: tuple[str, ...] = Field(
        default=(), description="Tools to offer first when not all fit the context"
    )
    enabled: bool = Field(default=True, description="Start the server")
    timeout_s: float = Field(
        default=60.0, gt=0, description="Seconds allowed for start-up and for each call"
    )

    @property
    def is_of_others(self) -> bool:
        """Whether a project or an editor defines the server."""
        return not self.command.strip() and not self.url.strip()

    @model_validator(mode="after")
    def _is_one_of_both(self) -> "McpServerSettings":
        if self.command.strip() and self.url.strip():
            raise ValueError("give either command or url")
        if self.is_of_others and not self.model_fields_set & _OF_OTHERS:
            raise ValueError("give command or url, or settings for a server defined elsewhere")
        if self.is_of_others and self.model_fields_set & {"args", "env", "headers_env"}:
            raise ValueError("args, env and headers_env need a command or url beside them")
        return self


class McpSettings(SettingsSection):
    """``[mcp]``: the servers by name, and how long a turn waits for them to start."""

    wait_s: float = Field(
        default=10.0, ge=0, description="Seconds a turn waits, once, for a server to start"
    )
    servers: dict[str, McpServerSettings] = Field(
        default_factory=dict, description="Servers by name, such as [mcp.servers.github]"
    )


class McpSection(BaseModel):
    """The section of the settings."""

    mcp: McpSettings = Field(
        default=McpSettings(), description="MCP servers, whose tools the model can call"
    )
