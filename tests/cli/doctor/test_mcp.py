from agent_tui.cli.doctor import configuration


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
    checks = find(configuration.check_servers(environment()))
    states = {name: check.state for name, check in checks.items()}
    assert states == {"good": "ok", "gone": "warning", "later": "info", "a b": "warning"}
    assert checks["gone"].found == "nowhere not found on PATH"
    assert not (tmp_path / "started").exists()


def test_a_server_at_an_address_needs_a_package(environment, find, config, monkeypatch):
    config.write_text('[mcp.servers.far]\nurl = "https://example.invalid/mcp"\n')
    monkeypatch.setattr(configuration, "find_spec", lambda _name: None)
    check = find(configuration.check_servers(environment()))["far"]
    assert (check.state, check.found) == (
        "warning",
        "https://example.invalid/mcp requires the package mcp",
    )
    monkeypatch.setattr(configuration, "find_spec", lambda name: name)
    assert find(configuration.check_servers(environment()))["far"].state == "ok"


def test_without_servers_one_line_says_how_to_have_one(environment, find):
    assert "[mcp.servers.NAME]" in find(configuration.check_servers(environment()))["servers"].found
