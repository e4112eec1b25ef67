"""``agent-tui mcp``: lists MCP servers, adds them to the user's settings, and logs in to them."""

import argparse
import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import cast

from pydantic import JsonValue, ValidationError

from agent_tui.cli.browser import show_page
from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.folders import load_trust, present_folder
from agent_tui.cli.key_store import read_key
from agent_tui.cli.output import complain, write_json, write_text
from agent_tui.cli.settings import user_config_path
from agent_tui.config.loading import load_settings
from agent_tui.config.specs import SettingSpec
from agent_tui.config.user_file import UserConfigFile
from agent_tui.errors import ConfigError, UsageError
from agent_tui.features.mcp.login import log_in
from agent_tui.features.mcp.oauth import Registration, token_file
from agent_tui.features.mcp.services import server_files, tokens_folder
from agent_tui.features.mcp.settings import McpSection, McpServerSettings
from agent_tui.features.mcp.sources import FoundServer, FoundServers, expand_variables
from agent_tui.messages import JsonObject
from agent_tui.providers.keys import secret_variables
from agent_tui.safe_text import safe_text
from agent_tui.secret_text import has_key
from agent_tui.tools.server_spec import ServerSpec, name_problem

_DESCRIPTION = """\
Manage MCP servers: programs and URLs whose tools the model can call. Your
servers are in config.toml. Those in a trusted project's .mcp.json start only
after you allow them."""
_ADD = """\
examples:
  agent-tui mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  agent-tui mcp add --env 'TOKEN=${TOKEN}' tracker -- tracker-mcp
  agent-tui mcp add --url https://example.com/mcp --header Authorization=AUTH x
  agent-tui mcp add --url https://example.com/mcp --client-id 12.34 chat"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui mcp``."""
    parser = subcommand_parser("mcp", _DESCRIPTION)
    add = parser.verb_adder()
    listing = add("list", "list the servers for the current folder")
    listing.add_json()
    adding = add("add", "add a server to config.toml", _ADD)
    adding.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="environment variable; repeatable",
    )
    adding.add_argument("--url", type=_filled, help="URL of the server, instead of a command")
    adding.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="HEADER=VARIABLE",
        dest="headers",
        help="HTTP header and the environment variable that holds its value; repeatable",
    )
    adding.add_argument(
        "--client-id", type=_filled, metavar="ID", help="id of agent-tui, registered there by you"
    )
    adding.add_argument(
        "--client-secret",
        type=_filled,
        metavar="VARIABLE",
        help="environment variable that holds the secret of that id",
    )
    adding.add_argument(
        "--callback-port",
        type=int,
        default=0,
        metavar="PORT",
        help="port on this machine that the browser returns to after a login",
    )
    adding.add_argument("name", metavar="NAME", help="name for the server")
    adding.add_argument(
        "command", nargs="*", metavar="COMMAND", help="command line of the server, after --"
    )
    for verb, about in (
        ("remove", "remove a server from config.toml"),
        ("allow", "allow one of the project's servers to start"),
        ("refuse", "refuse to start one of the project's servers"),
        ("login", "log in to a server with a URL, in the browser"),
        ("logout", "delete the tokens of a login"),
    ):
        add(verb, about).add_argument("name", metavar="NAME", help="server")
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui mcp`` with the arguments after that word; returns the exit code.

    Raises:
        UsageError: The arguments do not describe a server.
        ConfigError: There is no such server, or the settings cannot be written.
    """
    arguments = build_parser().parse_args(list(argv))
    match arguments.verb:
        case "list":
            _list(is_json=arguments.is_json)
        case "add":
            _add(arguments)
        case "remove":
            _remove(arguments.name)
        case "login" | "logout":
            _log_in_or_out(arguments.name, is_in=arguments.verb == "login")
        case _:
            _decide(arguments.name, is_allowed=arguments.verb == "allow")
    return 0


def _find_servers() -> FoundServers:
    settings = load_settings(user_config_path(), os.environ).settings
    return server_files(settings, load_trust()).find(present_folder())


def _list(*, is_json: bool) -> None:
    found = _find_servers()
    for problem in found.problems:
        complain(problem)
    if is_json:
        write_json([_as_json(one) for one in found.servers])
        return
    width = max((len(one.spec.name) for one in found.servers), default=0)
    lines: list[str] = []
    for one in found.servers:
        spec = one.spec
        line = f"{spec.name:{width}}  {_word(one):9}  {spec.command_line}  ({spec.source})"
        lines.append(safe_text(line, keep_newlines=False))
    none = "No MCP servers. To add one, see agent-tui mcp add --help."
    write_text("\n".join(lines or [none]) + "\n")


def _word(one: FoundServer) -> str:
    if not one.spec.is_enabled:
        return "off"
    return "not asked" if one.is_allowed is None else "on" if one.is_allowed else "refused"


def _as_json(one: FoundServer) -> JsonObject:
    spec = one.spec
    command: list[JsonValue] = list(spec.argv)
    return {
        "name": spec.name,
        "state": _word(one),
        "command": command,
        "url": spec.url,
        "source": spec.source,
    }


def _add(arguments: argparse.Namespace) -> None:
    name = cast(str, arguments.name)
    if why := name_problem(name):
        raise UsageError(f"{name!r} cannot be the name of a server: {why}.")
    command, url = cast("list[str]", arguments.command), cast("str | None", arguments.url)
    if not url and len(command) == 1 and command[0].startswith(("http://", "https://")):
        command, url = [], command[0]
    settings: JsonObject = {"url": url} if url else {}
    if command:
        settings["command"] = command[0]
    if command[1:]:
        settings["args"] = list(command[1:])
    if env := _pairs(arguments.env, "--env"):
        settings["env"] = dict(env)
    if headers := _pairs(arguments.headers, "--header"):
        settings["headers_env"] = dict(headers)
    own: JsonObject = {
        "client_id": cast("str | None", arguments.client_id),
        "client_secret_env": cast("str | None", arguments.client_secret),
        "callback_port": cast(int, arguments.callback_port),
    }
    settings |= {key: value for key, value in own.items() if value}
    given = filter(None, (url, arguments.client_id, arguments.client_secret))
    if any(has_key(text) for text in (*command, *env.values(), *headers.values(), *given)):
        raise UsageError(
            "This looks like a key. Keys do not belong in config.toml.",
            "Put it in a variable: --env 'TOKEN=${TOKEN}', or --header Authorization=VARIABLE.",
        )
    try:
        McpServerSettings.model_validate(settings)
    except ValidationError as error:
        why = "a server needs either a command after -- or a --url"
        if bool(url) != bool(command):
            wrong = error.errors()[0]
            names = (f"{name}: " for name in wrong["loc"])
            why = "".join(names) + wrong["msg"].removeprefix("Value error, ")
        raise UsageError(f"{name}: {why}.", "See agent-tui mcp add --help.") from error
    file = UserConfigFile(user_config_path())
    file.set(_table(name), settings)
    write_text(safe_text(f"Added {name} to {file.path}") + "\n")


def _log_in_or_out(name: str, *, is_in: bool) -> None:
    found = next(
        (one.spec for one in _find_servers().servers if one.spec.name == name and one.is_allowed),
        None,
    )
    if found is None or not found.url:
        raise ConfigError(
            f"No allowed MCP server {name!r} has a URL.",
            "See agent-tui mcp list.",
        )
    url = expand_variables(found.url, os.environ, ())
    tokens = token_file(tokens_folder(), name, url)
    if not is_in:
        tokens.unlink(missing_ok=True)
        write_text(f"Logged out of {name}.\n")
        return
    asyncio.run(log_in(url, tokens, show_page, registration_of(found)))
    write_text(f"Logged in to {name}. If agent-tui runs: /mcp restart {name}\n")


def registration_of(spec: ServerSpec) -> Registration:
    """How the server knows agent-tui; the user's secrets are for their own servers alone.

    Raises:
        AgentTuiError: There is no secret, or it is a key of a model provider.
    """
    settings = load_settings(user_config_path(), os.environ).settings.of(McpSection).mcp
    if spec.is_asked_about:
        return Registration(metadata_url=settings.client_metadata_url)
    server = settings.servers[spec.name]
    variable = server.client_secret_env
    secret = ""
    if variable in secret_variables() or os.environ.get(variable):
        secret = expand_variables(f"${{{variable}}}", os.environ, secret_variables())
    elif variable:
        secret = read_key(variable)
    return Registration(
        server.client_id, secret, settings.client_metadata_url, server.callback_port
    )


def _remove(name: str) -> None:
    file = UserConfigFile(user_config_path())
    if not file.unset(_table(name)):
        raise ConfigError(f"No MCP server {name!r} in {file.path}.", "See agent-tui mcp list.")
    write_text(safe_text(f"Removed {name} from {file.path}") + "\n")


def _decide(name: str, *, is_allowed: bool) -> None:
    for one in _find_servers().servers:
        if one.spec.name == name and one.spec.is_asked_about:
            settings = load_settings(user_config_path(), os.environ).settings
            server_files(settings, load_trust()).answer(one.spec, is_allowed=is_allowed)
            outcome = "Allowed" if is_allowed else "Refused"
            write_text(safe_text(f"{outcome} {name}: {one.spec.command_line}") + "\n")
            return
    raise ConfigError(
        f"No trusted project here has an MCP server {name!r}.",
        "See agent-tui mcp list and agent-tui trust list.",
    )


def _filled(text: str) -> str:
    """The value of an option, which a variable that isn't set in the shell leaves empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def _pairs(given: Sequence[str], option: str) -> Mapping[str, str]:
    pairs: dict[str, str] = {}
    for text in given:
        name, found, value = text.partition("=")
        if not found or not name:
            raise UsageError(f"{option} takes NAME=VALUE, not {text!r}.")
        pairs[name] = value
    return pairs


def _table(name: str) -> SettingSpec:
    """The settings table of the server `name`, for `UserConfigFile`."""
    key = ("mcp", "servers", name)
    return SettingSpec(key, "table", "", (), "", default=None, variable="")
