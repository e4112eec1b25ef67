from pathlib import Path

from agent_tui.agent.turn.user_message import user_message
from agent_tui.messages import ImageContent, TextContent
from agent_tui.providers.base import ModelInfo
from tests.support.images import jpeg, png

SEES = ModelInfo("some/model", 100_000, 8_000, sees_images=True, source="table")
BLIND = ModelInfo("other/model", 100_000, 8_000, source="table")


def test_a_mentioned_image_goes_along_behind_those_that_were_given(tmp_path: Path):
    (tmp_path / "shot.png").write_bytes(png(800, 600))
    given = ImageContent(data="aGk=", mime_type="image/gif")
    message, notices = user_message("compare with @shot.png", (given,), tmp_path, SEES)
    text, first, second = message.content
    assert isinstance(text, TextContent)
    assert text.text.endswith('<file path="shot.png" image="image/png" size="800x600" />')
    assert first == given
    assert isinstance(second, ImageContent)
    assert second.mime_type == "image/png"
    assert notices == ()


def test_a_model_that_sees_none_gets_the_path_and_the_person_one_line(tmp_path: Path):
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(png())
    message, notices = user_message("see @a.png @b.png", (), tmp_path, BLIND)
    assert message.images == ()
    assert message.text.startswith("see @a.png @b.png")
    assert notices == (
        "other/model does not support images; the path is sent as text. Switch models with /model.",
    )


def test_an_image_that_is_too_large_is_refused_politely(tmp_path: Path):
    (tmp_path / "huge.png").write_bytes(jpeg(9_000, 9_000))
    message, notices = user_message("@huge.png", (), tmp_path, SEES)
    assert message.images == ()
    assert notices == (
        "huge.png is an image of 0.0 MB that cannot be reduced to the 3.8 MB that can be sent. "
        "Make it smaller first.",
    )


def test_text_alone_stays_text(tmp_path: Path):
    message, notices = user_message("hello", (), tmp_path, SEES)
    assert (message.content, notices) == ("hello", ())
