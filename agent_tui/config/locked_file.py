"""Files that several runs of the program change, one at a time."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from agent_tui.errors import ConfigError
from agent_tui.file_locks import LockHeldError, hold_lock
from agent_tui.paths import make_private_dir

_LOCK_WITHIN_S = 10.0


@contextmanager
def lock_for_change(path: Path, hint: str) -> Generator[None]:
    """Lock `path` against changes by other runs; creates its folder.

    Raises:
        ConfigError: Another run held the lock too long, or the change raised an OSError; has
            `hint`.
    """
    try:
        make_private_dir(path.parent)
        with hold_lock(path.with_name(f"{path.name}.lock"), within_s=_LOCK_WITHIN_S):
            yield
    except LockHeldError as error:
        how = error.owner.how_to_go_on or hint
        raise ConfigError(f"{path} is in use by {error.owner}.", how) from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint) from error
