"""The figures of the house, on a house of a few lines."""

import ast
from pathlib import Path

import pytest

from tests.benchmarks.house import FunctionNode, House, figures, is_pass_through, read_house, table
from tests.support.rows import each_row

_A = '''"""Doc."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.b import B  # a comment

LIMIT = 3
"""What LIMIT is for."""


def read(path: str) -> "B":
    """Doc
    over lines.
    """
    text = """two
lines"""
    return text
'''
_B = """from agent_tui import inner
from agent_tui.inner import LIMIT


class B:
    def go(self):
        from agent_tui.c import run

        return run(inner.read, LIMIT)
"""
_C = "def run(*args): ...\n\nfrom agent_tui.a import read\n"
_GUIDE = """# Guide

## Recipes

- **New tool**: `tools/x.py` for `base.Tool`, a line in `tools/registry.py`
  and again in `tools/registry.py`.
- Not a recipe `a/b.py`.
- **New word**: one in `words.md`.

## After

- **New nothing**: `c.py`
"""


@pytest.fixture
def house(tmp_path: Path) -> House:
    package = tmp_path / "agent_tui"
    (package / "inner").mkdir(parents=True)
    (package / "inner" / "__init__.py").write_text("from agent_tui.a import LIMIT, read\n")
    for name, text in {"a": _A, "b": _B, "c": _C}.items():
        (package / f"{name}.py").write_text(text)
    (tmp_path / "CONTRIBUTING.md").write_text(_GUIDE)
    return read_house(tmp_path)


def test_code_lines_are_those_without_blanks_comments_and_docstrings(house: House):
    assert len(house.modules["agent_tui.a"].code_lines) == 8


def test_readers_are_counted_through_a_package_that_hands_a_name_on(house: House):
    assert house.public_names == {
        "agent_tui.a.LIMIT": 1,
        "agent_tui.a.read": 2,
        "agent_tui.b.B": 1,
        "agent_tui.c.run": 1,
    }
    assert "agent_tui.a.read" not in house.little_read


def test_a_ring_counts_imports_in_functions_and_for_type_checkers(house: House):
    ring = ["agent_tui.a", "agent_tui.b", "agent_tui.c", "agent_tui.inner"]
    assert house.rings == [ring]
    assert len(house.lazy_imports) == 1
    assert len(house.type_checking_blocks) == 1


def test_modules_that_do_not_come_round_are_no_ring(tmp_path: Path):
    (tmp_path / "agent_tui").mkdir()
    (tmp_path / "agent_tui" / "a.py").write_text("from agent_tui.b import x\n")
    (tmp_path / "agent_tui" / "b.py").write_text("from agent_tui.c import x\n")
    (tmp_path / "agent_tui" / "c.py").write_text("x = 1\n")
    assert read_house(tmp_path).rings == []


@pytest.mark.parametrize(
    "source",
    [
        "def name(self): return self.session.name",
        "async def send(self, text, *, now): await self._inbox.send(text, now=now)",
        "def close(self):\n    '''Doc.'''\n    self.session.close()",
    ],
)
def test_a_function_that_only_hands_on_is_a_pass_through(source: str):
    assert is_pass_through(_function(source))


@each_row(
    "source",
    [
        "def name(self): return self._name",
        "def send(self, text): self._inbox.send(text, 3)",
        "def send(self, text): self._inbox.send()",
        "def name(self): return other.session.name",
        "def name(self):\n    self.count += 1\n    return self.session.name",
        "def name(self, key): return self.session.name",
    ],
)
def test_a_function_that_does_anything_itself_is_no_pass_through(source: str):
    assert not is_pass_through(_function(source))


def test_a_recipe_names_the_files_to_touch_once_each(house: House):
    assert house.recipes == {
        "New tool": ["tools/x.py", "tools/registry.py"],
        "New word": ["words.md"],
    }


def test_two_houses_stand_beside_each_other(house: House):
    rows = table({"before": house, "now": House({})}).splitlines()
    assert rows[0].split() == ["before", "now"]
    assert ["files", "4", "0"] in [row.split() for row in rows]
    assert figures(house)["files"] == "4"
    assert any(row.split() == ["files", "for:", "New", "tool", "2", "-"] for row in rows)


def _function(source: str) -> FunctionNode:
    node = ast.parse(source).body[0]
    assert isinstance(node, FunctionNode)
    return node
