from agent_tui.cli.folders import load_trust
from agent_tui.features.doctor import machine
from tests.features.doctor.conftest import skip_if_rights_do_not_bind


def test_a_removed_folder_is_bad(environment, home):
    (home / "work").rmdir()
    (check,) = machine.check_workspace(environment())
    assert check.state == "bad"
    assert "--cwd" in check.advice


def test_a_folder_without_git_says_what_git_is_good_for(environment, find):
    found = find(machine.check_workspace(environment()))
    assert (found["folder"].state, found["folder"].found) == ("ok", "~/work")
    assert found["repository"].state == "info"
    assert "git init" in found["repository"].advice
    assert found["AGENTS.md"].found == "none"


def test_the_repository_and_the_instructions_in_force_are_named(
    environment, find, home, config, monkeypatch
):
    (home / "work" / ".git").mkdir()
    (home / "work" / "src").mkdir()
    monkeypatch.chdir(home / "work" / "src")
    (home / "config" / "AGENTS.md").write_text("all")
    (home / "work" / "AGENTS.md").write_text("project")
    (home / "work" / "src" / "CLAUDE.md").write_text("here")
    checks = list(machine.check_workspace(environment()))
    assert "repository" not in find(checks)
    assert find(checks)["AGENTS.md"].found == "~/config/AGENTS.md"
    withheld = find(checks)["not read"]
    assert withheld.found == "~/work/AGENTS.md, ~/work/src/CLAUDE.md: the folder is not trusted"
    assert "agent-tui trust add" in withheld.advice

    load_trust().decide(home / "work", "trusted")
    checks = list(machine.check_workspace(environment()))
    expected = "~/config/AGENTS.md, ~/work/AGENTS.md, ~/work/src/CLAUDE.md"
    assert find(checks)["AGENTS.md"].found == expected
    assert "not read" not in find(checks)


def test_git_is_not_run_in_a_folder_nobody_trusts_yet(environment, home, programs):
    programs("git", f"touch {home}/was-run")
    (home / "work" / ".git").mkdir()
    list(machine.check_workspace(environment()))
    assert not (home / "was-run").exists()


def test_a_folder_that_cannot_be_written_is_a_warning(environment, find, home):
    (home / "work").chmod(0o500)
    skip_if_rights_do_not_bind(home / "work")
    check = find(machine.check_workspace(environment()))["folder"]
    (home / "work").chmod(0o700)
    assert check.state == "warning"
