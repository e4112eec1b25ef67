"""What the file tools ask about although a file's own path does not say so."""

import os
import subprocess
from pathlib import Path

import pytest

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.verdict import Verdict
from agent_tui.safe_paths import real_path
from agent_tui.tools.base import Access, Intent
from tests.support.rows import each_row

_TOKEN = "ghp_" + "q7Rk2LmX9vT4bN8sWc3yJ6hD1fG5pZ0aKeUo"


def _engine(workspace: Path, mode: PermissionMode = "accept-edits") -> PermissionEngine:
    return PermissionEngine(
        mode=mode,
        rules=PermissionSettings(),
        workspace=workspace,
        project_rules_file=workspace / "nowhere/permissions.toml",
        scratch_folders=(),
    )


def _judge(
    engine: PermissionEngine, tool: str, access: Access, folder: Path, *names: str
) -> Verdict:
    paths = tuple(real_path(folder / name) for name in names)
    return engine.judge(tool, Intent(tool, access, paths=paths))


def _write(folder: Path, *names: str, mode: PermissionMode = "full") -> Verdict:
    return _judge(_engine(folder, mode), "write", "write", folder, *names)


def _read(folder: Path, name: str, *, started_in: str = "") -> Verdict:
    return _judge(_engine(folder / started_in, "full"), "read", "read", folder, name)


def _make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("SECRET=1\n")


