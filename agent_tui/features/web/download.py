"""Downloads one page: from checked addresses only, with limits on time, size and redirects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import urljoin
from urllib.request import getproxies, proxy_bypass

import httpx

from agent_tui._version import __version__
from agent_tui.errors import ToolError
from agent_tui.features.web.address import web_url
from agent_tui.features.web.exchange import Moved
from agent_tui.tools.addresses import Resolve, check_addresses, resolve

MAX_TEXT_BYTES: Final = 3_000_000
"""Bytes; of a longer page or text only this much is read."""

MAX_DOCUMENT_BYTES: Final = 30_000_000
"""Bytes; part of a document is useless: a longer one is refused."""

_MAX_REDIRECTS = 5
_WAIT_S = 20.0
"""Seconds for a connection, and for each piece of the response."""

_HEADERS: Final = {
    "user-agent": f"agent-tui/{__version__}",
    "accept": "text/markdown, text/html;q=0.9, application/json;q=0.8, text/*;q=0.8, */*;q=0.5",
    "accept-language": "en, *;q=0.5",
    "accept-encoding": "gzip, deflate",
}
_TEXTS = frozenset({"json", "xml", "javascript", "yaml", "x-yaml", "toml", "sql", "x-sh", "rtf"})
_MARKUP = frozenset({"text/html", "application/xhtml+xml"})
_PDF: Final = "application/pdf"


@dataclass(frozen=True, slots=True)
class DownloadedPage:
    """A downloaded page.

    Attributes:
        url: Its address, after redirects.
        media_type: Such as ``text/html``; empty if the server names none.
        charset: As the server names it, or empty.
        content: The body, decompressed.
        is_cut: Whether there was more.
    """

    url: str
    media_type: str
    charset: str
    content: bytes
    is_cut: bool

    @property
    def is_markup(self) -> bool:
        """Whether it is HTML."""
        return self.media_type in _MARKUP or (
            not self.media_type and self.content.lstrip()[:1] == b"<"
        )


class Downloader:
    """Downloads pages.

    Args:
        may_be_private: Whether this machine and private networks may be accessed.
        resolve: Finds the addresses of hosts.
        proxy_for: The proxy for a URL, or empty.
    """

    def __init__(
        self,
        *,
        may_be_private: bool,
        resolve: Resolve = resolve,
        proxy_for: Callable[[httpx.URL], str] | None = None,
    ) -> None:
        self._may_be_private = may_be_private
        self._resolve = resolve
        self._proxy_for = proxy_for or _environments_proxy

    def get(self, address: str) -> DownloadedPage | Moved:
        """The page at `address`, redirects within its site followed, each checked again.

        Raises:
            ToolError: It cannot be downloaded; the text says why.
        """
        url = _url(address)
        for _ in range(_MAX_REDIRECTS + 1):
            answer = self._ask(url)
            if isinstance(answer, DownloadedPage):
                return answer
            if not _is_same_site(url, answer):
                return Moved(str(answer))
            url = answer
        raise ToolError(f"{address} redirects more than {_MAX_REDIRECTS} times.")

    def _ask(self, url: httpx.URL) -> DownloadedPage | httpx.URL:
        """The page, or where it has moved to."""
        host = url.raw_host.decode()
        proxy = self._proxy_for(url)
        try:
            addresses = self._resolve(host, url.port or (443 if url.scheme == "https" else 80))
        except (OSError, UnicodeError) as error:
            if not proxy:
                raise ToolError(f"{host} was not found: {error}") from error
            addresses = ()
        check_addresses(host, addresses, may_be_private=self._may_be_private)
        try:
            with httpx.Client(
                verify=httpx.create_ssl_context(),
                proxy=proxy or None,
                timeout=_WAIT_S,
                trust_env=False,
            ) as client:
                if proxy:
                    return _answer(client, url, url)
                return _first_answer(client, url, addresses)
        except (httpx.HTTPError, httpx.InvalidURL, ImportError, ValueError) as error:
            why = str(error) or type(error).__name__
            raise ToolError(f"{host} cannot be reached: {why}") from error


def _url(address: str) -> httpx.URL:
    """The canonical form of `address`, which httpx must parse as we do.

    Raises:
        ToolError: It is not a URL that can be fetched.
    """
    form = web_url(address)
    try:
        url = httpx.URL(form.text)
    except httpx.InvalidURL as error:
        raise ToolError(f"{form} is not a valid URL: {error}") from error
    if url.raw_host.decode() != form.host:
        raise ToolError(f"{form} is not the URL of a page.")
    return url


def _is_same_site(url: httpx.URL, other: httpx.URL) -> bool:
    """Whether a redirect stays on the same host, apart from ``www.``, and is no less secure."""
    same_host = _without_www(url.host) == _without_www(other.host)
    if url.scheme == "http" and other.scheme == "https":
        return same_host and url.port is None and other.port is None
    return same_host and (url.scheme, url.port) == (other.scheme, other.port)


def _without_www(host: str) -> str:
    return host.removeprefix("www.").removesuffix(".")


def _environments_proxy(url: httpx.URL) -> str:
    proxy = getproxies().get(url.scheme, "")
    return "" if not proxy or proxy_bypass(url.host) else proxy


def _first_answer(
    client: httpx.Client, url: httpx.URL, addresses: Sequence[str]
) -> DownloadedPage | httpx.URL:
    """The response of the first checked address that accepts a connection."""
    *others, last = addresses
    for address in others:
        try:
            return _answer(client, url, url.copy_with(host=address.partition("%")[0]))
        except (httpx.ConnectError, httpx.ConnectTimeout):
            continue
    return _answer(client, url, url.copy_with(host=last.partition("%")[0]))


def _answer(client: httpx.Client, url: httpx.URL, at: httpx.URL) -> DownloadedPage | httpx.URL:
    """Request the page of `url` from `at`, one of its addresses."""
    request = client.build_request(
        "GET",
        at,
        headers={"host": url.netloc.decode(), **_HEADERS},
        extensions={"sni_hostname": url.raw_host.decode()},
    )
    response = client.send(request, stream=True)
    try:
        if response.has_redirect_location:
            return _url(urljoin(str(url), response.headers["location"]))
        if response.status_code != HTTPStatus.OK:
            said = f"{response.status_code} {response.reason_phrase}".strip()
            raise ToolError(f"{url} answered {said}.")
        return _page(url, response)
    finally:
        response.close()


def _page(url: httpx.URL, response: httpx.Response) -> DownloadedPage:
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    kind, _, name = media_type.partition("/")
    is_text = not media_type or kind == "text" or bool(_TEXTS & set(name.split("+")))
    if not (is_text or media_type in _MARKUP or media_type == _PDF):
        size = response.headers.get("content-length", "")
        told = f" of {int(size):,} bytes" if size.isdigit() else ""
        raise ToolError(f"{url} is {media_type[:80]}{told}: fetch reads only text, HTML and PDF.")
    most = MAX_DOCUMENT_BYTES if media_type == _PDF else MAX_TEXT_BYTES
    content = bytearray()
    for chunk in response.iter_bytes(65_536):
        content += chunk
        if len(content) > most:
            break
    is_cut = len(content) > most
    if is_cut and media_type == _PDF:
        raise ToolError(f"{url} is a PDF of more than {most:,} bytes.")
    charset = response.charset_encoding or ""
    return DownloadedPage(str(url), media_type, charset, bytes(content[:most]), is_cut)
