import gzip
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.web.download import MAX_TEXT_BYTES, DownloadedPage, Downloader
from agent_tui.features.web.exchange import Moved
from tests.support.certificates import certificate_of
from tests.support.web_site import Answer, WebSite, html, redirect


@pytest.fixture
def site() -> Iterator[WebSite]:
    with WebSite() as site:
        yield site


class Names:
    """A name server that leads each name to the next of its answers, and the last from then on."""

    def __init__(self, **answers: list[str]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        answers = self.answers[host.partition(".")[0]]
        return [answers.pop(0) if len(answers) > 1 else answers[0]]


def test_a_host_is_asked_at_the_address_that_was_checked(site: WebSite):
    names = Names(site=["127.0.0.1"])
    site.pages["/a?b=1"] = html("<p>Hi")
    downloader = Downloader(may_be_private=True, resolve=names)
    page = downloader.get(f"http://site.test:{site.port}/a?b=1#part")
    assert isinstance(page, DownloadedPage)
    assert (page.content, page.media_type, page.charset) == (b"<p>Hi", "text/html", "utf-8")
    assert names.asked == ["site.test"]
    assert site.asked == [(f"site.test:{site.port}", "/a?b=1")]


def test_a_private_address_is_refused_before_anything_is_sent(site: WebSite):
    with pytest.raises(ToolError, match=r"127.0.0.1 resolves to 127\.0\.0\.1, an address of this"):
        Downloader(may_be_private=False).get(site.address)
    assert site.asked == []


def test_each_redirect_is_looked_up_and_checked_anew(site: WebSite):
    names = Names(site=["127.0.0.1", "169.254.169.254"])
    site.pages["/"] = redirect("/keys")
    with pytest.raises(ToolError, match="is never fetched"):
        Downloader(may_be_private=True, resolve=names).get(f"http://site.test:{site.port}/")
    assert [path for _, path in site.asked] == ["/"]


def test_a_redirect_within_the_site_is_followed(site: WebSite):
    site.pages["/"] = redirect("sub/page")
    site.pages["/sub/page"] = redirect(f"http://www.site.test:{site.port}/end")
    site.pages["/end"] = html("there")
    names = Names(site=["127.0.0.1"], www=["127.0.0.1"])
    page = Downloader(may_be_private=True, resolve=names).get(f"http://site.test:{site.port}/")
    assert isinstance(page, DownloadedPage)
    assert page.url == f"http://www.site.test:{site.port}/end"


@pytest.mark.parametrize(
    "to", ["http://other.test/", "http://127.0.0.1:1/", "http://sub.127.0.0.1/", "//other.test/"]
)
def test_a_redirect_to_another_site_is_told_and_not_followed(site: WebSite, to: str):
    site.pages["/"] = redirect(to)
    moved = Downloader(may_be_private=True).get(site.address)
    assert moved == Moved(to if to.startswith("http") else f"http:{to}")


@pytest.mark.parametrize("to", ["file:///etc/passwd", "http://name:word@127.0.0.1/"])
def test_a_redirect_to_what_is_no_page_is_refused(site: WebSite, to: str):
    site.pages["/"] = redirect(to)
    with pytest.raises(ToolError):
        Downloader(may_be_private=True).get(site.address)


def test_redirects_in_a_circle_come_to_an_end(site: WebSite):
    site.pages["/"] = redirect("/")
    with pytest.raises(ToolError, match="redirects more than 5 times"):
        Downloader(may_be_private=True).get(site.address)


def test_a_page_without_end_is_read_up_to_the_limit(site: WebSite):
    site.pages["/"] = Answer(b"x" * 1_000_000, {"content-type": "text/plain"}, repeats=1_000)
    page = Downloader(may_be_private=True).get(site.address)
    assert isinstance(page, DownloadedPage)
    assert (len(page.content), page.is_cut) == (MAX_TEXT_BYTES, True)


def test_what_is_small_only_while_compressed_is_bounded_too(site: WebSite):
    packed = gzip.compress(bytes(20_000_000))
    headers = {"content-type": "text/plain", "content-encoding": "gzip"}
    site.pages["/"] = Answer(packed, headers)
    page = Downloader(may_be_private=True).get(site.address)
    assert isinstance(page, DownloadedPage)
    assert len(page.content) == MAX_TEXT_BYTES


@pytest.mark.parametrize(
    ("kind", "is_read"),
    [
        ("image/png", False),
        ("application/octet-stream", False),
        ("application/zip", False),
        ("application/pdf", True),
        ("application/ld+json", True),
        ("application/atom+xml; charset=utf-8", True),
        ("text/x-python", True),
        ("", True),
    ],
)
def test_only_what_holds_text_is_read(site: WebSite, kind: str, is_read: bool):
    site.pages["/"] = Answer(b"x", {"content-type": kind} if kind else {})
    if is_read:
        assert isinstance(Downloader(may_be_private=True).get(site.address), DownloadedPage)
    else:
        with pytest.raises(ToolError, match=f"is {kind}: fetch reads only text"):
            Downloader(may_be_private=True).get(site.address)


def test_an_error_of_the_server_is_told(site: WebSite):
    with pytest.raises(ToolError, match="answered 404 Not Found"):
        Downloader(may_be_private=True).get(f"{site.address}/nowhere")


def test_a_host_that_is_not_there_is_told():
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(ToolError, match=r"no\.such\.host was not found: .*not known"):
        Downloader(may_be_private=True, resolve=unknown).get("https://no.such.host/")


def test_the_next_address_is_tried_where_one_does_not_answer(site: WebSite):
    site.pages["/"] = html("there")
    with socket.socket() as taken:
        taken.bind(("127.0.0.2", 0))  # it does not listen
        downloader = Downloader(
            may_be_private=True, resolve=lambda _host, _port: ["127.0.0.2", "127.0.0.1"]
        )
        assert isinstance(downloader.get(f"http://site.test:{site.port}/"), DownloadedPage)


def test_a_proxy_is_given_the_name_and_private_addresses_stay_refused(site: WebSite):
    site.pages["http://site.test/a"] = html("through the proxy")

    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    downloader = Downloader(
        may_be_private=False, resolve=unknown, proxy_for=lambda _url: site.address
    )
    page = downloader.get("http://site.test/a")
    assert isinstance(page, DownloadedPage)
    assert page.content == b"through the proxy"
    with pytest.raises(ToolError, match="an address of this machine"):
        Downloader(may_be_private=False, proxy_for=lambda _url: site.address).get("http://127.1/")


def test_a_certificate_must_be_that_of_the_name_not_of_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    certificate = certificate_of("site.test", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with WebSite(tls) as site:
        site.pages["/"] = html("safe")
        names = Names(site=["127.0.0.1"], other=["127.0.0.1"])
        downloader = Downloader(may_be_private=True, resolve=names)
        page = downloader.get(f"https://site.test:{site.port}/")
        assert isinstance(page, DownloadedPage)
        assert page.content == b"safe"
        with pytest.raises(ToolError, match="CERTIFICATE_VERIFY_FAILED"):
            downloader.get(f"https://other.test:{site.port}/")
