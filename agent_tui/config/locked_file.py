"""Files that several runs of the program change: one at a time."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from agent_tui.errors import ConfigError
from agent_tui.paths import make_private_dir

_LOCK_WITHIN_S = 10.0


@contextmanager
def locked_for_change(path: Path, hint: str) -> Generator[None]:
    """No other run changes `path` meanwhile; its folder is made.

    Raises:
        ConfigError: With `hint`: another run kept it for too long, or the change met an OSError.
    """
    from filelock import FileLock, Timeout  # only a change needs it

    try:
        make_private_dir(path.parent)
        with FileLock(path.with_name(f"{path.name}.lock"), timeout=_LOCK_WITHIN_S, mode=0o600):
            yield
    except Timeout as error:
        raise ConfigError(f"{path} is being written elsewhere.", hint) from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint) from error
