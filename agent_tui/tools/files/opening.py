"""Open files by the paths that were judged, even if a command puts a link there meanwhile."""

import io
from pathlib import Path

from agent_tui.regular_files import open_in
from agent_tui.safe_paths import open_folder


def open_judged_file(path: Path) -> io.BufferedReader | io.FileIO:
    """Open the regular file at `path`, which must have no links, as from `follow_links`.

    Raises:
        OSError: The path has a link by now, or `open_regular_file` says why.
    """
    with open_folder(path.parent) as folder:
        return open_in(folder, path)


def read_judged_file(path: Path, most_bytes: int) -> bytes | None:
    """The content of the regular file at `path`; None if it has more than `most_bytes`.

    Raises:
        OSError: As `open_judged_file` says.
    """
    with open_judged_file(path) as file:
        content = file.read(most_bytes + 1) or b""
    return content if len(content) <= most_bytes else None
