from pathlib import Path

import pytest

from agent_tui.agent.prompt.mentions import (
    MAX_ATTACHMENTS,
    attach,
    find_mentions,
)
from agent_tui.attachments import find_attached_files, without_attachments


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("print('hi')\n", encoding="utf-8")
    (tmp_path / "src" / "zoo").mkdir()
    (tmp_path / "a plan.md").write_text("# Plan\n", encoding="utf-8")
    return tmp_path


def test_the_text_stays_and_the_file_goes_along(project: Path):
    assert attach("fix @src/app.py please", project).text == (
        "fix @src/app.py please\n\n<file path=\"src/app.py\">\nprint('hi')\n</file>"
    )


@pytest.mark.parametrize("text", ["mail me@src/app.py", "hello @someone", "@", "@ src", "a @ b"])
def test_what_names_no_file_changes_nothing(project: Path, text: str):
    assert attach(text, project).text == text


@pytest.mark.parametrize("text", ["see @src/app.py.", "(@src/app.py)", "`@src/app.py`, now"])
def test_punctuation_after_a_path_is_not_part_of_it(project: Path, text: str):
    assert [mention.written for mention in find_mentions(text, project)] == ["src/app.py"]


def test_a_path_with_blanks_is_quoted(project: Path):
    assert "# Plan" in attach('read @"a plan.md"', project).text


def test_a_folder_is_listed(project: Path):
    assert attach("what is in @src", project).text.endswith(
        '<folder path="src">\napp.py\nzoo/\n</folder>'
    )


def test_a_file_that_the_context_has_is_attached_again_only_if_it_changed(project: Path):
    file = project / "big.txt"
    file.write_text("line of text\n" * 1_000, encoding="utf-8")
    same = '\n\n<file path="big.txt" same="as attached above" />'
    for window in (0, 8_000):
        before = list(find_attached_files(attach("@big.txt", project, window).text))
        again = attach("why @big.txt?", project, window, in_context=before)
        assert again.text == f"why @big.txt?{same}"
    smaller = attach("@big.txt and @src/app.py", project, 4_000, in_context=before).text
    assert same in smaller
    file.write_text("changed\n" + file.read_text(), encoding="utf-8")
    assert same not in attach("@big.txt", project, in_context=before).text


def test_a_file_mentioned_twice_goes_along_once(project: Path):
    assert attach("@src/app.py and @./src/app.py", project).text.count("<file ") == 1


def test_a_large_file_is_cut_at_a_line_and_says_so(project: Path):
    (project / "big.txt").write_text("line of text\n" * 10_000, encoding="utf-8")
    attached = attach("@big.txt", project).text
    assert len(attached) < 50_300
    kept = attached.count("line of text\n")
    rest = f"to see the rest, read this file with offset={kept + 1}]"
    assert f"[cut here: 50,000 of 130,000 bytes; {rest}" in attached


def test_in_a_small_window_less_goes_along_the_more_files_there_are(project: Path):
    for name in "abc":
        (project / f"{name}.txt").write_text("line of text\n" * 1_000, encoding="utf-8")
    (project / "many").mkdir()
    for number in range(300):
        (project / "many" / f"f{number:03}").touch()
    one = attach("@a.txt", project, 2_048).text
    assert "[cut here: 1,170 of 13,000 bytes; to see the rest, read this file" in one
    assert 1_100 < len(one) < 1_400
    three = attach("@a.txt @b.txt @c.txt", project, 2_048).text
    assert three.count("[cut here: 780 of 13,000 bytes") == 3
    assert attach("@many", project, 2_048).text.endswith("f044\nf045\n[and 254 more]\n</folder>")


def test_a_binary_file_says_only_its_size(project: Path):
    (project / "image.png").write_bytes(b"\x89PNG\0\0" * 100)
    assert attach("@image.png", project).text.endswith(
        '<file path="image.png" binary="true" bytes="600" />'
    )