def _link(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(text)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


@each_row("last", ["HEAD", "objects/k", "refs/k", "HEAD.d/../HEAD"])
def test_a_write_that_completes_a_repository_asks(tmp_path: Path, last: str):
    parts = {"HEAD", "objects/k", "refs/k"} - {os.path.normpath(last)}
    folder = tmp_path / last.replace("/", "_")
    _make(folder, *(f"doc/{name}" for name in parts))
    verdict = _write(folder, f"doc/{last}")
    assert verdict.decision == "ask"
    assert "git" in verdict.why
    assert _write(folder, "doc/readme").decision == "allow"


def test_one_call_that_writes_all_parts_of_a_repository_asks(tmp_path: Path):
    assert _write(tmp_path, "doc/HEAD", "doc/objects/k", "doc/refs/k").decision == "ask"
    assert _write(tmp_path, "doc/HEAD", "doc/objects/k").decision == "allow"
    assert _write(tmp_path, "doc/HEAD", "doc/commondir").decision == "ask"


@each_row("name", ["config", "hooks/pre-commit", "HEAD", "info/attributes"])
def test_changing_a_repository_with_another_name_asks_as_in_a_git_folder(tmp_path: Path, name: str):
    folder = tmp_path / name.replace("/", "_")
    folder.mkdir()
    _git(folder, "init", "-q", "--bare", "store.git")
    _git(folder, "init", "-q", "--separate-git-dir", "gd", "work")
    _git(folder, "init", "-q", "plain")
    (folder / "plain/.git").rename(folder / "plain/repo.git")
    (folder / "plain/.git").write_text("gitdir: ./repo.git\n")
    for repository in ("store.git", "gd", "plain/repo.git"):
        assert _write(folder, f"{repository}/{name}").decision == "ask", repository
    assert _write(folder, "work/a").decision == "allow"


@each_row(
    ("link", "text", "written", "mode"),
    [
        (".git/hooks/pre-commit", "../../scripts/pre-commit.sh", "scripts/pre-commit.sh", "full"),
        (".git/hooks", "../hk", "hk/pre-push", "full"),
        (".envrc", "conf/envrc", "conf/envrc", "full"),
        (".vscode/tasks.json", "../conf/tasks.json", "conf/tasks.json", "accept-edits"),
        (".vscode", "conf/vs", "conf/vs/new.json", "accept-edits"),
        (".claude", "agents", "agents/new.md", "accept-edits"),
        ("CLAUDE.md", "real.md", "real.md", "accept-edits"),
        ("sub/.github/workflows/ci.yml", "../../../ci.yml", "ci.yml", "accept-edits"),
    ],
)
def test_changing_what_a_link_leads_to_asks_as_for_the_link(
    tmp_path: Path, link: str, text: str, written: str, mode: PermissionMode
):
    folder = tmp_path / f"at-{link}".replace("/", "_")
    _make(folder, ".git/HEAD", "other")
    _link(folder, link, text)
    verdict = _write(folder, written, mode=mode)
    assert verdict.decision == "ask"
    assert str(folder / link) in verdict.why
    assert str(folder / written) in verdict.why
    assert _write(folder, "other", mode=mode).decision == "allow"


def test_links_that_lead_to_links_count(tmp_path: Path):
    _make(tmp_path, "deep/t.json")
    _link(tmp_path, ".vscode", "one")
    _link(tmp_path, "one", "two")
    _link(tmp_path, "two/tasks.json", "../deep/t.json")
    assert _write(tmp_path, "deep/t.json", mode="accept-edits").decision == "ask"


def test_links_in_a_circle_end(tmp_path: Path):
    _make(tmp_path, "a/x")
    for name in ("one", "two", "three", "four"):
        _link(tmp_path, f"a/{name}", ".")
    _link(tmp_path, "self", "self")
    assert _write(tmp_path, "a/x").decision == "allow"


def test_a_link_is_found_as_soon_as_it_is_there(tmp_path: Path):
    _make(tmp_path, "conf/envrc", "sub/a")
    engine = _engine(tmp_path)

    def decision() -> str:
        return _judge(engine, "write", "write", tmp_path, "conf/envrc").decision

    assert decision() == "allow"
    _link(tmp_path, "sub/.envrc", "../conf/envrc")
    assert decision() == "ask"
    (tmp_path / "sub/.envrc").unlink()
    assert decision() == "allow"


def test_a_link_in_an_added_folder_counts(tmp_path: Path):
    _make(tmp_path, "ws/a", "added/conf/envrc")
    _link(tmp_path, "added/.envrc", "conf/envrc")
    engine = _engine(tmp_path / "ws")
    engine.work_in((tmp_path / "added",))
    assert _judge(engine, "write", "write", tmp_path, "added/conf/envrc").decision == "ask"


@each_row(
    ("link", "text", "read"),
    [
        (".env", "conf/devsettings", "conf/devsettings"),
        (".env", "conf/devsettings", ".env"),
        (".envrc", "conf/envrc", "conf/envrc"),
        (".env.local", "conf.local", "conf.local"),
        (".ssh/id_rsa", "../id/key", "id/key"),
        (".ssh", "id", "id/other"),
    ],
)
def test_reading_a_secret_behind_a_link_asks(tmp_path: Path, link: str, text: str, read: str):
    folder = tmp_path / f"at-{link}-{read}-x".replace("/", "_")
    target = os.path.normpath(Path(link).parent / text)
    _make(folder, f"{target}/other" if read.startswith(f"{target}/") else target, "plain")
    _link(folder, link, text)
    verdict = _read(folder, read)
    assert verdict.decision == "ask"
    assert str(folder / link) in verdict.why
    is_held = _engine(folder).search_filter(folder)
    assert is_held(real_path(folder / read))
    assert not is_held(folder / "plain")


def test_a_link_in_the_repository_around_the_folder_counts(tmp_path: Path):
    _make(tmp_path, "conf/dev", "p/q/a", ".git/HEAD")
    _link(tmp_path, ".env", "conf/dev")
    for read in (".env", "conf/dev"):
        assert _read(tmp_path, read, started_in="p/q").decision == "ask"
    assert _read(tmp_path, "p/q/a", started_in="p/q").decision == "allow"


@each_row(
    ("name", "text"),
    [
        ("tool/etc/npmrc", f"//registry.npmjs.org/:_authToken={_TOKEN}\n"),
        ("tool/pip.conf", "[global]\nindex-url = https://user:hunter2hunter@pypi.example/simple\n"),
        ("tool/conf/settings.xml", "<servers><password>hunter2hunter</password></servers>"),
        ("ws/.venv/pip.conf", f"[global]\nindex-url = https://u:{_TOKEN}@pypi.example/simple\n"),
    ],
)
def test_reading_settings_of_tools_with_tokens_asks(tmp_path: Path, name: str, text: str):
    _make(tmp_path, "ws/.venv/pyvenv.cfg", name)
    file = tmp_path / name
    file.write_text("[global]\ntimeout = 3\n")
    assert _judge(_engine(tmp_path / "ws"), "read", "read", file, "").decision == "allow"
    file.write_text(text)
    verdict = _judge(_engine(tmp_path / "ws"), "read", "read", file, "")
    assert (verdict.decision, verdict.why) == ("ask", f"{file} may contain keys or passwords")
    assert _engine(tmp_path / "ws").search_filter(file.parent)(file)


@each_row("make", ["--bare gd", "--separate-git-dir gd work"])
def test_reading_the_settings_of_any_repository_asks_if_they_have_tokens(tmp_path: Path, make: str):
    folder = tmp_path / make.replace(" ", "_")
    folder.mkdir()
    _git(folder, "init", "-q", *make.split())
    assert _read(folder, "gd/config").decision == "allow"
    for name in ("config", "config.worktree", "config.bak"):
        with (folder / "gd" / name).open("a") as config:
            config.write(f'[remote "o"]\n\turl = https://u:{_TOKEN}@git.example/x\n')
        assert _read(folder, f"gd/{name}").decision == "ask", name
        assert _engine(folder).search_filter(folder)(folder / "gd" / name)


@pytest.mark.thorough
def test_a_look_again_at_many_folders_is_quick(tmp_path: Path):
    for number in range(2_000):
        (tmp_path / f"{number % 50}/{number}").mkdir(parents=True)
    engine = _engine(tmp_path)
    assert _judge(engine, "write", "write", tmp_path, "a").decision == "allow"


def test_a_path_with_very_many_parts_is_judged_quickly(tmp_path: Path):
    _make(tmp_path, "conf/envrc")
    _link(tmp_path, ".envrc", "conf/envrc")
    path = Path("/" + "a/" * 300_000)
    for access in ("read", "write"):
        intent = Intent("write", access, paths=(tmp_path / path.relative_to("/"),))
        assert _engine(tmp_path).judge("write", intent).decision == "allow"
