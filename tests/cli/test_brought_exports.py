"""Export formats of other packages: loaded, refused, and used from the shell and by a command."""

import subprocess
from pathlib import Path

import pytest

from agent_tui.cli.plugins import load_plugins
from agent_tui.commands.core.plugin_kinds import EXPORTS
from agent_tui.commands.core.registry import load_commands
from agent_tui.errors import SessionError
from agent_tui.features.export.command import export_target
from agent_tui.features.export.documents import MARKDOWN
from agent_tui.sessions.entries import Header
from agent_tui.sessions.export.formats import export_text, own_formats
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.support.packages import call_with_packages, make_package, run_with_packages
from tests.support.session_values import entry, user

CODE = """
from agent_tui import ExportedSession, ExportFormat

open("{marker}", "w").close()

def text(session: ExportedSession) -> str:
    return "\\n".join([session.document.title, *(one.text for one in session.document.blocks)])

def leaking(session):
    return "\\x1b[31m" + session.log.path_entries()[0].message.text

PLAIN = ExportFormat("plain", ".txt", "100% plain text", text)
LEAKING = ExportFormat("leaking", ".md", "as it is", leaking)
MD = ExportFormat("md", ".md", "another Markdown", text)
FAULTY = ExportFormat("faulty", ".x", "nothing", lambda session: 1 / 0)

def __getattr__(name):
    if name == "PATH":
        return ExportFormat("path", "/../x", "elsewhere", text)
    raise AttributeError(name)
"""
NAMES = ("PLAIN", "LEAKING", "FAULTY", "MD", "PATH", "text")
KEY = "sk-ant-api03-0123456789abcdefghijklmnop"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, one of which is ``plain-plugin``."""
    site = tmp_path / "site"
    code = CODE.replace("{marker}", str(tmp_path / "imported"))
    make_package(site, "plain-plugin", code, {"agent_tui.exports": {name: name for name in NAMES}})
    monkeypatch.syspath_prepend(str(site))
    return site


def session() -> SessionLog:
    log = SessionLog.create(None, Header(id="1111", cwd="/w"))
    log.append(entry(user(f"The lamp is out. {KEY}")))
    return log


@pytest.mark.usefixtures("site")
def test_a_format_is_loaded_and_others_are_refused_with_their_reason(tmp_path: Path) -> None:
    found = load_plugins(["plain-plugin"], [tmp_path / "work"], (EXPORTS,))
    known = found.of(EXPORTS)
    assert known[: len(own_formats())] == own_formats()
    assert [one.name for one in known[len(own_formats()) :]] == ["plain", "leaking", "faulty"]
    exists, path, wrong = found.problems
    assert "md exists already" in exists
    assert "the suffix '/../x' is not like '.txt'" in path
    assert "text was not made by agent_tui.ExportFormat" in wrong


def test_a_format_where_commands_may_write_is_not_imported(site: Path, tmp_path: Path) -> None:
    found = load_plugins(["plain-plugin"], [site], (EXPORTS,))
    assert found.of(EXPORTS) == own_formats()
    assert "where the model's commands can write" in found.problems[0]
    assert not (tmp_path / "imported").exists()


@pytest.mark.usefixtures("site")
def test_it_writes_no_keys_and_its_failure_is_an_error_that_names_it() -> None:
    known = {one.name: one for one in load_plugins(["plain-plugin"], [], (EXPORTS,)).of(EXPORTS)}
    assert export_text(session(), known["plain"]).startswith("The lamp is out.")
    for name in ("plain", "leaking"):
        text = export_text(session(), known[name], ("lamp",))
        assert not {KEY, "lamp", "\x1b"} & {part for part in (KEY, "lamp", "\x1b") if part in text}
    with pytest.raises(SessionError, match="export format faulty failed: ZeroDivisionError"):
        export_text(session(), known["faulty"])


@pytest.mark.usefixtures("site")
def test_the_hint_of_the_command_names_it() -> None:
    plugins = load_plugins(["plain-plugin"], [], (EXPORTS,))
    export = load_commands(plugins).find("export")
    assert export is not None
    assert export.argument_hint == "[md|html|atif|jsonl|plain|leaking|faulty] [path]"


@pytest.mark.usefixtures("site")
def test_the_command_means_it_by_its_name_or_suffix(tmp_path: Path) -> None:
    formats = load_plugins(["plain-plugin"], [], (EXPORTS,)).of(EXPORTS)
    form, path = export_target("plain", session(), tmp_path, formats)
    assert (form.name, path.suffix) == ("plain", ".txt")
    assert export_target("a.txt", session(), tmp_path, formats)[0].name == "plain"
    assert export_target("a.md", session(), tmp_path, formats)[0] is MARKDOWN


def test_a_conversation_exports_in_it(site: Path, tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions", "none")
    with store.create(Header(id="1111", cwd=str(tmp_path / "here"))) as log:
        log.append(entry(user("The lamp is out.")))
        argv = ("-p", "/export plain lamp.txt", "-r", str(log.path))
    run_with_packages(site, tmp_path, *argv, plugins='["plain-plugin"]')
    assert (tmp_path / "here" / "lamp.txt").read_text().startswith("The lamp is out.\n")


def test_the_shell_exports_in_it(site: Path, tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions", "none")
    with store.create(Header(id="1111", cwd=str(tmp_path / "here"))) as log:
        log.append(entry(user("The lamp is out.")))
        file = str(log.path)

    def run(*argv: str, plugins: str = '["plain-plugin"]') -> subprocess.CompletedProcess[str]:
        return call_with_packages(site, tmp_path, "sessions", "export", *argv, plugins=plugins)

    assert "plain is 100% plain text" in " ".join(run("--help").stdout.split())
    printed = run(file, "--format", "plain").stdout
    assert printed.startswith("The lamp is out.\n")
    run(file, "--output", "lamp.txt")
    assert (tmp_path / "here" / "lamp.txt").read_text() == printed
    assert run(file, "--format", "faulty").returncode == 1
    without = run(file, "--format", "plain", plugins="[]")
    assert (without.returncode, "invalid choice: 'plain'" in without.stderr) == (2, True)
