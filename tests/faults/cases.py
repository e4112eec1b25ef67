"""Which rows of the table meet which protocol at which point of a turn."""

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

import pytest
from _pytest.mark import ParameterSet

from agent_tui.events import AgentEvent
from tests.faults.conversation import Conversation
from tests.faults.table import NOTE, WIRES, Row
from tests.support.openai_server import Answer, Reply

Phase: TypeAlias = Literal["first request", "after a tool"]
PHASES: tuple[Phase, ...] = ("first request", "after a tool")


def at_each_phase(rows: Mapping[str, Row]) -> Iterator[ParameterSet]:
    """`row`, `wire` and `phase`; what repeats most of another case runs when chosen."""
    for name, row in rows.items():
        for wire in WIRES:
            for phase in PHASES:
                is_main = wire == "openai" or phase == "first request"
                marks = () if is_main else (pytest.mark.slow,)
                yield pytest.param(row, wire, phase, id=f"{name}, {wire}, {phase}", marks=marks)


def in_each_protocol(rows: Mapping[str, Row]) -> Iterator[ParameterSet]:
    """`row` and `wire`."""
    for name, row in rows.items():
        for wire in WIRES:
            yield pytest.param(row, wire, id=f"{name}, {wire}")


def mostly_in_one(rows: Mapping[str, Row]) -> Iterator[ParameterSet]:
    """`row` and `wire`; the second protocol is met when chosen: turns say how it fails."""
    for name, row in rows.items():
        for wire in WIRES:
            marks = () if wire == "openai" else (pytest.mark.slow,)
            yield pytest.param(row, wire, id=f"{name}, {wire}", marks=marks)


async def meet(talk: Conversation, phase: Phase, *answers: Answer) -> list[AgentEvent]:
    """A turn that gets `answers` at `phase`."""
    before = (Reply(tool_calls=(NOTE,)),) if phase == "after a tool" else ()
    return await talk.say("hello", *before, *answers)


def runs_before(phase: Phase) -> int:
    """How often `NOTE` has been run by then."""
    return 1 if phase == "after a tool" else 0


def roles_before(phase: Phase) -> list[str]:
    """What the session holds by then."""
    return ["user", "assistant", "toolResult"] if phase == "after a tool" else ["user"]
