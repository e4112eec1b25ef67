"""What was spent today, in one file for all programs of the user."""

import json
import math
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from agent_tui.atomic_files import replace_private_file
from agent_tui.errors import ConfigError
from agent_tui.file_locks import LockHeldError, hold_lock
from agent_tui.paths import make_private_dir
from agent_tui.providers.wires.parts import as_object, text_at
from agent_tui.regular_files import read_regular_file

_LOCK_WITHIN_S: Final = 1.0
"""A program holds the lock for a millisecond; only a stopped one holds it longer."""


class DayLedger:
    """The sum of a day, replaced in one step under a lock: a killed program damages nothing.

    The day only moves forward: after the clock is set back by a day, the sum of the later day still
    counts, as the sum of the present one.

    Args:
        file: Where the sum is kept.
        today: Returns the local date.
        within_s: Seconds to wait for other programs.
    """

    def __init__(
        self,
        file: Path,
        today: Callable[[], date] = date.today,
        within_s: float = _LOCK_WITHIN_S,
    ) -> None:
        self._file = file
        self._today = today
        self._within_s = within_s

    def add(self, cost_usd: float) -> float:
        """Add a cost to the sum of today and return the sum, in US dollars. Blocking.

        Raises:
            ConfigError: The sum is unknown, or cannot be stored; says why.
        """
        try:
            make_private_dir(self._file.parent)
            lock = self._file.with_name(f"{self._file.name}.lock")
            with hold_lock(lock, within_s=self._within_s):
                spent_usd = self._read() + cost_usd
                if cost_usd:
                    kept = {"day": self._today().isoformat(), "usd": round(spent_usd, 9)}
                    replace_private_file(self._file, json.dumps(kept))
        except LockHeldError as error:
            raise ConfigError(
                f"{self._file} is in use by {error.owner}.", error.owner.how_to_go_on
            ) from error
        except OSError as error:
            raise ConfigError(
                f"What is spent today cannot be stored in {self._file}: {error.strerror or error}."
            ) from error
        return spent_usd

    def _read(self) -> float:
        """The sum of today.

        Raises:
            ConfigError: The file is damaged, or of a day to come.
            OSError: It cannot be read.
        """
        try:
            kept = as_object(json.loads(read_regular_file(self._file)))
            day, usd = date.fromisoformat(text_at(kept, "day")), kept.get("usd")
            if isinstance(usd, bool) or not isinstance(usd, int | float) or not 0 <= usd < math.inf:
                raise ValueError("no amount")
        except FileNotFoundError:
            return 0.0
        except ValueError as error:
            raise ConfigError(
                f"{self._file} is damaged, so what was spent today is unknown.",
                "Delete the file to count from zero.",
            ) from error
        if day > self._today() + timedelta(days=1):  # more than a journey makes of a day
            raise ConfigError(
                f"{self._file} has the spending of {day}, which has not come: the clock was wrong.",
                "Delete the file to count from zero.",
            )
        return float(usd) if day >= self._today() else 0.0
