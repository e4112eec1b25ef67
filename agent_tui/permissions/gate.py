"""Predicts from a command's text which sandbox limits it would hit. Explains; decides nothing."""

import re
from collections.abc import Iterator
from pathlib import Path

from agent_tui.permissions.command_judge import CommandFacts
from agent_tui.permissions.protected_paths import ProtectedPaths
from agent_tui.permissions.shell.parts import ShellParts
from agent_tui.permissions.shell.words import CommandPart

_CLIENT_NAMES = """
    curl wget ssh scp sftp ftp telnet nc rsync ping dig nslookup gh glab aws gcloud az kubectl helm
    terraform pip pip3 npx bunx pipx uvx twine brew apt apt-get
"""
_CLIENTS = frozenset(_CLIENT_NAMES.split())
"""Programs that are of little use without a network."""
_FETCHING = re.compile(
    r"git (?:push|pull|fetch|clone|ls-remote|submodule update|remote update)\b"
    r"|(?:npm|pnpm|yarn|bun|uv|poetry|cargo|go|gem|bundle|composer|docker|podman) (?:\S+ )?"
    r"(?:install|ci|add|get|update|publish|push|pull|login|sync|download|fetch)\b"
)
_REMOTE = re.compile(
    r"(?<![a-z0-9+.-])(?:[a-z][a-z0-9+.-]*://(?:[^/@\s]*@)?|git@)([\w.-]+\.[a-z]+)", re.IGNORECASE
)
_SERVICES = {"docker": "docker", "podman": "docker", "systemctl": "systemd", "sudo": "root"}
_MOST_HOSTS = 3


def meets(parts: ShellParts, facts: CommandFacts, guard: ProtectedPaths) -> tuple[str, ...]:
    """Short phrases for the user: what the command needs that the sandbox denies."""
    return tuple(dict.fromkeys(_meets(parts, facts, guard)))


def _meets(parts: ShellParts, facts: CommandFacts, guard: ProtectedPaths) -> Iterator[str]:
    if network := _network(parts):
        yield network
    for part in parts.commands:
        if service := _SERVICES.get(_name(part)):
            yield service
    for path in facts.written:
        if not guard.may_write_freely(path):
            yield f"writes {path}"
    may_write = bool(facts.changing)
    yield from (found for path in facts.touched if (found := _path(path, guard, may_write)))


def _path(path: Path, guard: ProtectedPaths, may_write: bool) -> str:
    if guard.why_unseen(path):
        return f"files outside the folder: {path}"
    if guard.why_reading_asks(path):
        return f"keys: {path}"
    if may_write and guard.is_inside(path) and guard.why_writing_asks(path):
        return f"protected files: {path}"
    return ""


def _network(parts: ShellParts) -> str:
    texts = [f"{_name(part)} {_words(part)}" for part in parts.commands]
    hosts = dict.fromkeys(host for text in texts for host in _REMOTE.findall(text))
    if hosts:
        return f"network: {', '.join(list(hosts)[:_MOST_HOSTS])}"
    is_client = any(_name(part) in _CLIENTS for part in parts.commands)
    return "network" if is_client or any(map(_FETCHING.match, texts)) else ""


def _name(part: CommandPart) -> str:
    return part.name.rpartition("/")[2]


def _words(part: CommandPart) -> str:
    return " ".join(word.value or "" for word in part.arguments)
