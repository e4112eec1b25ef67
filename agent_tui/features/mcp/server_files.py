"""The MCP servers defined by the settings, an editor, or a trusted project."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agent_tui.agent.consent import ConsentFile
from agent_tui.features.mcp.settings import McpServerSettings
from agent_tui.features.mcp.sources import FoundServer, FoundServers, as_wanted, spec_from_settings
from agent_tui.messages import JsonObject
from agent_tui.permissions.project_files import server_files
from agent_tui.permissions.trust import FolderTrust
from agent_tui.regular_files import open_regular_file
from agent_tui.tools.server_spec import ServerSpec, check_showable, name_problem

_MAX_FILE_BYTES = 200_000
_MAX_SERVERS = 32


class ServerFiles:
    """The `ServerSources` that reads the settings and the project's files.

    Args:
        own: The servers of the user's settings, and settings for others.
        own_source: The file of those settings, for messages.
        trust: Says whether a project's file may be opened.
        consent: Stores the user's answers about servers of a project or an editor.
        of_editor: The servers that an editor names for its session.
    """

    def __init__(
        self,
        own: Mapping[str, McpServerSettings],
        own_source: Path,
        trust: FolderTrust,
        consent: ConsentFile,
        of_editor: Sequence[ServerSpec] = (),
    ) -> None:
        self._own = own
        self._own_source = own_source
        self._trust = trust
        self._consent = consent
        self._of_editor = of_editor

    def find(self, cwd: Path) -> FoundServers:
        """The servers for work in `cwd`: the user's own first, then the editor's. Reads files."""
        found: dict[str, FoundServer] = {}
        problems: list[str] = []
        for name, settings in self._own.items():
            if why := name_problem(name):
                problems.append(f"{self._own_source}: mcp.servers.{name} ignored: {why}.")
            elif not settings.is_of_others:
                found[name] = FoundServer(spec_from_settings(name, settings, str(self._own_source)))
        others = list(self._of_editor)
        for file in reversed(server_files(cwd)):  # the nearest file first
            if self._trust.may_obey(file):
                specs, wrong = read_server_file(file)
                problems += wrong
                others += specs
        for spec in others:
            if spec.name in found:
                problems.append(
                    f"{spec.source}: server {spec.name} ignored: {found[spec.name].spec.source} "
                    "already defines it."
                )
            else:
                wanted = self._own.get(spec.name)
                spec = spec if wanted is None else as_wanted(spec, wanted)
                found[spec.name] = FoundServer(spec, self._consent.is_allowed(spec.fingerprint))
        return FoundServers(tuple(found.values()), tuple(problems))

    def answer(self, spec: ServerSpec, *, is_allowed: bool) -> None:
        """Store the user's answer about a server of a project or an editor.

        Raises:
            ConfigError: It cannot be kept; it holds for this run.
        """
        self._consent.keep(spec.fingerprint, is_allowed=is_allowed)


def read_server_file(file: Path) -> tuple[tuple[ServerSpec, ...], tuple[str, ...]]:
    """The servers that a ``.mcp.json`` defines, and what is wrong with others there."""
    try:
        with open_regular_file(file) as opened:
            content = opened.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            return (), (f"{file}: not read: it is larger than {_MAX_FILE_BYTES // 1_000} KB.",)
        value = cast("JsonValue", json.loads(content.decode("utf-8-sig")))
    except OSError as error:
        return (), (f"{file} cannot be read: {error.strerror}.",)
    except (ValueError, RecursionError) as error:
        return (), (f"{file} is not valid JSON: {error}.",)
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        return (), (f'{file} defines no servers: "mcpServers" is missing.',)
    specs: list[ServerSpec] = []
    problems = [f"{file}: only the first {_MAX_SERVERS} servers are used."] * (
        len(servers) > _MAX_SERVERS
    )
    for name, given in list(servers.items())[:_MAX_SERVERS]:
        try:
            specs.append(_spec(file, name, given))
        except ValueError as error:
            problems.append(f"{file}: server {name[:40]!r} ignored: {error}.")
    return tuple(specs), tuple(problems)


def _spec(file: Path, name: str, given: JsonValue) -> ServerSpec:
    """Parse one server; keys of other programs are skipped.

    Raises:
        ValueError: It cannot be used; says why.
    """
    if why := name_problem(name):
        raise ValueError(why)
    if not isinstance(given, dict):
        raise ValueError("it is not an object")
    command, url = given.get("command", ""), given.get("url", "")
    if not isinstance(command, str) or not isinstance(url, str):
        raise ValueError("command and url must be strings")
    if bool(command.strip()) == bool(url.strip()):
        raise ValueError("it must have either a command or a url")
    if given.get("type") == "sse":
        raise ValueError("it uses the old sse transport; only stdio and http are supported")
    spec = ServerSpec(
        name=name,
        source=str(file),
        argv=(command, *_texts(given, "args")) if command.strip() else (),
        env=_texts_at(given, "env"),
        url=url,
        headers=_texts_at(given, "headers"),
        cwd=file.parent,
        origin="project",
        is_enabled=given.get("disabled") is not True,
    )
    return check_showable(spec)


def _texts(given: JsonObject, key: str) -> tuple[str, ...]:
    values = given.get(key, [])
    texts = (
        [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
    )
    if not isinstance(values, list) or len(texts) < len(values):
        raise ValueError(f"{key} must be a list of strings")
    return tuple(texts)


def _texts_at(given: JsonObject, key: str) -> dict[str, str]:
    values = given.get(key, {})
    if not isinstance(values, dict):
        raise ValueError(f"{key} must be an object of strings")
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    if len(texts) < len(values):
        raise ValueError(f"{key} must be an object of strings")
    return texts
