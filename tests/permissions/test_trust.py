import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.agent.prompt.context_files import load_context_files
from agent_tui.errors import ConfigError
from agent_tui.permissions.project_files import project_files
from agent_tui.permissions.trust import NOT_TRUSTED, FolderTrust, TrustFile
from agent_tui.tools.git.worktree import Worktree
from agent_tui.tools.git.worktree_records import WorktreeRecords
from tests.support.rows import each_row


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with a repository `proj` that has instructions and settings."""
    proj = tmp_path / "home" / "proj"
    (proj / ".git").mkdir(parents=True)
    (proj / ".agent-tui").mkdir()
    (proj / "src").mkdir()
    (proj / "AGENTS.md").write_text("Use tabs.")
    (proj / "CLAUDE.md").write_text("Use spaces.")
    (proj / ".agent-tui" / "config.toml").write_text('theme = "nord"')
    (proj / "src" / "AGENTS.md").write_text("No comments.")
    return tmp_path / "home"


@pytest.fixture
def proj(home: Path) -> Path:
    return home / "proj"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data" / "trust.json"


def trust_of(store: Path, home: Path | None = None) -> FolderTrust:
    return FolderTrust(TrustFile(store), home=home)


def test_nothing_is_trusted_before_it_was_asked(store, proj):
    trust = trust_of(store)
    assert trust.state_of(proj) == "not asked"
    assert not trust.may_obey(proj / "AGENTS.md")
    assert not trust.may_run_git(proj)
    assert not store.exists()


def test_what_is_trusted_is_trusted_by_the_next_run_with_all_that_is_below(store, proj):
    trust_of(store).decide(proj, "trusted")
    trust = trust_of(store)
    assert trust.state_of(proj / "src") == "trusted"
    assert trust.may_obey(proj / "src" / "AGENTS.md")
    assert trust.may_run_git(proj / "src")
    assert trust.state_of(proj.parent) == "not asked"
    assert trust.state_of(proj.with_name("proj-evil")) == "not asked"


def test_the_nearest_decision_counts(store, proj):
    trust = trust_of(store)
    trust.decide(proj, "trusted")
    trust.decide(proj / "src", "not trusted")
    assert trust.may_obey(proj / "AGENTS.md")
    assert not trust.may_obey(proj / "src" / "AGENTS.md")
    assert not trust.may_run_git(proj / "src")


def test_git_is_called_only_where_the_root_of_the_repository_is_trusted(store, proj):
    trust = trust_of(store)
    trust.decide(proj / "src", "trusted")
    assert trust.may_obey(proj / "src" / "AGENTS.md")
    assert not trust.may_run_git(proj / "src")


def test_a_decision_can_be_taken_back(store, proj):
    trust = trust_of(store)
    trust.decide(proj, "trusted")
    other_run = trust_of(store)
    assert other_run.may_obey(proj / "AGENTS.md")
    assert trust.forget(proj)
    assert other_run.state_of(proj) == "not asked"
    assert not trust.forget(proj)


def test_trust_of_this_run_is_not_kept(store, proj):
    trust = trust_of(store)
    trust.trust_for_this_run(proj)
    assert trust.may_obey(proj / "AGENTS.md")
    assert trust_of(store).state_of(proj) == "not asked"


@pytest.mark.parametrize("name", [".agents", ".claude", "AGENTS.md"])
def test_a_link_that_leads_to_itself_is_a_part_of_its_folder(store, proj, name):
    (proj / name).unlink(missing_ok=True)
    (proj / name).symlink_to(name)
    trust = trust_of(store)
    trust.decide(proj, "trusted")
    assert trust.state_of(proj / name) == "trusted"
    assert not trust.may_obey(proj / name)


def test_a_link_to_a_folder_is_that_folder(store, proj, tmp_path):
    (tmp_path / "link").symlink_to(proj)
    trust = trust_of(store)
    trust.decide(tmp_path / "link", "trusted")
    assert trust.list_decisions() == {proj: "trusted"}
    assert trust.state_of(tmp_path / "link" / "src") == "trusted"


def test_instructions_that_lead_out_of_the_folder_are_not_obeyed(store, proj, home):
    (home / "secret.md").write_text("sk-canary")
    (proj / ".env").write_text("KEY=sk-canary")
    (proj / "src" / "AGENTS.md").unlink()
    (proj / "src" / "AGENTS.md").symlink_to(home / "secret.md")
    (proj / "AGENTS.md").unlink()
    (proj / "AGENTS.md").symlink_to(proj / ".env")
    trust = trust_of(store, home)
    trust.decide(proj, "trusted")
    assert f"a link to {home / 'secret.md'}" in trust.why_not(proj / "src" / "AGENTS.md")
    files = load_context_files(home / "none", proj / "src", trust.may_obey)
    assert [file.text for file in files] == ["Use spaces."]


def test_instructions_may_be_a_link_to_others_in_the_folder(store, proj):
    (proj / "src" / "AGENTS.md").unlink()
    (proj / "src" / "AGENTS.md").symlink_to("../AGENTS.md")
    trust = trust_of(store)
    trust.decide(proj, "trusted")
    assert trust.may_obey(proj / "src" / "AGENTS.md")


def test_what_is_asked_about_is_the_repository_and_what_would_be_obeyed_in_it(store, proj):
    question = trust_of(store).question(proj / "src")
    assert question is not None
    assert question.folder == proj
    assert [str(file.relative_to(proj)) for file in question.files] == [
        "AGENTS.md",
        "src/AGENTS.md",
        ".agent-tui/config.toml",
    ]
    assert question.has_repository


def test_nothing_is_asked_where_nothing_would_be_obeyed(store, tmp_path):
    plain = tmp_path / "plain"
    (plain / ".git").mkdir(parents=True)
    (plain / ".env").write_text("AGENT_TUI_CONFIG_DIR=/elsewhere")
    (plain / "AGENTS.md").touch()
    assert trust_of(store).question(plain) is None


@pytest.mark.parametrize("state", ["trusted", "not trusted"])
def test_nothing_is_asked_twice(store, proj, state):
    trust_of(store).decide(proj, state)
    assert trust_of(store).question(proj) is None


@pytest.mark.parametrize(
    ("answer", "now", "next_time"),
    [
        ("trust", "trusted", "trusted"),
        ("this run", "trusted", "not asked"),
        ("no", "not trusted", "not trusted"),
        (None, "not trusted", "not asked"),
    ],
)
def test_each_answer_does_what_it_says(store, proj, answer, now, next_time):
    trust = trust_of(store)
    question = trust.question(proj)
    assert question is not None
    trust.answer(question, answer)
    assert trust.state_of(proj) == now
    assert trust.question(proj) is None
    assert trust_of(store).state_of(proj) == next_time


def test_the_home_folder_and_those_above_are_never_trusted_as_a_whole(store, home, proj):
    (home / "AGENTS.md").write_text("Be brief.")
    trust = trust_of(store, home)
    for broad in (home, home.parent, Path("/")):
        assert trust.question(broad) is None
        assert trust.question_about(broad) is None
        with pytest.raises(ConfigError, match="too broad"):
            trust.decide(broad, "trusted")
    TrustFile(store).change(home, "trusted")  # as if written by hand
    assert trust.state_of(proj) == "not asked"
    assert trust.state_of(home) == "not asked"


def test_a_repository_around_the_home_folder_does_not_make_it_one_project(store, home, tmp_path):
    (home / ".git").mkdir()
    (home / "notes").mkdir()
    (home / "notes" / "AGENTS.md").write_text("Be brief.")
    trust = trust_of(store, home)
    assert trust.folder_to_ask_about(home / "notes") == home / "notes"
    trust.decide(home / "notes", "trusted")
    assert trust.may_obey(home / "notes" / "AGENTS.md")
    assert not trust.may_run_git(home / "notes")


def test_the_home_folder_can_be_trusted_alone_for_this_run(store, home, proj):
    (home / "AGENTS.md").write_text("Be brief.")
    trust = trust_of(store, home)
    trust.trust_for_this_run(home)
    assert trust.may_obey(home / "AGENTS.md")
    assert not trust.may_obey(proj / "AGENTS.md")


def test_a_folder_shared_by_all_is_too_broad(store, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    trust = trust_of(store)
    assert trust.is_too_broad(shared)
    shared.chmod(0o777)  # every folder of a mounted Windows disk looks like this
    assert not trust.is_too_broad(shared)


def test_the_file_is_private(store, proj):
    trust_of(store).decide(proj, "trusted")
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.parent.stat().st_mode) == 0o700
    assert json.loads(store.read_text()) == {"folders": {str(proj): "trusted"}}


BROKEN = [
    b"{",
    b"[]",
    b'{"folders": []}',
    b'{"folders": {"/x": "perhaps"}}',
    b'{"folders": {"x": "trusted"}}',
    b"\xff",
    b"[" * 50_000,
]


@pytest.mark.parametrize("content", BROKEN, ids=lambda content: repr(content[:24]))
def test_a_broken_file_trusts_nothing_is_told_of_and_is_kept(store, proj, content):
    store.parent.mkdir()
    store.write_bytes(content)
    trust = trust_of(store)
    assert trust.state_of(proj) == "not asked"
    assert str(store) in trust.problem
    assert "\n" not in trust.problem
    trust.decide(proj, "trusted")
    assert trust.state_of(proj) == "trusted"
    (aside,) = store.parent.glob("trust.json.broken-*")
    assert aside.read_bytes() == content


@given(content=st.binary(max_size=80))
def test_no_bytes_in_the_file_trust_a_folder_that_they_do_not_name(tmp_path_factory, content):
    store = tmp_path_factory.mktemp("trust") / "trust.json"
    store.write_bytes(content)
    assert trust_of(store).state_of(Path("/somewhere/proj")) == "not asked"


def test_runs_that_decide_at_once_lose_nothing(store, tmp_path):
    folders = [tmp_path / f"p{number}" for number in range(12)]

    def decide(folder: Path) -> None:
        trust_of(store).decide(folder, "trusted")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(decide, folders))
    assert set(trust_of(store).list_decisions()) == set(folders)


def test_a_decision_that_cannot_be_kept_holds_for_this_run(store, proj, monkeypatch):
    monkeypatch.setattr("agent_tui.file_locks._LOCK_WITHIN_S", 0.0)
    store.parent.mkdir()
    trust = trust_of(store)
    lock = FileLock(store.with_name("trust.json.lock"))
    with lock, pytest.raises(ConfigError, match="It applies to this run"):
        trust.decide(proj, "trusted")
    assert trust.state_of(proj) == "trusted"
    assert trust_of(store).state_of(proj) == "not asked"


def test_a_folder_whose_name_is_no_text_can_be_trusted(store, tmp_path):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    trust_of(store).decide(odd, "trusted")
    assert trust_of(store).list_decisions() == {odd: "trusted"}


def test_what_is_withheld_is_named_with_the_reason(store, proj):
    withheld = trust_of(store).withheld(proj)
    assert [file.path.name for file in withheld] == ["AGENTS.md", "config.toml"]
    assert {file.why for file in withheld} == {NOT_TRUSTED}


def test_a_repository_where_nothing_could_be_obeyed_needs_no_trust_for_git(store, tmp_path):
    plain = tmp_path / "plain"
    (plain / ".git").mkdir(parents=True)
    assert trust_of(store).may_run_git(plain)
    trust_of(store).decide(plain, "not trusted")
    assert not trust_of(store).may_run_git(plain)


def test_a_repository_that_could_make_git_run_something_is_asked_about(store, tmp_path):
    odd = tmp_path / "odd"
    (odd / ".git").mkdir(parents=True)
    (odd / ".git" / "config").write_text("[core]\n\tfsmonitor = touch x\n")
    trust = trust_of(store)
    question = trust.question(odd)
    assert question is not None
    assert "config:2: core.fsmonitor could run" in question.git_risk
    assert not trust.may_run_git(odd)
    trust.decide(odd, "trusted")
    assert trust.may_run_git(odd)
    assert trust.git_risk(odd) == ""


def test_prompt_files_alone_make_a_folder_one_to_be_asked_about(store, tmp_path):
    commands = tmp_path / "tools" / ".agent-tui" / "commands"
    commands.mkdir(parents=True)
    trust = trust_of(store)
    question = trust.question(tmp_path / "tools")
    assert question is not None
    assert question.files == (commands,)
    assert [file.path for file in trust.withheld(tmp_path / "tools")] == [commands]
    trust.decide(tmp_path / "tools", "trusted")
    assert trust.withheld(tmp_path / "tools") == ()


def test_a_worktree_that_agent_tui_created_follows_its_repository(tmp_path: Path):
    top, there = tmp_path.resolve() / "shop", tmp_path.resolve() / "shop.worktrees" / "fix"
    inside = top / ".git" / "worktrees" / "fix"
    for folder in (inside, there):
        folder.mkdir(parents=True)
    for head in (top / ".git" / "HEAD", inside / "HEAD"):
        head.write_text("ref: refs/heads/fix\n")
    (inside / "gitdir").write_text(f"{there}/.git\n")
    (inside / "commondir").write_text("../..\n")
    (there / ".git").write_text(f"gitdir: {inside}\n")
    records = WorktreeRecords(tmp_path / "worktrees")
    file = TrustFile(tmp_path / "trust.json")
    trust = FolderTrust(file, worktrees=records)
    trust.decide(top, "trusted")
    assert trust.state_of(there) == "not asked"  # anybody may have created it
    records.store(Worktree("fix", there, top, "fix", "main", "", True), "in use")
    assert trust.state_of(there) == "trusted"
    assert trust.may_run_git(there)
    good = tmp_path.resolve() / "good"
    for folder in (good, there / "sub"):
        folder.mkdir()
    (top / "sub").symlink_to(good)
    trust.decide(good, "trusted")
    trust.forget(top)
    assert trust.state_of(there / "sub") == "not asked"  # a link of the repository says nothing
    trust.decide(tmp_path.resolve(), "trusted")
    trust.decide(top, "not trusted")
    assert trust.state_of(there) == "not trusted"  # the repository's decision is nearer
    trust.decide(there, "trusted")
    assert trust.state_of(there) == "trusted"
    (there / ".git").write_text(f"gitdir: {tmp_path}/elsewhere\n")
    trust.forget(there)
    assert trust.state_of(there) == "trusted"  # by the folder above: it is no worktree any more


@each_row(
    "text, takes_effect",
    [
        ('{"permissions": {"allow": ["Bash(ls)"]}}', False),
        ('{"permissions": {}, "h\\u006foks": {}}', True),
        ("[]", True),
        ("{", True),
    ],
)
def test_settings_of_another_program_take_effect_only_with_hooks(
    tmp_path: Path, text: str, takes_effect: bool
) -> None:
    file = tmp_path / ".claude" / "settings.local.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    assert (file in project_files(tmp_path)) is takes_effect
