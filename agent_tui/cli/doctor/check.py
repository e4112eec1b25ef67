"""What a check finds, and how checks are run side by side."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.errors import AgentTuiError

State: TypeAlias = Literal["ok", "info", "warning", "bad"]
"""``info`` is neither good nor wrong; ``warning`` works, but not as well as it could; ``bad``
does not work."""

TIME_LIMIT_S = 3.0
_PROGRAM_FAULT = "The rest of this report stands. If it stays so, please report it."


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report.

    Raises:
        ValueError: something is wrong and nothing is said about what to do.
    """

    section: str
    name: str
    state: State
    found: str
    advice: str = ""

    def __post_init__(self) -> None:
        if self.state in ("warning", "bad") and not self.advice:
            raise ValueError(f"{self.section}/{self.name}: no advice")


@dataclass(frozen=True, slots=True)
class Probe:
    """Something to look at. `look` may block, and may raise."""

    section: str
    name: str
    look: Callable[[], Iterable[Check]]


def run_probes(probes: Sequence[Probe], time_limit_s: float = TIME_LIMIT_S) -> tuple[Check, ...]:
    """The checks of all `probes`, looked at side by side, in the order of `probes`.

    One that raises, or takes longer than `time_limit_s`, becomes a line that says so; its thread
    is left behind and does not keep the program from ending.
    """
    found: dict[int, Sequence[Check]] = {}

    def look(number: int, probe: Probe) -> None:
        found[number] = _outcome(probe)

    threads = [
        threading.Thread(target=look, args=(number, probe), daemon=True)
        for number, probe in enumerate(probes)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + time_limit_s
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    return tuple(
        check
        for number, probe in enumerate(probes)
        for check in found.get(number, (_too_slow(probe, time_limit_s),))
    )


def _outcome(probe: Probe) -> Sequence[Check]:
    try:
        return tuple(probe.look())
    except AgentTuiError as error:
        return (_not_checked(probe, error.message, error.hint or _PROGRAM_FAULT),)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        said = f"{where}{error.strerror or error}"
        return (_not_checked(probe, said, "Look at what is named there, then run this again."),)
    except Exception as error:  # noqa: BLE001 - the pump: one broken check must not hide the rest
        return (_not_checked(probe, f"{type(error).__name__}: {error}", _PROGRAM_FAULT),)


def _too_slow(probe: Probe, time_limit_s: float) -> Check:
    return _not_checked(
        probe,
        f"no answer within {time_limit_s:g} s",
        "The machine is busy, or a disk or an address does not answer. Run this again.",
    )


def _not_checked(probe: Probe, why: str, advice: str) -> Check:
    return Check(probe.section, probe.name, "warning", f"could not be checked: {why}", advice)
