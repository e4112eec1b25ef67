"""The tokens and the cost of a run, from its session file, and what to install for a run."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from agent_tui._version import __version__
from agent_tui.installation import DISTRIBUTION, Installation, this_installation
from agent_tui.messages import AssistantMessage
from agent_tui.safe_paths import real_path
from agent_tui.sessions.entries import CompactionEntry, Entry, MessageEntry
from agent_tui.sessions.export.formats import export_text, own_formats
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import report_of


@dataclass(frozen=True, slots=True)
class Measured:
    """Counts of one session, including requests for summaries and by helpers.

    Attributes:
        session_id: Its id.
        trajectory: The session in ATIF.
        input_tokens: Tokens sent, including `cached_tokens`.
        cached_tokens: Tokens that the provider read from its cache.
        output_tokens: Tokens received.
        cost_usd: US dollars; None if a price is unknown.
        replies: How many replies of the model the conversation has.
        compactions: How often its context was compacted.
    """

    session_id: str
    trajectory: dict[str, Any]
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: float | None
    replies: int
    compactions: int


def measure_newest(sessions: Path, secrets: Sequence[str] = ()) -> Measured | None:
    """Measure the newest session below `sessions`; None if there is none.

    Args:
        sessions: The folder that ``--session-dir`` named.
        secrets: Values that must not be in the trajectory.

    Raises:
        SessionError: The file cannot be read.
    """
    newest = max(sessions.glob("*/*.jsonl"), key=lambda path: path.name, default=None)
    if newest is None:
        return None
    with SessionLog.open(newest, read_only=True) as log:
        atif = next(known for known in own_formats() if known.name == "atif")
        trajectory: dict[str, Any] = json.loads(export_text(log, atif, secrets))
        path = log.path_entries()
    totals = trajectory["final_metrics"]
    replies = [e for e in path if isinstance(e, MessageEntry)]
    return Measured(
        session_id=trajectory["session_id"],
        trajectory=trajectory,
        input_tokens=totals["total_prompt_tokens"],
        cached_tokens=totals["total_cached_tokens"],
        output_tokens=totals["total_completion_tokens"],
        cost_usd=totals.get("total_cost_usd"),
        replies=sum(isinstance(e.message, AssistantMessage) for e in replies),
        compactions=len({_compaction(entry) for entry in path} - {""}),
    )


def _compaction(entry: Entry) -> str:
    """An id for the compaction that wrote `entry`; empty if none did."""
    if isinstance(entry, CompactionEntry):
        return entry.details.batch or entry.id
    report = report_of(entry)
    return report.batch if report else ""


_BUILD = "Build a wheel (uv build --wheel) and pass it: --ak wheel=dist/NAME.whl"


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel to copy into the environment."""

    path: Path


def source_of(
    wheel: str | None, version: str | None, installation: Installation | None = None
) -> Wheel | str:
    """What to install: a wheel, or a requirement for pip and uv; by default this program.

    Args:
        wheel: The file that the user named.
        version: The release that the user named.
        installation: How this program was installed; None to look it up.

    Raises:
        ValueError: The file is no wheel, or this program cannot be installed elsewhere.
    """
    if wheel:
        return _check_wheel(Path(wheel).expanduser())
    if version:
        return f"{DISTRIBUTION}=={version}"
    here = installation or this_installation()
    if here.folder:
        raise ValueError(f"agent-tui runs from the source folder {here.folder}. {_BUILD}")
    if not here.address:
        return f"{DISTRIBUTION}=={__version__}"
    if here.address.startswith("file:"):
        return _check_wheel(Path(unquote(urlsplit(here.address).path)))
    return f"{DISTRIBUTION} @ {here.address}"


def _check_wheel(path: Path) -> Wheel:
    if path.suffix != ".whl" or not path.is_file():
        raise ValueError(f"{path} is not a wheel. {_BUILD}")
    return Wheel(real_path(path))
