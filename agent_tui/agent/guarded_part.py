"""Guards the parts of features: a fault of one ends neither a turn nor the program."""

import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TypeAlias, cast

from agent_tui.agent.part import Host, Part
from agent_tui.errors import SessionError
from agent_tui.events import Notice
from agent_tui.feature import Feature, load_object
from agent_tui.outside_code import is_fault
from agent_tui.safe_text import printable_line
from agent_tui.sessions.entries import Entry

TellFault: TypeAlias = Callable[[Notice, BaseException], None]
"""Takes the notice for the user, and what was raised for the log."""

_FAILED = (
    "The feature {name} failed at {moment}: {why} It is left out of this conversation, which "
    "continues without it."
)
_MOST_CHARS = 300


class _Watch:
    """Watches the part of one feature: its first fault is reported, and it is left out."""

    def __init__(self, name: str, tell: TellFault) -> None:
        self._name = name
        self._tell = tell
        self.has_failed = False

    @contextmanager
    def at(self, moment: str) -> Generator[None]:
        """Catch what is raised in the block, in which the part is asked at `moment`.

        A cancellation passes through, and so does a session that cannot be written.
        """
        try:
            yield
        except SessionError:
            raise
        except BaseException as fault:
            if not is_fault(fault):
                raise
            if not self.has_failed:
                self.has_failed = True
                what = printable_line(f"{type(fault).__name__}: {fault}", _MOST_CHARS)
                why = f"{what.rstrip(' .:')}."
                text = _FAILED.format(name=self._name, moment=moment, why=why)
                self._tell(Notice("warning", text), fault)


class _GuardedPart:
    """Stands for a part. Once it has failed, its methods do what those of `Part` do: nothing."""

    def __init__(self, part: Part, watch: _Watch) -> None:
        self.part = part
        self._watch = watch
        self._idle = Part(part.host)

    def __getattr__(self, moment: str) -> object:
        idle: object = getattr(self._idle, moment)
        if not callable(idle):
            return self._ask(moment, lambda part: getattr(part, moment), idle)
        if not inspect.iscoroutinefunction(idle):

            def ask_now(*given: object, **named: object) -> object:
                otherwise: object = idle(*given, **named)
                return self._ask(
                    moment, lambda part: getattr(part, moment)(*given, **named), otherwise
                )

            return ask_now

        async def ask(*given: object, **named: object) -> object:
            otherwise: object = await idle(*given, **named)
            if self._takes_part_at(moment):
                with self._watch.at(moment):
                    answer: object = await getattr(self.part, moment)(*given, **named)
                    return self._checked(answer, otherwise)
            return otherwise

        return ask

    def _ask(self, moment: str, ask: Callable[[Part], object], otherwise: object) -> object:
        if self._takes_part_at(moment):
            with self._watch.at(moment):
                return self._checked(ask(self.part), otherwise)
        return otherwise

    def _takes_part_at(self, moment: str) -> bool:
        """Whether it is asked: one that failed only ends what it has running."""
        return moment == "close" or not self._watch.has_failed

    def _checked(self, answer: object, otherwise: object) -> object:
        """`answer` if it is of the kind that `Part` returns.

        Raises:
            TypeError: It is not.
        """
        if isinstance(answer, Part):
            return _GuardedPart(answer, self._watch)
        kind = Sequence if isinstance(otherwise, tuple | list) else type(otherwise)
        if otherwise is not None and not issubclass(type(answer), kind):
            raise TypeError(f"it returned {type(answer).__name__}, not {kind.__name__}")
        return answer


def make_parts(features: Iterable[Feature], host: Host, tell: TellFault) -> tuple[Part, ...]:
    """Make the parts of `features` for a conversation; what one raises later ends nothing.

    Args:
        features: What may have a part.
        host: What the parts work with.
        tell: Takes the first fault of each part. From then on it is left out.
    """
    parts: list[Part] = []
    for feature in features:
        if feature.part:
            watch = _Watch(feature.name, tell)
            with watch.at("its start"):
                part = cast(type[Part], load_object(feature.part))(host)
                parts.append(cast(Part, _GuardedPart(part, watch)))
    return tuple(parts)


def carried_without_conversation(
    features: Iterable[Feature], path: Sequence[Entry], tell: TellFault
) -> tuple[Entry, ...]:
    """What the parts of `features` carry to the session that a compaction of a file begins.

    Args:
        features: What may have a part.
        path: The entries of the file.
        tell: Takes the fault of each part, which then carries nothing.
    """
    carried: list[Entry] = []
    for feature in features:
        if feature.part:
            with _Watch(feature.name, tell).at("carried"):
                carried += cast(type[Part], load_object(feature.part)).carried(path)
    return tuple(carried)


def part_itself(part: Part) -> Part:
    """The feature's own object for one of `make_parts`."""
    found = cast(object, part)
    return found.part if isinstance(found, _GuardedPart) else part
