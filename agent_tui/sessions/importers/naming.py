"""Ids for sessions whose files have none."""

import hashlib
import uuid
from pathlib import Path

from agent_tui.sessions.file.disk import describe_fault


def made_up_id(path: Path) -> str:
    """A session id that follows from the bytes of `path` alone, as a UUID.

    Raises:
        SessionError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
    except OSError as error:
        raise describe_fault(path, "read", error) from error
    return str(uuid.UUID(bytes=digest.digest()[:16], version=4))
