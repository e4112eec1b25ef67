"""The package as it is handed out: its page, what is in it, and that it runs where it is put."""

import os
import pwd
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

import pytest

from agent_tui import __version__
from agent_tui.cli.subcommands import SUBCOMMANDS
from tests.support.moving_picture import (
    GOAL_PICTURE,
    LARGEST_BYTES,
    PICTURE,
    RULES_PICTURE,
    SHARING_PICTURE,
    WHY_PICTURE,
    WORKTREES_PICTURE,
)
from tests.support.patience import PATIENCE_S
from tests.support.rows import each_row

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "pages"
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=[\"']([^\"']+)")
LARGEST_WHEEL_BYTES = 2_500_000
PYTHONS = ("3.11", "3.12", "3.13")
TIME_S = 900


def run(*argv: object, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in argv],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIME_S,
        check=False,
    )
    assert done.returncode == 0, f"{argv}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return folder


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no git repository")
def test_the_top_of_the_repository_holds_what_belongs_there() -> None:
    tracked = set(run("git", "ls-files", cwd=ROOT).splitlines())
    assert {name.partition("/")[0] for name in tracked} == {
        *(".ci", ".github", ".gitignore", "AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md"),
        *("LICENSE", "README.md", "SECURITY.md", "agent_tui", "docs", "pyproject.toml"),
        *("requirements.lock", "requirements-dev.lock", "sessions.example", "tests"),
    }


def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def metadata(built: Path) -> Message:
    with zipfile.ZipFile(wheel(built)) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        return BytesParser().parsebytes(packed.read(name))


def python_of(version: str) -> Path | None:
    """A Python of `version` that runs; a launcher of pyenv is there for versions that are not."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    candidates = [shutil.which(f"python{version}")]
    candidates += map(str, home.glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in filter(None, candidates):
        said = subprocess.run(
            [candidate, "-c", "import sys; print(sys.executable)"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if said.returncode == 0:
            return Path(said.stdout.strip())
    return None


pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIME_S), pytest.mark.xdist_group("package")]


def test_both_forms_are_in_order(built: Path) -> None:
    said = run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir())
    assert said.count("PASSED") == 2


def test_every_link_of_the_page_works_away_from_the_repository(built: Path) -> None:
    found = metadata(built)
    page = str(found.get_payload())
    links = [first or second for first, second in LINK.findall(page)]
    assert len(links) > 10
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    files = [link for link in links if re.search("agent-tui/agent-tui/(?!actions/|issues)", link)]
    assert [link for link in files if f"/v{__version__}/" not in link] == []
    assert "$HFPR" not in page


def test_the_metadata_says_who_made_it_and_for_what(built: Path) -> None:
    found = metadata(built)
    assert (found["Name"], found["Version"]) == ("agent-tui-cli", __version__)
    assert found["Author"] == "agent-tui contributors"
    assert found.get_all("Project-URL")
    assert "Typing :: Typed" in found.get_all("Classifier", [])


def test_the_wheel_is_small_and_holds_the_program_alone(built: Path) -> None:
    assert wheel(built).stat().st_size < LARGEST_WHEEL_BYTES
    with zipfile.ZipFile(wheel(built)) as packed:
        names = packed.namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {
        "agent_tui",
        "agent_tui_cli",
    }
    assert {
        "agent_tui/py.typed",
        "agent_tui/secret_rules.json",
        "agent_tui/secret_rules.LICENSE",
        *(f"agent_tui/docs/{page.relative_to(PAGES)}" for page in PAGES.glob("**/*.md")),
    } <= set(names)
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as packed_source:
        inside = {name.partition("/")[2] for name in packed_source.getnames()}
    assert {"LICENSE", "CHANGELOG.md", "docs/packaging/agent-tui.1"} <= inside


@pytest.mark.parametrize("installer", ["pip", "uv"])
@pytest.mark.parametrize("version", PYTHONS)
def test_it_runs_in_an_empty_environment(
    built: Path, tmp_path: Path, version: str, installer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    uv = shutil.which("uv")
    if installer == "uv" and uv is None:
        pytest.skip("there is no uv here")
    folder = tmp_path / "env"
    run(python, "-m", "venv", *(["--without-pip"] if installer == "uv" else []), folder)
    ours = folder / "bin" / "python"
    if installer == "uv":
        run(uv, "pip", "install", "--python", ours, wheel(built))
    else:
        run(ours, "-m", "pip", "install", wheel(built))
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    program = folder / "bin" / "agent-tui"
    assert run(program, "--version", cwd=tmp_path) == f"agent-tui {__version__}\n"
    for name in ("", *SUBCOMMANDS):
        assert "usage: agent-tui" in run(program, *filter(None, [name]), "--help", cwd=tmp_path)
    said = run(program, "--demo", "--permission-mode", "full", "-p", "Fix the bug", cwd=tmp_path)
    assert "The test passes" in said


@each_row(
    "picture",
    [PICTURE, GOAL_PICTURE, WHY_PICTURE, SHARING_PICTURE, RULES_PICTURE, WORKTREES_PICTURE],
    ids=lambda picture: picture.name,
)
def test_the_moving_pictures_are_small(picture: Path) -> None:
    assert picture.stat().st_size < LARGEST_BYTES
