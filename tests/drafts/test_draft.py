from hypothesis import given
from hypothesis import strategies as st

from agent_tui.attachments import split_pastes
from agent_tui.drafts.draft import (
    Draft,
    DraftImage,
    image_mark,
    is_large,
    join_drafts,
    mark_after,
    mark_before,
    paste_mark,
)
from agent_tui.tools.files.images import ImageFile

SHOT = ImageFile("shot.png", "image/png", "aGk=", 800, 600)
IMAGE = DraftImage("/tmp/my shot.png", SHOT)


def test_a_paste_of_ten_thousand_lines_is_one_short_mark_and_is_sent_whole():
    pasted = "\n".join(f"line {n}" for n in range(10_000))
    mark = paste_mark(1, pasted)
    assert mark == "[paste #1 +9,999 lines]"
    assert Draft(f"look at {mark} please", {1: pasted}).full_text == f"look at {pasted} please"


def test_ten_lines_or_a_thousand_characters_stay_as_they_are():
    assert not is_large("\n".join("x" * 10))
    assert is_large("\n".join("x" * 11))
    assert not is_large("x" * 1_000)
    assert is_large("x" * 1_001)


def test_a_long_single_line_says_its_length():
    assert paste_mark(2, "x" * 4_210) == "[paste #2 4,210 chars]"


def test_a_mark_the_person_typed_without_a_paste_is_text():
    assert Draft("[paste #7 +3 lines]").full_text == "[paste #7 +3 lines]"


def test_trimming_forgets_pastes_whose_mark_was_deleted():
    draft = Draft("  [paste #1 +2 lines] ", {1: "a", 2: "b"}).trim()
    assert draft == Draft("[paste #1 +2 lines]", {1: "a"})


def test_the_mark_before_the_cursor_is_measured_whole():
    assert mark_before("see [paste #1 +9,999 lines]") == len("[paste #1 +9,999 lines]")
    assert mark_before("see [paste #1 +9,999 lines] ") == 0
    assert mark_before("no mark]") == 0


@given(st.text(), st.text())
def test_pasted_text_is_never_searched_for_marks(before: str, pasted: str):
    mark = paste_mark(1, "x" * 2_000)
    pasted += mark
    full = Draft(before.replace("[", "") + mark, {1: pasted}).full_text
    assert full == before.replace("[", "") + pasted


def test_an_image_is_a_mark_with_its_name_and_size():
    assert image_mark(1, SHOT) == "[image #1 shot.png 800x600]"
    odd = ImageFile("[a]\n" + "x" * 60 + ".webp", "image/webp", "", 0, 0)
    mark = image_mark(12, odd)
    assert mark_after(mark) == mark_before(f"see {mark}") == len(mark) < 60


def test_an_image_is_sent_as_one_and_its_path_where_that_cannot_be():
    draft = Draft(
        f"see {image_mark(1, SHOT)} and {paste_mark(1, 'x' * 2_000)}", {1: "xx"}, {1: IMAGE}
    )
    assert draft.sent_text == "see [image #1 shot.png 800x600] and xx"
    assert draft.sent_images == (SHOT,)
    assert draft.full_text == "see /tmp/my shot.png and xx"
    kept = draft.with_mentions()
    assert kept.text == 'see @"/tmp/my shot.png" and [paste #1 2,000 chars]'
    assert (kept.pastes, kept.images) == ({1: "xx"}, {})


def test_drafts_are_put_together_with_their_pastes_and_images():
    one = Draft("[paste #1 +10 lines] [image #1 shot.png 800x600]", {1: "one"}, {1: IMAGE})
    two = Draft("[paste #3 +10 lines] [paste #9 +1 lines]", {3: "two"})
    both = join_drafts((one, Draft(" "), two, one, Draft("")))
    assert both.full_text == (
        "one /tmp/my shot.png\n\ntwo [paste #9 +1 lines]\n\none /tmp/my shot.png"
    )
    assert len(both.sent_images) == 2


def test_what_an_editor_left_alone_is_a_mark_again():
    pasted = "\n".join("abc" * 10)
    draft = Draft("before [paste #1 +29 lines] after", {1: pasted})
    assert draft.fold(f"more before {pasted} after") == Draft(
        "more before [paste #1 +29 lines] after", {1: pasted}
    )
    changed = draft.fold("before a\nb after")
    assert changed.text == "before a\nb after"


LINES = "\n".join("x" * 20)


def test_what_was_typed_around_pastes_is_known():
    one, two = paste_mark(1, LINES), paste_mark(2, LINES)
    draft = Draft(f"See {one}\nUse tabs.\n{two}", {1: LINES, 2: LINES})
    assert draft.typed_parts == ("See", "Use tabs.")
    assert tuple(split_pastes(draft.sent_text, draft.typed_parts or ())) == (
        ("See", False),
        (f" {LINES}\n", True),
        ("Use tabs.", False),
        (f"\n{LINES}", True),
    )


def test_without_a_paste_nothing_is_said_about_what_was_typed():
    assert Draft("See this").typed_parts is None
    assert Draft("See [paste #7 +3 lines]").typed_parts is None
    assert Draft(paste_mark(1, LINES), {1: LINES}).typed_parts == ()


def test_a_paste_that_the_text_shows_is_not_typed_even_if_it_was_edited():
    log = "POST /deploy 500\n+ cd $release\n"
    assert Draft(f"See {log} and /review", {1: log}).trim().typed_parts == ("See", "and /review")
    edited = Draft("See this\n+ cd $release\nDo /review", {1: log}).trim()
    assert edited.typed_parts == ("See this", "Do /review")
    assert Draft("Do it", {1: log}).trim() == Draft("Do it")


def test_an_image_that_goes_as_its_path_is_typed():
    draft = Draft(f"{image_mark(1, SHOT)} {paste_mark(1, LINES)}", {1: LINES}, {1: IMAGE})
    assert draft.typed_parts == (image_mark(1, SHOT),)
    assert draft.with_paths().typed_parts == (IMAGE.path,)


@given(st.lists(st.text(alphabet="ab\n ")), st.lists(st.text(alphabet="ab\n ")))
def test_parts_join_to_the_text_and_have_all_that_was_typed(typed: list[str], pasted: list[str]):
    text = "".join(part for pair in zip(typed, pasted, strict=False) for part in pair)
    words = tuple(filter(None, (part.strip() for part in typed[: len(pasted)])))
    parts = tuple(split_pastes(text, words))
    assert "".join(part for part, _ in parts) == text
    assert tuple(part for part, is_pasted in parts if not is_pasted) == (
        words or ((text,) if text else ())
    )
