"""A sandbox works wherever a project lies, for every user, and changes nothing that it finds."""

import json

import pytest

from agent_tui.features.sandbox.plan import Backend
from tests.support import layouts
from tests.support.sandbox import needs_bwrap, needs_landlock
from tests.support.users import User, can_run, run_module, system_folders, users


@pytest.mark.parametrize("user", [pytest.param(user, id=user.name) for user in users()])
@pytest.mark.parametrize(
    "backend",
    [
        pytest.param("bubblewrap", marks=needs_bwrap),
        pytest.param("landlock", marks=needs_landlock),
    ],
)
def test_commands_run_in_every_layout_and_nothing_else_is_changed(backend: Backend, user: User):
    if not can_run(user, layouts.__name__):
        pytest.skip(f"{user.name} cannot run the program from here")
    with system_folders(user) as roots:
        found = json.loads(run_module(user, layouts.__name__, backend, *map(str, roots)))
    assert {layout: problem for layout, problem in found.items() if problem} == {}
    assert len(found) >= 17
