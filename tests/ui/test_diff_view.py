import difflib
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color_triplet import ColorTriplet
from rich.style import Style
from textual.theme import BUILTIN_THEMES

from agent_tui.ui.diff_view import diff_lines, diff_stat, fold_context, parse_diff
from agent_tui.ui.styled_lines import text_to_copy
from agent_tui.ui.theme.palette import Palette, make_palette
from agent_tui.ui.theme.themes import own_themes
from agent_tui.ui.transcript.code import CodePainter

DIFF = """--- a/x.py
+++ b/x.py
@@ -8,3 +8,4 @@ def f():
 same
-old
+new
+-- newer
 end
@@ -40 +41 @@
-a
\\ No newline at end of file
+b
"""


def drawn(diff: str, width: int = 24) -> list[str]:
    return [line.row.rstrip() for line in diff_lines(parse_diff(diff), width, Palette())]


def test_lines_are_numbered_as_in_the_new_file_and_removed_ones_as_in_the_old():
    assert drawn(DIFF) == [
        "b/x.py",
        " ⋯  def f():",
        " 8   same",
        " 9 - old",
        " 9 + new",
        "10 + -- newer",
        "11   end",
        " ⋯",
        "40 - a",
        "41 + b",
    ]


@given(
    lines=st.lists(st.booleans(), min_size=1, max_size=60),
    context=st.integers(min_value=0, max_value=4),
    most=st.integers(min_value=1, max_value=40),
)
def test_what_is_folded_has_one_gap_between_two_changes(lines: list[bool], context: int, most: int):
    old = [f"{number}\n" for number in range(len(lines))]
    new = [f"{line}!\n" if changed else line for line, changed in zip(old, lines, strict=True)]
    diff = "".join(difflib.unified_diff(old, new, "a/x", "b/x", n=context))
    rows, hidden = fold_context(parse_diff(diff), most)
    assert len(rows) <= most
    kinds = [row.kind for row in rows]
    assert ("gap", "gap") not in itertools.pairwise(kinds)
    assert hidden == sum(row.kind not in ("gap", "file") for row in parse_diff(diff)) - sum(
        kind not in ("gap", "file") for kind in kinds
    )


def test_changed_lines_fill_the_width():
    rows = diff_lines(parse_diff(DIFF), 24, Palette())
    assert {row.cells for row in rows if not row.is_decoration} - {6} == {24}


def test_the_head_of_a_second_file_is_not_a_change():
    assert diff_stat(DIFF + DIFF) == (6, 4)
    assert drawn(DIFF + DIFF).count("b/x.py") == 2


def test_a_removed_line_that_looks_like_a_head_is_a_change():
    assert diff_stat("@@ -1,2 +1 @@\n--- x\n-++ y\n+z\n") == (1, 2)


def test_text_that_is_no_diff_is_shown_as_it_is():
    assert drawn("hello\nworld") == ["    hello", "    world"]


def test_a_long_line_wraps_under_its_text():
    assert drawn("@@ -1 +1 @@\n+" + "x" * 12, 12) == ["1 + xxxxxxxx", "    xxxx"]


def test_copying_leaves_numbers_and_signs_out():
    rows = diff_lines(parse_diff(DIFF), 40, Palette())
    assert text_to_copy(rows) == "b/x.py\nsame\nold\nnew\n-- newer\nend\na\nb"


def test_control_characters_in_a_diff_are_shown():
    assert drawn("@@ -1 +1 @@\n+\x1b[31mred") == ["1 + ␛[31mred"]


lines = st.lists(st.sampled_from(["", "a", "b", "-- x", "++ y", "@@ -1 +1 @@", "\\ z", " s"]))


@settings(deadline=None)
@given(lines, lines, st.integers(0, 3))
def test_every_change_of_a_real_diff_is_found(old: list[str], new: list[str], context: int):
    diff = list(difflib.unified_diff(old, new, "a", "b", lineterm="", n=context))
    added = sum(line.startswith("+") for line in diff[2:])
    removed = sum(line.startswith("-") for line in diff[2:])
    rows = parse_diff("\n".join(diff))
    assert diff_stat("\n".join(diff)) == (added, removed)
    for row in rows:
        if row.kind in ("added", "unchanged") and row.number is not None:
            assert new[row.number - 1] == row.text
        if row.kind == "removed" and row.number is not None:
            assert old[row.number - 1] == row.text


def dark_and_light() -> list[Palette]:
    return [make_palette(theme.to_color_system().generate(), ansi=False) for theme in own_themes()]


def styles_of(diff: str, palette: Palette) -> dict[str, Style]:
    """The style of each word of a diff of a Python file."""
    rows = diff_lines(parse_diff(diff), 40, palette, CodePainter(palette).inks)
    return {
        word: segment.style or Style()
        for row in rows
        for segment in row.segments
        for word in segment.text.split()
    }


PYTHON = '--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n def same():\n-    return "one"\n+    return "two"\n'


def test_code_has_the_colours_of_its_language_on_the_surfaces_of_the_diff():
    for palette in dark_and_light():
        styles = styles_of(PYTHON, palette)
        assert styles["def"].color == palette.keyword.color
        assert styles["return"].bgcolor in (palette.added.bgcolor, palette.removed.bgcolor)
        assert styles["one"].bgcolor == palette.removed_word.bgcolor
        assert styles["two"].bgcolor == palette.added_word.bgcolor


def test_without_surfaces_the_colour_of_the_text_tells_added_from_removed():
    theme = BUILTIN_THEMES["ansi-dark"]
    palette = make_palette(theme.to_color_system().generate(), ansi=True)
    styles = styles_of(PYTHON, palette)
    assert styles["two"].color == palette.added.color
    assert styles["one"].color == palette.removed.color
    assert styles["two"].underline


def test_a_file_of_no_known_language_and_a_diff_of_no_file_are_shown_plain():
    palette = dark_and_light()[0]
    for diff in (PYTHON.replace("a.py", "a"), PYTHON[PYTHON.index("@@") :]):
        assert styles_of(diff, palette)["return"].color == palette.added.color


def test_all_inks_can_be_read_on_the_surfaces_of_a_diff():
    for palette in dark_and_light():
        code = "def f(x):  # comment\n+    return int('text') + 1\n+@wraps\n+class A(B): ..."
        styles = styles_of(f"--- a.py\n+++ a.py\n@@ -0,0 +1,4 @@\n+{code}\n", palette)
        styles |= styles_of(PYTHON, palette)
        for word, style in styles.items():
            if style.bgcolor is not None and not word.isdigit() and word not in "+-":
                assert contrast(style) >= 4.5, word


def contrast(style: Style) -> float:
    """The contrast ratio of WCAG 2.1 between the ink and its ground."""
    assert style.color is not None
    assert style.bgcolor is not None
    light = [luminance(colour.get_truecolor()) for colour in (style.color, style.bgcolor)]
    return (max(light) + 0.05) / (min(light) + 0.05)


def luminance(colour: ColorTriplet) -> float:
    shares = [value / 255 for value in colour]
    linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
