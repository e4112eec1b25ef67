"""The settings of MCP servers."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, Field, model_validator

from agent_tui.config.addresses import check_address
from agent_tui.config.section import SettingsSection


def _address_with_variables(text: str) -> str:
    """Accept ``${NAME}`` in an address: it is checked again once the variables are filled in."""
    return check_address(text) if text and "${" not in text else text


_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


def _variable(text: str) -> str:
    """Accept only what cannot be the secret itself. The message does not repeat it."""
    if text and not _VARIABLE.fullmatch(text):
        raise ValueError("give the name of a variable in capitals, not the secret itself")
    return text


def _client_id(text: str) -> str:
    """Accept the characters of a client's id (RFC 6749, appendix A.1)."""
    if not (text.isascii() and text.isprintable()):
        raise ValueError("only printable ASCII characters")
    return text


def _page(text: str) -> str:
    """Accept an address that can be a client's id (Client ID Metadata Document, section 3)."""
    if text and (urlsplit(text).scheme != "https" or urlsplit(text).path in ("", "/")):
        raise ValueError("give an https address with a path")
    return check_address(text) if text else text


_OF_OTHERS = frozenset({"tools", "exclude", "always", "enabled", "timeout_s"})
_OF_LOGINS = frozenset({"client_id", "client_secret_env", "callback_port"})


class McpServerSettings(SettingsSection):
    """``[mcp.servers.NAME]``: a program to start, or the `url` of a server.

    With neither, it has your settings for a server that a project or an editor calls NAME. `env` is
    added to the program's environment, which holds no keys. `headers_env` names the variable with
    the value of each HTTP header, and `client_secret_env` that with the secret of `client_id`, so
    that the file holds no key.
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
    client_id: Annotated[str, AfterValidator(_client_id)] = Field(
        default="", description="Id that the server gave agent-tui, if you registered it there"
    )
    client_secret_env: Annotated[str, AfterValidator(_variable)] = Field(
        default="", description="Environment variable with the secret of client_id"
    )
    callback_port: int = Field(
        default=0,
        ge=0,
        le=65_535,
        description="Port that the browser returns to after a login; 0: any free one",
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
        own = sorted(self.model_fields_set - _OF_OTHERS - {"command", "url"})
        if self.is_of_others and own:
            raise ValueError(f"only with a command or url: {', '.join(own)}")
        logins = sorted(self.model_fields_set & _OF_LOGINS)
        if self.command.strip() and logins:
            raise ValueError(f"only with a url: {', '.join(logins)}")
        if self.client_secret_env and not self.client_id:
            raise ValueError("only with a client_id: client_secret_env")
        return self


class McpSettings(SettingsSection):
    """``[mcp]``: the servers by name, and how long a turn waits for them to start."""

    wait_s: float = Field(
        default=10.0, ge=0, description="Seconds a turn waits, once, for a server to start"
    )
    client_metadata_url: Annotated[str, AfterValidator(_page)] = Field(
        default="",
        description="Address of a page that you host: servers read there what agent-tui is",
    )
    servers: dict[str, McpServerSettings] = Field(
        default_factory=dict, description="Servers by name, such as [mcp.servers.github]"
    )


class McpSection(BaseModel):
    """The section of the settings."""

    mcp: McpSettings = Field(
        default=McpSettings(), description="MCP servers, whose tools the model can call"
    )
