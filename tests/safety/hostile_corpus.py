"""The hostile lines below ``hostile/``: what they are, and what holds each of them.

Each file is a list of classes. `commands` holds one command a line, `texts` those with characters
a line cannot show, `very_long` long ones by their repeated piece. The text of a line holds it if
it is allowed in none of the class's `modes` (all by default), or, with `must: deny`, is denied. In
the other modes its text says nothing, and `held_by` names what holds it, one of `HOLDERS`. What is
`of` ``writes`` or ``reads`` names files instead of commands, what is of ``tools`` tools that nobody
knows. `files` and `remove` change the workspace first, `~` is a home folder of its own.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

import yaml

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.tools.base import Intent
from tests.safety.corpus import MODES, make_workspace

Kind: TypeAlias = Literal["execute", "write", "read", "outside"]
_KINDS: dict[str, Kind] = {"writes": "write", "reads": "read", "tools": "outside"}
HOLDERS = (
    "writes only in the folder",
    "git's folder is read-only",
    "files that programs act on are put aside",
    "the home folder is not there",
    ".env is hidden",
    "no network",
    "other programs are out of reach",
    "no rights over the machine",
    "undo brings it back",
    "your rule or mode",
)
"""What holds a line whose text is allowed: all but the last two are the sandbox's."""
_FOLDER = Path(__file__).with_name("hostile")


@dataclass(frozen=True, slots=True)
class HostileClass:
    """Lines that must be held in the same modes, with the rules in force and the files there.

    In `modes` their text holds them; in the others `held_by`, one of `HOLDERS`.
    """

    name: str
    file: str
    kind: Kind
    lines: tuple[str, ...]
    modes: tuple[PermissionMode, ...]
    held_by: str
    must: Literal["ask", "deny"]
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    remove: tuple[str, ...]


def hostile_classes() -> Iterator[HostileClass]:
    """Every class of every file."""
    for file in sorted(_FOLDER.glob("*.yaml")):
        for given in yaml.safe_load(file.read_text("utf-8")):
            yield HostileClass(
                name=given["class"],
                file=file.stem,
                kind=_KINDS.get(given.get("of", "commands"), "execute"),
                lines=tuple(_lines(given)),
                modes=tuple(cast(Sequence[PermissionMode], given.get("modes", MODES))),
                held_by=given.get("held_by", ""),
                must=given.get("must", "ask"),
                allow=tuple(given.get("allow", ())),
                deny=tuple(given.get("deny", ())),
                files=tuple(given.get("files", {}).items()),
                remove=tuple(given.get("remove", ())),
            )


def make_hostile_workspace(folder: Path, hostile: HostileClass) -> Path:
    """The workspace of `hostile`, with a home folder beside it."""
    workspace = make_workspace(folder)
    for name in (".env.local", "server.pem", "id_rsa", "names.txt"):
        (workspace / name).write_text("KEY=1\n")
    for name in hostile.remove:
        shutil.rmtree(workspace / name)
    for name, text in hostile.files:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_bytes(text.encode("latin-1"))
    (folder / "home").mkdir()
    return workspace


def let_through(hostile: HostileClass, workspace: Path) -> list[str]:
    """Mode and line of whatever its text does not hold."""
    return [
        f"{mode}: {line[:200]!r}"
        for mode, line, decision in _judged(hostile, workspace, hostile.modes)
        if decision == "allow" or (hostile.must == "deny" and decision == "ask")
    ]


def known_by_text(hostile: HostileClass, workspace: Path) -> list[str]:
    """Mode and line of whatever its text holds, though the class says that something else does."""
    others: list[PermissionMode] = [mode for mode in MODES if mode not in hostile.modes]
    return [
        f"{mode}: {line[:200]!r}"
        for mode, line, decision in _judged(hostile, workspace, others)
        if decision != "allow"
    ]


def held_table() -> str:
    """What holds how many lines of each file, in Markdown."""
    counts = {holder: Counter[str]() for holder in ("", *HOLDERS)}
    for hostile in hostile_classes():
        counts[hostile.held_by][hostile.file] += len(hostile.lines)
    files = sorted({file for counted in counts.values() for file in counted})
    rows = [
        (holder or "its text, in every mode", *(counted[file] or "" for file in files))
        for holder, counted in counts.items()
    ]
    head = ("held by", *files), ("---", *["--:"] * len(files))
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in (*head, *rows))


def _judged(
    hostile: HostileClass, workspace: Path, modes: Sequence[PermissionMode]
) -> Iterator[tuple[PermissionMode, str, str]]:
    """Mode, line and decision."""
    for mode in modes:
        permissions = PermissionEngine(
            mode=mode,
            rules=PermissionSettings(allow=hostile.allow, deny=hostile.deny),
            workspace=workspace,
            project_rules_file=workspace.parent / "permissions.toml",
            own_folders=(workspace.parent / "own",),
            scratch_folders=(),
        )
        assert not permissions.book.problems
        for line in hostile.lines:
            tool, intent = _intent(hostile.kind, line, workspace)
            yield mode, line, permissions.judge(tool, intent).decision


def _intent(kind: Kind, line: str, workspace: Path) -> tuple[str, Intent]:
    match kind:
        case "execute":
            return "bash", Intent(title=line, access=kind, command=line)
        case "outside":
            return line, Intent(title=line, access=kind)
        case _:
            path = (workspace / Path(line).expanduser()).resolve()
            return kind, Intent(title=line, access=kind, paths=(path,))


def _lines(given: dict[str, object]) -> Iterator[str]:
    yield from filter(None, map(str.strip, str(given.get("commands", "")).split("\n")))
    yield from cast(Sequence[str], given.get("texts", ()))
    for long in cast(Sequence[dict[str, str]], given.get("very_long", ())):
        yield long["head"] + long["filler"] * int(long["times"]) + long["tail"]


if __name__ == "__main__":
    print(held_table())
