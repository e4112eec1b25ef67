"""Which hosts a command connects to, by its text."""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from agent_tui.permissions.registries import bundle_fetched_by
from agent_tui.permissions.shell.parts import ShellParts, split_command
from agent_tui.permissions.shell.words import CommandPart

_CLIENT_NAMES = """
    curl wget ssh scp sftp ftp telnet nc rsync ping dig nslookup glab aws gcloud az kubectl helm
    terraform twine brew apt apt-get
"""
_CLIENTS = frozenset(_CLIENT_NAMES.split())
"""Programs that are of little use without a network, beside those of `bundle_fetched_by`."""

_GIT_FETCHING = re.compile(
    r"git (?:push|pull|fetch|clone|ls-remote|submodule update|remote update)\b"
)
_REMOTE = re.compile(
    r"(?<![a-z0-9+.-])(?:[a-z][a-z0-9+.-]*://(?:[^/@\s]*@)?|git@)([\w.-]+\.[a-z]+)", re.IGNORECASE
)
_URL = re.compile(r"https?://[^\s\"'<>|]+", re.IGNORECASE)
_MOST_HOSTS = 3


class NamedHost(NamedTuple):
    """A host (lowercase) and a port that a command names."""

    host: str
    port: int


def network_reason(parts: ShellParts) -> str:
    """That a command needs the network, and the hosts it names; empty if it is not known to."""
    lines = [part.command_line for part in parts.commands]
    hosts = dict.fromkeys(host for line in lines for host in _REMOTE.findall(line))
    if hosts:
        return f"network: {', '.join(list(hosts)[:_MOST_HOSTS])}"
    return "network" if any(map(_is_client, parts.commands)) else ""


def named_hosts(command: str) -> tuple[NamedHost, ...]:
    """The hosts to which `command` will connect: of its URLs, and one of each bundle it needs.

    Only of programs that are known to connect: an URL in a commit's message is none. Empty for a
    command that cannot be read.
    """
    parts = [part for part in split_command(command).commands if _is_client(part)]
    return tuple(dict.fromkeys(host for part in parts for host in _hosts_of(part)))


def _hosts_of(part: CommandPart) -> Iterator[NamedHost]:
    for word in part.arguments:
        for url in _URL.findall(word.value or ""):
            if (named := _host_of_url(url)) is not None:
                yield named
    if (bundle := bundle_fetched_by(part.command_line)) is not None:
        yield NamedHost(bundle.hosts[0], 443)


def _host_of_url(url: str) -> NamedHost | None:
    try:
        found = urlsplit(url)
        port = found.port or (80 if found.scheme.casefold() == "http" else 443)
    except ValueError:  # a port that is no number
        return None
    return NamedHost(found.hostname, port) if found.hostname else None


def _is_client(part: CommandPart) -> bool:
    line = part.command_line
    if part.program in _CLIENTS or _GIT_FETCHING.match(line):
        return True
    return bundle_fetched_by(line) is not None
