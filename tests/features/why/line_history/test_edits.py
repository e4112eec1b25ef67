"""What a call says about a text, forward and back: one answer, or none."""

from itertools import product

import pytest

from agent_tui.features.why.line_history.kept_lines import lines_of
from agent_tui.tools.call_edits import PatchedFile, Replacements, TextEdit
from agent_tui.tools.edit import Replacement
from agent_tui.tools.patch_format import FilePatch, Hunk

LINES = [list(lines) for count in range(4) for lines in product("xy", repeat=count)]
TEXTS = ["".join(f"{line}\n" for line in lines) for lines in LINES]
LONGER = [*TEXTS, *("".join(f"{line}\n" for line in lines) for lines in product("xy", repeat=4))]


def replacements() -> list[TextEdit]:
    pairs = ((old, new) for old, new in product(TEXTS, TEXTS) if old and old != new)
    return [Replacements((Replacement(old=old, new=new),)) for old, new in pairs]


def patches() -> list[TextEdit]:
    hunks = (
        Hunk(headers, old, new)
        for headers, old, new in product(([], ["x"]), LINES, LINES)
        if old != new
    )
    return [PatchedFile(FilePatch("update", "f", hunks=[hunk])) for hunk in hunks]


@pytest.mark.parametrize("edits", [replacements(), patches()], ids=["texts", "hunks"])
def test_a_change_is_taken_back_only_to_the_one_text_that_it_can_have_changed(
    edits: list[TextEdit],
):
    taken_back = 0
    for edit in edits:
        before_of: dict[str, set[tuple[str, ...]]] = {}
        for text in LONGER:
            after = edit.forward(text)
            if after is not None:
                before_of.setdefault(after, set()).add(tuple(lines_of(text)))
        for after, before in before_of.items():
            found = edit.back(after)
            taken_back += found is not None
            assert found is None or before == {tuple(lines_of(found))}
    assert taken_back > 100


def test_a_hunk_with_two_adjacent_places_is_not_taken_back():
    hunk = Hunk([], ["x"], ["y", "y"])
    patch = PatchedFile(FilePatch("update", "f", hunks=[hunk]))
    assert patch.forward("x\ny\n") == patch.forward("y\nx\n") == "y\ny\ny\n"
    assert patch.back("y\ny\ny\n") is None
    assert patch.back("y\ny\n") == "x\n"
