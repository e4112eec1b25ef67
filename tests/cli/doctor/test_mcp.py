from agent_tui.cli.doctor import settings


def test_each_server_of_the_settings_is_looked_for_and_none_is_started(
    environment, find, config, programs, tmp_path
):
    programs("here", f"touch {tmp_path}/started")
    config.write_text(
        '[mcp.servers.good]\ncommand = "here"\n'
        '[mcp.servers.gone]\ncommand = "nowhere"\n'
        '[mcp.servers.later]\ncommand = "here"\nenabled = false\n'
        '[mcp.servers."a b"]\ncommand = "here"\n'
    )
    checks = find(settings.check_servers(environment()))
    states = {name: check.state for name, check in checks.items()}
    assert states == {"good": "ok", "gone": "warning", "later": "info", "ignored": "warning"}
    assert "mcp.servers.a b ignored" in checks["ignored"].found
    assert checks["gone"].found == "nowhere not found on PATH"
    assert not (tmp_path / "started").exists()


def test_a_server_at_an_address_needs_a_package(environment, find, config, monkeypatch):
    config.write_text('[mcp.servers.far]\nurl = "https://example.invalid/mcp"\n')
    monkeypatch.setattr(settings, "find_spec", lambda _name: None)
    check = find(settings.check_servers(environment()))["far"]
    assert (check.state, check.found) == (
        "warning",
        "https://example.invalid/mcp requires the package mcp",
    )
    monkeypatch.setattr(settings, "find_spec", lambda name: name)
    assert find(settings.check_servers(environment()))["far"].state == "ok"


def test_without_servers_there_is_nothing_to_say(environment):
    assert list(settings.check_servers(environment())) == []
