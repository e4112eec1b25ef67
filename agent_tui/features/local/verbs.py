"""``agent-tui models pull``, ``add``, ``remove`` and ``path``; and what ``list`` says of them."""

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agent_tui import paths
from agent_tui.cli.listed_models import BroughtModels, ListedModel, ModelSection, window_text
from agent_tui.cli.output import ask, write_json, write_text
from agent_tui.cli.verbs import AddModelVerb
from agent_tui.commands.core.short_words import size_text
from agent_tui.errors import ModelFileError
from agent_tui.features.local.fetch import fetch
from agent_tui.features.local.library import ModelLibrary
from agent_tui.features.local.model import OFFERS, LocalModel, Offer, can_run_models
from agent_tui.installation import install_command
from agent_tui.safe_text import strip_control_characters


def add_verbs(add: AddModelVerb) -> None:
    """Add the subcommands with `add`."""
    pull = add("pull", _pull, "download a model")
    offered = ", ".join(offer.name for offer in OFFERS)
    pull.add_argument("what", metavar="NAME|URL", help=f"{offered}, or the URL of a .gguf file")
    pull.add_argument(
        "--sha256", default="", metavar="HASH", help="SHA-256 that the file must have"
    )
    adding = add("add", _add, "add a .gguf file without copying it")
    adding.add_argument("path", type=Path, metavar="PATH", help=".gguf file")
    remove = add("remove", _remove, "remove a model, and its file if it was downloaded")
    remove.add_argument("name", metavar="NAME", help="model to remove")
    path = add("path", _path, "print the folder of the models, or the file of one")
    path.add_argument("name", nargs="?", default="", metavar="NAME", help="model")
    for one in (pull, adding):
        one.add_argument("--name", default="", metavar="NAME", help="name to give the model")
    for one in (pull, remove):
        one.add_argument("--yes", "-y", action="store_true", dest="is_sure", help="do not ask")
    for one in (pull, adding):
        one.add_json()


def list_local() -> BroughtModels:
    """The models on this machine, and those that can be downloaded.

    Raises:
        ModelFileError: The folder of the models cannot be read.
    """
    listing = _library().listing()
    here = {model.sha256 for model in listing.models if model.is_there}
    return BroughtModels(
        (
            ModelSection("On this machine", "local", tuple(map(_listed, listing.models))),
            ModelSection(
                "To download",
                "offers",
                tuple(_offered(offer, is_here=offer.sha256 in here) for offer in OFFERS),
            ),
        ),
        note="" if can_run_models() else f"To run local models: {install_command('local')}",
        advice="To download one: agent-tui models pull NAME",
        problems=listing.problems,
    )


def _listed(model: LocalModel) -> ListedModel:
    state = "" if model.is_there else f"file is missing: {model.path}"
    name = f"local/{model.name}"
    size, window = size_text(model.size_bytes), window_text(model.trained_window)
    cells = (name, size, window, model.licence, state or model.title)
    return ListedModel(cells, _json(model), (name, model.title))


def _offered(offer: Offer, *, is_here: bool) -> ListedModel:
    command = f"agent-tui models pull {offer.name}"
    size, window = size_text(offer.download_bytes), window_text(offer.trained_window)
    cells = (command, size, window, offer.licence, f"{offer.title}: {offer.summary}")
    of_wheel = ("requirement", "member", "wheel_sha256")
    shown = {name: value for name, value in asdict(offer).items() if name not in of_wheel}
    as_json = {**shown, "source": f"pypi:{offer.requirement}", "is_here": is_here}
    return ListedModel(() if is_here else cells, as_json, (offer.name, offer.title))


def _json(model: LocalModel) -> dict[str, JsonValue]:
    """A model on this machine as JSON: size in bytes, window in tokens."""
    return {
        **asdict(model),
        "model": f"local/{model.name}",
        "path": str(model.path).encode("utf-8", "replace").decode(),
        "is_there": model.is_there,
    }


def _library() -> ModelLibrary:
    return ModelLibrary(paths.models_dir())


def _pull(arguments: argparse.Namespace) -> int:
    model = fetch(
        _library(),
        cast(str, arguments.what),
        name=cast(str, arguments.name),
        sha256=cast(str, arguments.sha256),
        is_sure=bool(arguments.is_sure),
    )
    if model is None:
        return 130
    return _present(model, "Downloaded", is_json=bool(arguments.is_json))


def _add(arguments: argparse.Namespace) -> int:
    model = _library().add(cast(Path, arguments.path), cast(str, arguments.name))
    return _present(model, "Added", is_json=bool(arguments.is_json))


def _remove(arguments: argparse.Namespace) -> int:
    name, library = _bare(arguments), _library()
    model = next((model for model in library.models() if model.name == name), None)
    if model is not None and model.is_ours and not arguments.is_sure:
        question = f"Delete {model.path} ({size_text(model.size_bytes)})?"
        if not ask(question, is_yes_usual=False):
            return 130
    model = library.remove(name)
    kept = "" if model.is_ours else f" Its file is kept: {model.path}"
    print(strip_control_characters(f"Removed {model.name}.{kept}"))
    return 0


def _path(arguments: argparse.Namespace) -> int:
    name, library = _bare(arguments), _library()
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
        write_json(_json(model))
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
