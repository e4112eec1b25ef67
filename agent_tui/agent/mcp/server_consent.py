"""The file that keeps what the person said about the MCP servers of projects."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from agent_tui.errors import ConfigError
from agent_tui.paths import make_private_dir
from agent_tui.sessions.file.disk import DiskFile, write_new_file

if TYPE_CHECKING:  # the first paint does not wait for pydantic
    from pydantic import JsonValue

Consent: TypeAlias = Literal["allowed", "refused"]

_LOCK_WITHIN_S = 10.0
_FOR_THIS_RUN = "It holds for this run."


class ConsentFile:
    """Answers by the hash of what would be started: ``{"servers": {"<sha256>": "allowed"}}``.

    A server whose command, variables or file are others is another one, and asked about anew. A
    broken file keeps nothing: every server is asked about.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._in_this_run: dict[str, Consent] = {}

    def answer_of(self, fingerprint: str) -> Consent | None:
        """What was said; None where nothing was."""
        return self._in_this_run.get(fingerprint) or self._read().get(fingerprint)

    def keep(self, fingerprint: str, consent: Consent) -> None:
        """Keep an answer.

        Raises:
            ConfigError: The file cannot be written; the answer holds for this run.
        """
        from filelock import FileLock, Timeout

        self._in_this_run[fingerprint] = consent
        try:
            make_private_dir(self._path.parent)
            lock = self._path.with_name(f"{self._path.name}.lock")
            with FileLock(lock, timeout=_LOCK_WITHIN_S, mode=0o600):
                servers = {**self._read(), fingerprint: consent}
                text = json.dumps({"servers": servers}, indent=2, sort_keys=True)
                write_new_file(self._path, f"{text}\n".encode("ascii"), DiskFile, sync=True)
        except Timeout as error:
            raise ConfigError(f"{self._path} is being written elsewhere.", _FOR_THIS_RUN) from error
        except OSError as error:
            problem = f"{self._path} cannot be written: {error.strerror}."
            raise ConfigError(problem, _FOR_THIS_RUN) from error

    def _read(self) -> Mapping[str, Consent]:
        try:
            stored = cast("JsonValue", json.loads(self._path.read_bytes()))
        except (OSError, ValueError, RecursionError):
            return {}
        servers = stored.get("servers") if isinstance(stored, dict) else None
        return _known(servers) if isinstance(servers, dict) else {}


def _known(servers: "Mapping[str, JsonValue]") -> Mapping[str, Consent]:
    known: dict[str, Consent] = {}
    for fingerprint, said in servers.items():
        if said == "allowed":
            known[fingerprint] = "allowed"
        elif said == "refused":
            known[fingerprint] = "refused"
    return known
