from agent_tui.features.doctor import settings


def test_a_setting_that_does_not_exist_is_named_with_file_line_and_key(environment, find, config):
    config.write_text('theme = "dark"\nmodell = "x"\n')
    found = find(settings.check_settings(environment()))
    assert found["modell"].state == "warning"
    assert found["modell"].found.startswith("~/config/config.toml:2: modell: no such setting")
    assert "did you mean model" in found["modell"].found
    assert "that line" in found["modell"].advice


def test_a_file_that_is_no_toml_is_bad_for_all_of_it_is_left_out(environment, config):
    config.write_text("a = 1\nb = = 2\n")
    (problem,) = [c for c in settings.check_settings(environment()) if c.state == "bad"]
    assert "config.toml:2" in problem.found
    assert "none of its settings" in problem.advice


def test_a_link_to_no_file_is_bad(environment, find, config):
    config.symlink_to("nowhere")
    found = find(settings.check_settings(environment()))
    assert found["file"].state == "bad"
    assert "the link leads to no file" in found["file"].found
    assert "-p does not run" in found["file"].advice


def test_a_wrong_permission_setting_is_bad(environment, find, config):
    config.write_text('[permissions]\ndeny = "bash(rm *)"\n')
    assert find(settings.check_settings(environment()))["permissions.deny"].state == "bad"


def test_a_limit_that_cannot_be_read_is_bad_for_no_request_is_sent(environment, find, config):
    config.write_text('budget_day = "abc"\n')
    found = find(settings.check_settings(environment()))["budget_day"]
    assert found.state == "bad"
    assert "no request is sent" in found.advice


def test_settings_without_fault_are_in_force(environment, find, config):
    assert "does not exist" in find(settings.check_settings(environment()))["file"].found
    config.write_text('theme = "dark"\n')
    assert find(settings.check_settings(environment()))["file"].state == "ok"


def test_variables_in_force_are_named_without_their_values(environment, find, monkeypatch):
    monkeypatch.setenv("AGENT_TUI_MODEL", "secret/thing")
    check = find(settings.check_settings(environment()))["environment"]
    assert "AGENT_TUI_MODEL" in check.found
    assert "AGENT_TUI_CONFIG_DIR" in check.found
    assert "secret" not in str(check)


def test_a_variable_of_ours_that_sets_nothing_is_said_with_the_nearest(
    environment, find, monkeypatch
):
    monkeypatch.setenv("AGENT_TUI_MODLE", "x")
    check = find(settings.check_settings(environment()))["AGENT_TUI_MODLE"]
    assert check.state == "warning"
    assert "did you mean AGENT_TUI_MODEL?" in check.found


def test_a_wrong_value_in_the_environment_is_said(environment, find, monkeypatch):
    monkeypatch.setenv("AGENT_TUI_THINKING", "very")
    check = find(settings.check_settings(environment()))["thinking"]
    assert check.state == "warning"
    assert "environment" in check.found
    assert "variable" in check.advice


def test_a_permission_rule_that_cannot_be_read_is_bad(environment, config):
    config.write_text('[permissions]\nallow = ["bash(git status)"]\ndeny = ["bash(rm"]\n')
    checks = list(settings.check_rules(environment()))
    assert [check.state for check in checks] == ["ok", "bad"]
    assert "1 rule" in checks[0].found
    assert "bash(rm" in checks[1].found


def test_without_a_working_folder_no_rules_are_looked_for(environment, home, monkeypatch):
    (home / "work").rmdir()
    assert list(settings.check_rules(environment())) == []