def test_no_more_than_so_many_files_go_along(project: Path):
    names = [f"f{number}.txt" for number in range(MAX_ATTACHMENTS + 5)]
    for name in names:
        (project / name).write_text("x", encoding="utf-8")
    text = " ".join(f"@{name}" for name in names)
    assert attach(text, project).text.count("<file ") == MAX_ATTACHMENTS


def test_a_name_that_is_no_path_at_all_is_passed_over(project: Path):
    assert find_mentions("@" + "x" * 5_000 + " @~nobody-at-all/x", project) == []


@pytest.mark.parametrize(
    "text", ["fix @src/app.py please", 'read @"a plan.md"', "see @src and @src/app.py", "plain"]
)
def test_what_was_written_comes_back_without_the_attachments(project: Path, text: str):
    assert without_attachments(attach(text, project).text) == text


def test_a_file_block_the_person_wrote_stays():
    text = 'Explain this:\n\n<file path="x.py">\ncode\n</file>'
    assert without_attachments(text) == text


@pytest.mark.parametrize(
    ("written", "body"),
    [
        ("@n.txt:2-3", '<file path="n.txt" lines="2-3">\ntwo\nthree\n</file>'),
        ("@n.txt:3.", '<file path="n.txt" lines="3-3">\nthree\n</file>'),
        ('@"a n.txt":2-99', '<file path="a n.txt" lines="2-4">\ntwo\nthree\nfour\n</file>'),
    ],
)
def test_some_lines_of_a_file_go_along(project: Path, written: str, body: str):
    for name in ("n.txt", "a n.txt"):
        (project / name).write_text("one\ntwo\nthree\nfour\n", encoding="utf-8")
    attached = attach(f"see {written}", project)
    assert attached.text == f"see {written}\n\n{body}"
    assert without_attachments(attached.text) == f"see {written}"


def test_what_could_not_go_along_whole_is_one_line_each(project: Path):
    (project / "big.txt").write_text("line of text\n" * 10_000, encoding="utf-8")
    (project / "data.bin").write_bytes(b"\0" * 600)
    (project / "short.txt").write_text("one\n", encoding="utf-8")
    text = "@big.txt @data.bin @short.txt:9 @src/gone.py, @someone @types/node me@x.org"
    assert attach(text, project).notices == (
        "@big.txt: only the first 50,000 of 130,000 bytes attached; the model can read the rest.",
        "@data.bin is not text; only its size is sent.",
        "@short.txt has no line 9.",
        "@src/gone.py matches no file; nothing is attached.",
    )


def test_what_is_attached_already_stays_as_it_is(project: Path):
    text = attach("fix @src/app.py please", project).text
    assert attach(text, project).text == text


def test_a_quoted_line_mentions_nothing(project: Path):
    text = "1. a.py, line 3 after the change\n    3| see @src/app.py\nWhy?\n4| @src/zoo"
    assert attach(text, project).text == text
    assert "print" in attach(f"{text}\nBut read @src/app.py", project).text


@pytest.mark.parametrize(
    ("written", "swapped"),
    [
        ("@src", "src"),
        ("@src/app.py", "src"),
        ("@src/app.py", "src/app.py"),
        ("@src/app.py:1-2", "src"),
        ("@src/a.png", "src"),
    ],
)
def test_a_link_that_replaces_what_was_judged_attaches_nothing(
    project: Path, tmp_path_factory: pytest.TempPathFactory, written: str, swapped: str
):
    outside = tmp_path_factory.mktemp("outside")
    for folder in (outside, project / "src"):
        (folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"outside_key")
    (outside / "app.py").write_text("outside_key\n")
    (outside / "credentials").touch()

    def judge(path: Path) -> str:
        place = project / swapped
        place.rename(project / "was")
        place.symlink_to(outside / place.relative_to(project / "src"))
        return ""

    attached = attach(f"see {written}", project, why_held=judge)
    assert "outside_key" not in attached.text
    assert "credentials" not in attached.text
    assert attached.images == ()
    assert "cannot be read" in attached.notices[0]
