"""``agent-tui models``: lists models; features add verbs for those on this machine."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import cast

from agent_tui.cli.command_parser import CommandParser, subcommand_parser
from agent_tui.cli.key_store import use_stored_keys
from agent_tui.cli.listed_models import BroughtModels
from agent_tui.cli.output import complain, write_json
from agent_tui.cli.plugins import plugins_in_shell
from agent_tui.cli.settings import read_settings
from agent_tui.cli.verbs import AddModelVerb
from agent_tui.commands.core.plugin_kinds import FEATURES, PROVIDERS
from agent_tui.commands.core.plugins import Plugins
from agent_tui.feature import load_object
from agent_tui.features.models.listing import ModelOverview, print_overview
from agent_tui.safe_text import strip_control_characters

_DESCRIPTION = "List models, and download, add or remove local ones."


def build_parser() -> CommandParser:
    """The parser of ``agent-tui models``."""
    parser = subcommand_parser("models", _DESCRIPTION)
    add_verb = parser.verb_adder()

    def add(name: str, command: Callable[[argparse.Namespace], int], summary: str) -> CommandParser:
        made = add_verb(name, summary)
        made.set_defaults(command=command)
        return made

    listing = add("list", _list, "list the models you can choose (the default)")
    listing.add_argument(
        "filter", nargs="?", default="", metavar="FILTER", help="list only names with this text"
    )
    listing.add_argument("--all", action="store_true", dest="is_all", help="list every model")
    listing.add_json()
    for feature in plugins_in_shell(FEATURES).of(FEATURES):
        for brought in feature.verbs.get("models", ()):
            cast("Callable[[AddModelVerb], None]", load_object(brought))(add)
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
    return cast("Callable[[argparse.Namespace], int]", arguments.command)(arguments)


def _list(arguments: argparse.Namespace) -> int:
    from agent_tui.providers.catalog import ModelCatalog
    from agent_tui.providers.registry import providers_with

    wanted = cast(str, arguments.filter)
    unread_keys = use_stored_keys().problems
    plugins = plugins_in_shell(PROVIDERS)
    for problem in plugins.problems:
        complain(problem)
    brought = tuple(_brought(plugins))
    own = providers_with(plugins.of(PROVIDERS))
    found = asyncio.run(ModelCatalog(read_settings(None), os.environ, own=own).list_models())
    sections = [section for one in brought for section in one.sections]
    overview = ModelOverview.of(sections, found, wanted)
    if arguments.is_json:
        write_json(overview.to_json())
    else:
        advice = " ".join(one.advice for one in brought)
        print_overview(overview, is_whole=bool(wanted or arguments.is_all), advice=advice)
        notes = (one.note for one in brought) if any(s.models for s in overview.brought) else ()
        for note in filter(None, notes):
            print(f"\n{note}")
    problems = (problem for one in brought for problem in one.problems)
    for problem in (*problems, *unread_keys):
        print(f"warning: {strip_control_characters(problem)}", file=sys.stderr)
    return 0


def _brought(plugins: Plugins) -> Iterator[BroughtModels]:
    for name in (name for one in plugins.of(FEATURES) for name in one.listed_models):
        yield cast("Callable[[], BroughtModels]", load_object(name))()
