"""``agent-tui sessions export``: a session as a document."""

import os
from pathlib import Path

from agent_tui.cli.output import write_text
from agent_tui.errors import UsageError
from agent_tui.providers.keys import secret_values
from agent_tui.safe_text import safe_json
from agent_tui.sessions.export.markdown import exported
from agent_tui.sessions.log import SessionLog

EXPORT_KINDS = ("md", "html", "jsonl")
EXPORT_NOTE = """\
In Markdown and in the page, what looks like a key, a token or a password is taken out. The
session format is exact, with whatever was said and printed."""


def export_session(log: SessionLog, kind: str | None, output: Path | None) -> None:
    """Print `log` as a document, or write it to `output`.

    Args:
        log: The session.
        kind: One of `EXPORT_KINDS`; None: by the suffix of `output`, else Markdown.
        output: A file that does not exist yet.

    Raises:
        UsageError: It exists, or cannot be written.
    """
    suffix = output.suffix.lstrip(".") if output else ""
    kind = kind or (suffix if suffix in EXPORT_KINDS else "md")
    text = exported(log, kind, secret_values(os.environ))
    if kind == "jsonl":
        text = safe_json(text)  # the same values; the other formats are harmless already
    if output is None:
        write_text(text)
        return
    try:
        with output.open("x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{output} exists already.", "Name another file.") from error
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}.") from error
    print(f"Written to {output}")
