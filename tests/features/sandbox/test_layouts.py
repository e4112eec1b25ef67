"""A sandbox works wherever a project lies, for every user, and changes nothing that it finds."""

import json
from collections.abc import Iterator

import pytest
from _pytest.mark import ParameterSet

from agent_tui.features.sandbox.plan import Backend
from tests.support import layouts
from tests.support.sandbox import needs_bwrap, needs_landlock
from tests.support.users import User, can_run, run_module, system_folders, users


def _cases() -> Iterator[ParameterSet]:
    """Each backend with each user; as each takes long, any worker may run it."""
    for backend, needed in (("bubblewrap", needs_bwrap), ("landlock", needs_landlock)):
        for user in users():
            name = f"{backend}-{user.name}"
            marks = (needed, pytest.mark.xdist_group(f"layouts: {name}"))
            yield pytest.param(backend, user, marks=marks, id=name)


@pytest.mark.parametrize(("backend", "user"), _cases())
def test_commands_run_in_every_layout_and_nothing_else_is_changed(backend: Backend, user: User):
    if not can_run(user, layouts.__name__):
        pytest.skip(f"{user.name} cannot run the program from here")
    with system_folders(user) as roots:
        found = json.loads(run_module(user, layouts.__name__, backend, *map(str, roots)))
    assert {layout: problem for layout, problem in found.items() if problem} == {}
    assert len(found) >= 17
