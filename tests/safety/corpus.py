"""The commands of ``commands.yaml`` and the workspace they are judged in. They are never run."""

from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import yaml

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.verdict import Verdict
from agent_tui.tools.base import Intent

MODES: tuple[PermissionMode, ...] = ("plan", "ask", "accept-edits", "full")
Kind: TypeAlias = Literal["hostile", "harmless"]
# By libyaml if it is there, which takes a tenth of the time.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FILE = Path(__file__).with_name("commands.yaml")


@dataclass(frozen=True, slots=True)
class Judged:
    """One command with the rules in force and what must be decided in each mode."""

    section: str
    kind: Kind
    command: str
    expected: dict[PermissionMode, str]
    allow: tuple[str, ...]
    deny: tuple[str, ...]


@cache
def read_corpus() -> tuple[Judged, ...]:
    """Every command of the file."""
    return tuple(
        _judged(section, item)
        for section in yaml.load(_FILE.read_text("utf-8"), _LOADER)
        for item in section["commands"]
    )


def _judged(section: dict[str, Any], item: str | dict[str, Any]) -> Judged:
    given = {"command": item} if isinstance(item, str) else item
    return Judged(
        section=section["section"],
        kind=cast(Kind, section["kind"]),
        command=given["command"],
        expected={mode: str({**section["decisions"], **given}[mode]) for mode in MODES},
        allow=tuple(section.get("allow", ())),
        deny=tuple(section.get("deny", ())),
    )


def make_workspace(folder: Path) -> Path:
    """A project with files that hold keys, links and repositories within it."""
    workspace = folder / "project"
    for name in ("src", "sub", ".git", "nested/.git", "private", "dist", "build"):
        (workspace / name).mkdir(parents=True)
    (workspace / "bare" / "objects").mkdir(parents=True)
    (folder / "outside").mkdir()
    for name in ("README.md", "a.txt", "b.txt", "log.txt", "src/app.py", "bare/HEAD", "app.py"):
        (workspace / name).write_text("x\n")
    for name in (".env", "sub/.env", "private/notes.txt"):
        (workspace / name).write_text("KEY=1\n")
    (workspace / "link-env").symlink_to(".env")
    (workspace / "link-dir").symlink_to("sub")
    (workspace / "link-out").symlink_to(folder / "outside")
    (workspace / "link-private").symlink_to("private")
    (workspace / "link-rm").symlink_to("/bin/rm")
    (folder / "outside" / ".ssh").mkdir()
    (folder / "outside" / ".ssh" / "id_rsa").write_text("KEY\n")
    (workspace / "linked").mkdir()
    (workspace / "linked" / "notes").symlink_to(folder / "outside")
    (workspace / "linked" / "key").symlink_to(folder / "outside" / ".ssh" / "id_rsa")
    return workspace


def judge(
    workspace: Path,
    command: str,
    mode: PermissionMode,
    allow: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
) -> Verdict:
    """What the engine says of `command`."""
    intent = Intent(title=command, access="execute", command=command)
    return _engine(workspace, mode, allow, deny).judge("bash", intent)


@lru_cache(maxsize=8)
def _engine(
    workspace: Path, mode: PermissionMode, allow: tuple[str, ...], deny: tuple[str, ...]
) -> PermissionEngine:
    permissions = PermissionEngine(
        mode=mode,
        rules=PermissionSettings(allow=allow, deny=deny),
        workspace=workspace,
        project_rules_file=workspace.parent / "permissions.toml",
        own_folders=(workspace.parent / "own",),
        scratch_folders=(),
    )
    assert not permissions.book.problems
    return permissions
