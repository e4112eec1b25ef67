import os
import sys
from pathlib import Path
from types import ModuleType

import platformdirs
import pytest

from agent_tui.cli import own_files
from agent_tui.paths import user_data_dir

_METADATA = "Name: {name}\nVersion: 1\nMetadata-Version: 2.1\n{more}"


class Environment:
    """A virtual environment whose packages an installer linked from `cache`."""

    def __init__(self, folder: Path) -> None:
        self.prefix, self.cache = folder / "env", folder / "cache"
        self.packages = self.prefix / "lib/site-packages"
        self.cache.mkdir(parents=True)
        self.install("agent_tui_cli", "Requires-Dist: Needed[x]>=1; extra == 'y'\n")
        self.install("needed")
        self.install("other")
        self.install("plugin", "Requires-Dist: agent-tui-cli\n")
        (self.packages / "plugin-1.dist-info/entry_points.txt").write_text(
            "[agent_tui.tools]\nx = plugin:x\n"
        )

    def install(self, name: str, more: str = "") -> None:
        files = {
            f"{name}/__init__.py": f"# {name}\n",
            f"{name}-1.dist-info/METADATA": _METADATA.format(name=name, more=more),
        }
        for file, text in files.items():
            cached, installed = self.cache / file.replace("/", "-"), self.packages / file
            cached.write_text(text)
            os.utime(cached, (1_000_000_000, 1_000_000_000))
            installed.parent.mkdir(parents=True)
            installed.hardlink_to(cached)
        record = self.packages / f"{name}-1.dist-info/RECORD"
        record.write_text("".join(f"{file},,\n" for file in files))

    def link(self, name: str) -> Path:
        """Give the file `name` of the environment a second name; returns the file."""
        file = self.prefix / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("ours\n")
        (self.cache / name.replace("/", "-")).hardlink_to(file)
        return file

    def shared(self) -> set[str]:
        """The packages that have a file with a second name."""
        linked = [path for path in self.packages.rglob("*.py*") if path.stat().st_nlink > 1]
        return {path.relative_to(self.packages).parts[0] for path in linked}


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    made = Environment(tmp_path)
    (made.packages / "platformdirs").mkdir()
    monkeypatch.setattr(own_files, "user_data_dir", user_data_dir)
    monkeypatch.setattr(platformdirs, "__file__", str(made.packages / "platformdirs/__init__.py"))
    monkeypatch.setattr(sys, "path", [str(made.packages)])
    monkeypatch.setattr(sys, "prefix", str(made.prefix))
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "own"))
    return made


def test_what_the_program_imports_gets_a_name_of_its_own(environment: Environment):
    file = environment.packages / "needed/__init__.py"
    file.chmod(0o640)
    assert "7 files" in own_files.separate_own_files()
    assert environment.shared() == {"other"}
    assert (file.read_text(), oct(file.stat().st_mode)) == ("# needed\n", "0o100640")
    assert file.stat().st_mtime == 1_000_000_000  # bytecode stays valid
    assert sorted(path.name for path in file.parent.iterdir()) == ["__init__.py"]
    (environment.cache / "needed-__init__.py").write_text("evil")
    assert file.read_text() == "# needed\n"


def test_a_link_into_the_cache_becomes_a_file(environment: Environment):
    file = environment.packages / "needed/__init__.py"
    file.unlink()
    file.symlink_to(environment.cache / "needed-__init__.py")
    own_files.separate_own_files()
    assert (file.is_symlink(), file.read_text()) == (False, "# needed\n")


def test_bytecode_that_no_installer_listed_is_treated_like_its_source(environment: Environment):
    for number, folder in enumerate(("", "needed", "other")):
        file = environment.packages / folder / "__pycache__/x.pyc"
        file.parent.mkdir()
        file.write_bytes(b"code")
        file.with_name(f"{number}-in-cache").hardlink_to(file)
    own_files.separate_own_files()
    assert environment.shared() == {"other"}


@pytest.mark.parametrize("is_writable", [True, False])
def test_it_looks_again_until_all_files_are_replaced_where_it_may_write(
    environment: Environment, monkeypatch: pytest.MonkeyPatch, is_writable: bool
):
    replace = own_files.shutil.copy2

    def refuse(source: Path, target: Path) -> object:
        if source.name == "METADATA":
            return replace(source, target)
        raise OSError

    monkeypatch.setattr(own_files.os, "access", lambda *_words: is_writable)
    monkeypatch.setattr(own_files.shutil, "copy2", refuse)
    assert "4 files" in own_files.separate_own_files()
    monkeypatch.setattr(own_files.shutil, "copy2", replace)
    if is_writable:
        assert "3 files" in own_files.separate_own_files()
    assert own_files.separate_own_files() == ""
    assert environment.shared() == ({"other"} if is_writable else environment.shared())
    monkeypatch.setattr(own_files.os, "access", lambda *_words: True)
    assert bool(own_files.separate_own_files()) is not is_writable
    assert environment.shared() == {"other"}


def test_it_looks_again_only_after_an_installation(environment: Environment):
    own_files.separate_own_files()
    assert own_files.separate_own_files() == ""
    second = environment.cache / "second"
    second.hardlink_to(environment.packages / "needed/__init__.py")
    assert own_files.separate_own_files() == ""
    environment.install("newer")
    assert "2 files of agent-tui had a second name" in own_files.separate_own_files()


def test_where_it_may_not_write_the_program_starts_and_doctor_says_so(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_words: object, **_more: object) -> None:
        raise PermissionError

    monkeypatch.setattr(own_files.shutil, "copy2", refuse)
    assert own_files.separate_own_files() == ""
    assert environment.shared() == {"agent_tui_cli", "needed", "other", "plugin"}
    assert len(own_files.find_shared_files()) == 7


_STARTING = (
    "pyvenv.cfg",
    "bin/activate",
    "bin/python",
    "lib/site-packages/sitecustomize.py",
    "lib/site-packages/a.pth",
    "lib/site-packages/other-1.dist-info/entry_points.txt",
    "lib/site-packages/started/__init__.py",
)


def test_what_decides_how_the_environment_starts_gets_a_name_of_its_own(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
):
    files = [environment.link(name) for name in _STARTING]
    started = ModuleType("started")  # as a line of a .pth file imports it
    started.__file__ = str(files[-1])
    monkeypatch.setitem(sys.modules, "started", started)
    own_files.separate_own_files()
    for cached in environment.cache.iterdir():
        cached.write_text("evil")
    assert [file.read_text() for file in files] == ["ours\n"] * len(files)
    assert environment.shared() == {"other"}  # nothing runs it


def test_the_environments_links_to_its_interpreter_stay(environment: Environment, tmp_path: Path):
    interpreter = tmp_path / "python3"
    interpreter.touch()
    link = environment.prefix / "bin/python"
    link.parent.mkdir()
    link.symlink_to(interpreter)
    own_files.separate_own_files()
    assert link.is_symlink()


def test_without_an_environment_the_systems_files_keep_their_names(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    file = environment.link("bin/perl")
    own_files.separate_own_files()
    assert file.stat().st_nlink == 2
    assert environment.shared() == {"other"}


def test_an_interpreter_elsewhere_gets_no_second_name(environment: Environment, tmp_path: Path):
    interpreter = tmp_path / "python"
    interpreter.write_text("")
    (tmp_path / "pkgs-python").hardlink_to(interpreter)
    own_files.separate_own_files()
    assert interpreter.stat().st_nlink == 1
