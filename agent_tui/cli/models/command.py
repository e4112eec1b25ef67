"""``agent-tui models``: lists models, and pulls, adds and removes those on this machine."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias, cast

from agent_tui import paths
from agent_tui.cli.command_parser import CommandParser, subcommand_parser
from agent_tui.cli.key_store import use_stored_keys
from agent_tui.cli.models.listing import ModelOverview, model_json, print_overview
from agent_tui.cli.models.pull import fetch
from agent_tui.cli.output import ask, complain, write_json, write_text
from agent_tui.cli.settings import read_settings
from agent_tui.errors import ModelFileError
from agent_tui.installation import install_command
from agent_tui.local_models.library import ModelLibrary
from agent_tui.local_models.model import OFFERS, LocalModel, can_run_models, size_text
from agent_tui.safe_text import strip_control_characters

_Command: TypeAlias = Callable[[argparse.Namespace, ModelLibrary], int]
_DESCRIPTION = "List models, and download, add or remove local ones."


def build_parser() -> CommandParser:
    """The parser of ``agent-tui models``."""
    parser = subcommand_parser("models", _DESCRIPTION)
    add_verb = parser.verb_adder()

    def verb(name: str, summary: str, command: _Command) -> CommandParser:
        made = add_verb(name, summary)
        made.set_defaults(command=command)
        return made

    listing = verb("list", "list the models you can choose (the default)", _list)
    listing.add_argument(
        "filter", nargs="?", default="", metavar="FILTER", help="list only names with this text"
    )
    listing.add_argument("--all", action="store_true", dest="is_all", help="list every model")
    pull = verb("pull", "download a model", _pull)
    offered = ", ".join(offer.name for offer in OFFERS)
    pull.add_argument("what", metavar="NAME|URL", help=f"{offered}, or the URL of a .gguf file")
    pull.add_argument(
        "--sha256", default="", metavar="HASH", help="SHA-256 that the file must have"
    )
    add = verb("add", "add a .gguf file without copying it", _add)
    add.add_argument("path", type=Path, metavar="PATH", help=".gguf file")
    remove = verb("remove", "remove a model, and its file if it was downloaded", _remove)
    remove.add_argument("name", metavar="NAME", help="model to remove")
    path = verb("path", "print the folder of the models, or the file of one", _path)
    path.add_argument("name", nargs="?", default="", metavar="NAME", help="model")
    for one in (pull, add):
        one.add_argument("--name", default="", metavar="NAME", help="name to give the model")
    for one in (pull, remove):
        one.add_argument("--yes", "-y", action="store_true", dest="is_sure", help="do not ask")
    for one in (listing, pull, add):
        one.add_json()
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui models`` with the arguments after that word; returns the exit code.

    Raises:
        ModelFileError: A model cannot be downloaded, read, named or removed.
        ConfigError: The settings cannot be used.
    """
    parser = build_parser()
    given = list(argv)
    if not given or given[0] not in (*parser.verbs, "-h", "--help"):
        given.insert(0, "list")
    arguments = parser.parse_args(given)
    command = cast(_Command, arguments.command)
    return command(arguments, ModelLibrary(paths.models_dir()))


def _list(arguments: argparse.Namespace, library: ModelLibrary) -> int:
    from agent_tui.cli.plugins import plugins_in_shell
    from agent_tui.commands.core.plugin_kinds import PROVIDERS
    from agent_tui.providers.catalog import ModelCatalog
    from agent_tui.providers.registry import providers_with

    wanted = cast(str, arguments.filter)
    listing = library.listing()
    unread_keys = use_stored_keys().problems
    plugins = plugins_in_shell(PROVIDERS)
    for problem in plugins.problems:
        complain(problem)
    own = providers_with(plugins.of(PROVIDERS))
    found = asyncio.run(ModelCatalog(read_settings(None), os.environ, own=own).list_models())
    overview = ModelOverview.of(listing.models, OFFERS, found, wanted)
    if arguments.is_json:
        write_json(overview.to_json())
    else:
        print_overview(overview, is_whole=bool(wanted or arguments.is_all))
        if (overview.local or overview.offers) and not can_run_models():
            print(f"\nTo run local models: {install_command('local')}")
    for problem in (*listing.problems, *unread_keys):
        print(f"warning: {strip_control_characters(problem)}", file=sys.stderr)
    return 0


def _pull(arguments: argparse.Namespace, library: ModelLibrary) -> int:
    model = fetch(
        library,
        cast(str, arguments.what),
        name=cast(str, arguments.name),
        sha256=cast(str, arguments.sha256),
        is_sure=bool(arguments.is_sure),
    )
    if model is None:
        return 130
    return _present(model, "Downloaded", is_json=bool(arguments.is_json))


def _add(arguments: argparse.Namespace, library: ModelLibrary) -> int:
    model = library.add(cast(Path, arguments.path), cast(str, arguments.name))
    return _present(model, "Added", is_json=bool(arguments.is_json))


def _remove(arguments: argparse.Namespace, library: ModelLibrary) -> int:
    name = _bare(arguments)
    model = next((model for model in library.models() if model.name == name), None)
    if model is not None and model.is_ours and not arguments.is_sure:
        question = f"Delete {model.path} ({size_text(model.size_bytes)})?"
        if not ask(question, is_yes_usual=False):
            return 130
    model = library.remove(name)
    kept = "" if model.is_ours else f" Its file is kept: {model.path}"
    print(strip_control_characters(f"Removed {model.name}.{kept}"))
    return 0


def _path(arguments: argparse.Namespace, library: ModelLibrary) -> int:
    name = _bare(arguments)
    if not name:
        write_text(f"{library.root}\n")
        return 0
    model = library.find(name)
    if model is None:
        raise ModelFileError(f"No local model {name!r}.", _SEE_ALL)
    if not model.is_there:
        raise ModelFileError(f"The file of {name} is missing: {model.path}.", _SEE_ALL)
    sys.stdout.flush()
    sys.stdout.buffer.write(os.fsencode(model.path) + b"\n")
    return 0


def _bare(arguments: argparse.Namespace) -> str:
    """The name on the command line, without a leading ``local/``."""
    return cast(str, arguments.name).removeprefix("local/")


def _present(model: LocalModel, what: str, *, is_json: bool) -> int:
    if is_json:
        write_json(model_json(model))
        return 0
    lines = [
        f"{what} {model.name}: {model.path} ({size_text(model.size_bytes)})",
        f"To use it: agent-tui -m local/{model.name}",
    ]
    if not model.has_chat_template:
        lines.append("It has no chat template, so it may continue your text instead of answering.")
    if not can_run_models():
        lines.insert(1, f"First install: {install_command('local')}")
    write_text(strip_control_characters("\n".join(lines)) + "\n")
    return 0


_SEE_ALL = "See agent-tui models list."
