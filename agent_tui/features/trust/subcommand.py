"""``agent-tui trust``: chooses the folders whose instructions and settings take effect."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.folders import existing_folder, load_trust, present_folder
from agent_tui.cli.output import complain, write_json, write_text
from agent_tui.errors import ConfigError
from agent_tui.permissions.trust import FolderTrust
from agent_tui.safe_text import safe_text

_DESCRIPTION = """\
Manage trusted folders. In a trusted folder and its subfolders, agent-tui reads
AGENTS.md (or CLAUDE.md) and .agent-tui/config.toml, and runs git to see which
files a command changed. PATH defaults to the repository around the current
folder, or to the current folder if there is none."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui trust``."""
    parser = subcommand_parser("trust", _DESCRIPTION)
    add = parser.verb_adder()
    listing = add("list", "list your trust decisions")
    adding = add("add", "trust a folder")
    removing = add("remove", "remove a decision; you are asked again")
    for each in (adding, removing):
        each.add_argument("folder", nargs="?", type=Path, metavar="PATH", help="folder")
    for each in (listing, adding, removing):
        each.add_json()
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui trust`` with the arguments after that word; returns the exit code.

    Raises:
        UsageError: The folder does not exist.
        ConfigError: It cannot be trusted, there is nothing to remove, or writing failed.
    """
    arguments = build_parser().parse_args(list(argv))
    trust = load_trust()
    if problem := trust.problem:
        complain(problem)
    match arguments.verb:
        case "list":
            _list(trust, is_json=arguments.is_json)
        case "add":
            folder = _folder(trust, arguments)
            trust.decide(folder, "trusted")
            _tell(trust, folder, is_json=arguments.is_json)
        case _:
            folder = _folder_to_forget(trust, arguments)
            _forget(trust, folder)
            _tell(trust, folder, is_json=arguments.is_json)
    return 0


def _folder(trust: FolderTrust, arguments: argparse.Namespace) -> Path:
    named = cast("Path | None", arguments.folder)
    return existing_folder(named) if named else trust.folder_to_ask_about(present_folder())


def _folder_to_forget(trust: FolderTrust, arguments: argparse.Namespace) -> Path:
    """The named folder, which may no longer exist."""
    named = cast("Path | None", arguments.folder)
    if named is not None and named.absolute() in trust.list_decisions():
        return named.absolute()
    return _folder(trust, arguments)


def _forget(trust: FolderTrust, folder: Path) -> None:
    if trust.forget(folder):
        return
    if (by := trust.find_deciding_folder(folder)) is not None:
        raise ConfigError(
            f"No decision on {folder} itself: it is {trust.state_of(folder)} because of {by}.",
            f"To remove that decision, run agent-tui trust remove {by}.",
        )
    raise ConfigError(f"No decision on {folder}.", "See agent-tui trust list.")


def _list(trust: FolderTrust, *, is_json: bool) -> None:
    kept = trust.list_decisions()
    if is_json:
        write_json([{"folder": str(folder), "state": state} for folder, state in kept.items()])
        return
    lines = [f"{state:11}  {folder}" for folder, state in kept.items()]
    write_text(safe_text("\n".join(lines or ["No decisions yet."])) + "\n")


def _tell(trust: FolderTrust, folder: Path, *, is_json: bool) -> None:
    state = trust.state_of(folder)
    if is_json:
        write_json({"folder": str(folder), "state": state})
    else:
        write_text(safe_text(f"{folder}: {state}") + "\n")
