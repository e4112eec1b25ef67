import pytest

from agent_tui.errors import ToolError
from agent_tui.features.web.address import web_url
from tests.support.rows import each_row


@each_row(
    ("given", "text", "host"),
    [
        ("docs.python.org/3/", "https://docs.python.org/3/", "docs.python.org"),
        ("HTTP://Example.COM.:8080?q=1#part", "http://example.com:8080/?q=1", "example.com"),
        ("https://bücher.example/ä b", None, ""),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4", None),
        ("http://[2606:4700::1111]/", "http://[2606:4700::1111]/", "2606:4700::1111"),
        ("https://a.b/c%20d?x=%2F&y=[1]", "https://a.b/c%20d?x=%2F&y=%5B1%5D", "a.b"),
    ],
)
def test_a_url_has_one_form(given: str, text: str | None, host: str | None):
    if text is None:
        with pytest.raises(ToolError):
            web_url(given)
        return
    url = web_url(given)
    assert url.text == text
    assert url.host == (host or "xn--bcher-kva.example")
    assert web_url(url.text) == url


@each_row(
    "given",
    [
        "file:///etc/passwd",
        "ftp://example.org/",
        "javascript:alert(1)",
        "file:/etc/passwd",
        "https://",
        "https:///path",
        "https://good.example\\@evil.example/",
        "https://good.example@evil.example/",
        "https://user:pass@good.example/",
        "https://good.example%00.evil.example/",
        "https://a b/",
        "https://a/\r\nHost: b",
        "https://[::1",
        "https://a:port/",
        "https://a..b/",
    ],
)
def test_what_could_be_read_in_two_ways_or_is_no_page_is_refused(given: str):
    with pytest.raises(ToolError):
        web_url(given)
