from collections.abc import Generator
from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet

from agent_tui.key_actions import KeyMap, use_keys
from tests.support.leaping_clock import leaping_time


@pytest.fixture(autouse=True, scope="package")
def time_leaps() -> Generator[None]:
    """Nothing here waits for real: see `leaping_time`."""
    with leaping_time():
        yield


@pytest.fixture(autouse=True, scope="package")
def styles_are_parsed_once() -> Generator[None]:
    """Every program has the same style sheets: to parse them takes an eighth of all time here."""
    known: dict[Any, Any] = {}
    parse: Any = Stylesheet._parse_rules  # pyright: ignore[reportPrivateUsage]

    def parse_once(sheet: Any, *args: Any, **named: Any) -> Any:
        key = (frozenset(sheet._variables.items()), args, tuple(named.items()))
        if key not in known:
            known[key] = parse(sheet, *args, **named)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield


@pytest.fixture(autouse=True)
def usual_keys() -> Generator[None]:
    """Keys that a test chose are its own."""
    yield
    use_keys(KeyMap())
