from pathlib import Path

import pytest

from agent_tui.errors import UsageError
from agent_tui.ui.prompt.attachments import may_be_images, paths_in_paste, read_pasted
from tests.support.images import jpeg, png
from tests.support.rows import each_row


@each_row(
    ("pasted", "paths"),
    [
        ("/tmp/shot.png", ("/tmp/shot.png",)),
        ("'/tmp/my shot.png' ", ("/tmp/my shot.png",)),
        (r"/tmp/my\ shot.PNG", ("/tmp/my shot.PNG",)),
        ("file:///tmp/my%20shot.jpg\n", ("/tmp/my shot.jpg",)),
        ("/tmp/my shot.png", ("/tmp/my shot.png",)),
        ("/a.png '/b c.gif'", ("/a.png", "/b c.gif")),
        ("~/it's.png", ("~/it's.png",)),
        ("see /tmp/shot.png", ()),
        ("/tmp/shot.png is broken", ()),
        ("shot.png", ()),
        ("https://example.org/shot.png", ()),
        ("", ()),
    ],
)
def test_paths_are_read_as_terminals_write_them(pasted: str, paths: tuple[str, ...]):
    assert paths_in_paste(pasted) == paths
    assert may_be_images(pasted) or not paths


def test_all_are_images_or_the_paste_stays_text(tmp_path: Path):
    (tmp_path / "a.png").write_bytes(png(3, 2))
    (tmp_path / "b.png").write_text("no image", encoding="utf-8")
    (found,) = read_pasted("./a.png", tmp_path)
    assert (found.path, found.image.width, found.image.height) == ("./a.png", 3, 2)
    assert read_pasted("./a.png ./b.png", tmp_path) == ()
    assert read_pasted("~nobody-known/a.png", tmp_path) == ()
    (tmp_path / "huge.png").write_bytes(jpeg(9_000, 9_000))
    with pytest.raises(UsageError, match="cannot be reduced to the"):
        read_pasted("./huge.png", tmp_path)
