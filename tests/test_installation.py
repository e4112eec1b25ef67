import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from agent_tui.installation import (
    DISTRIBUTION,
    Installation,
    foreign_program,
    install_command,
    package_command,
)

ROOT = Path(__file__).parents[1]
ADVICE = re.compile(r"(?:pip|pipx|tool) install [^`\n&]*agent[-_]tui\S*|agent-tui\[\w+\]")


def a_python(folder: Path) -> Path:
    folder.mkdir(parents=True)
    python = folder / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return python


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts the record of a distribution where Python looks first, into an environment of pip's."""
    packages = tmp_path / "packages"
    python = a_python(tmp_path / "bin")
    monkeypatch.setattr(sys, "executable", str(python.with_name("python3")))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pip", type(sys)("pip"))
    sys.modules["pip"].__spec__ = sys.__spec__
    monkeypatch.setenv("PATH", str(python.parent))
    monkeypatch.syspath_prepend(str(packages))

    def install(name: str, origin: object = None, entry: str = "agent_tui.__main__:main") -> None:
        record = packages / f"{name.replace('-', '_')}-9.9.dist-info"
        record.mkdir(parents=True)
        (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
        (record / "entry_points.txt").write_text(f"[console_scripts]\nagent-tui = {entry}\n")
        if origin is not None:
            (record / "direct_url.json").write_text(json.dumps(origin))

    return install


def test_the_name_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION


@pytest.mark.parametrize("folder", ["agent_tui", "docs", "README.md", "CONTRIBUTING.md"])
def test_whatever_says_how_to_install_names_the_project(folder: str) -> None:
    top = ROOT / folder
    files = [top] if top.is_file() else [*top.rglob("*.py"), *top.rglob("*.md")]
    said = [found for file in files for found in ADVICE.findall(file.read_text())]
    assert not [advice for advice in said if DISTRIBUTION not in advice]


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, 'python -m pip install "agent-tui-cli[mcp]"'),
        (
            {"url": "file:///home/me/my%20tui", "dir_info": {"editable": True}},
            'python -m pip install -e "/home/me/my tui[mcp]"',
        ),
        (
            {"url": "file:///home/me/tui", "dir_info": {}},
            'python -m pip install "agent-tui-cli[mcp] @ file:///home/me/tui"',
        ),
        (
            {"url": "file:///home/me/a.whl", "archive_info": {}},
            'python -m pip install "agent-tui-cli[mcp] @ file:///home/me/a.whl"',
        ),
        (
            {"url": "https://x.org/a", "vcs_info": {"vcs": "git", "commit_id": "beef"}},
            'python -m pip install "agent-tui-cli[mcp] @ git+https://x.org/a@beef"',
        ),
        ([], 'python -m pip install "agent-tui-cli[mcp]"'),
    ],
)
def test_the_advice_names_where_this_copy_came_from(installed, origin, command) -> None:
    installed(DISTRIBUTION, origin)
    assert install_command("mcp") == command


@pytest.mark.parametrize(
    ("mark", "command", "package"),
    [
        ("pipx_metadata.json", "pipx install --force", "pipx inject agent-tui-cli x"),
        ("uv-receipt.toml", "uv tool install --force", "uv pip install --python "),
    ],
)
def test_a_program_in_an_environment_of_its_own_is_changed_by_what_made_it(
    installed, tmp_path: Path, mark: str, command: str, package: str
) -> None:
    installed(DISTRIBUTION)
    (tmp_path / mark).touch()
    assert install_command("local") == f'{command} "agent-tui-cli[local]"'
    assert package_command("x").startswith(package)


def test_a_folder_stays_editable_as_a_tool_of_uv() -> None:
    tool = Installation("uv tool", folder="/home/me/tui")
    assert tool.command("local") == 'uv tool install --force --editable "/home/me/tui[local]"'


def test_another_python_on_the_path_is_not_named(
    installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(DISTRIBUTION)
    ours = a_python(tmp_path / "my env" / "bin")
    monkeypatch.setattr(sys, "executable", str(ours))
    assert install_command("local") == f"'{ours}' -m pip install \"agent-tui-cli[local]\""
    assert package_command("x") == f"'{ours}' -m pip install x"


def test_where_pip_is_missing_uv_is_named(installed, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(DISTRIBUTION)
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setattr(sys, "executable", "/env/bin/python")
    command = 'uv pip install --python /env/bin/python "agent-tui-cli[local]"'
    assert install_command("local") == command
    assert package_command("x") == "uv pip install --python /env/bin/python x"


def test_what_a_shell_would_read_is_quoted() -> None:
    odd = Installation(folder="/a$b")
    assert odd.requirement("mcp") == "-e '/a$b[mcp]'"


def test_a_program_of_the_same_name_is_told_of(installed) -> None:
    installed("agent-tui", entry="agent_tui.app:main")
    said = " ".join(foreign_program())
    assert "Another program named agent-tui (9.9)" in said
    assert "python -m pip uninstall agent-tui" in said


def test_an_earlier_copy_of_ours_is_no_other_program(installed) -> None:
    installed("agent-tui")
    assert foreign_program() == ("", "")
