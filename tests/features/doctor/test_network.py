from agent_tui.features.doctor import machine


def test_that_no_provider_was_called_is_said(environment, find):
    found = find(machine.check_network(environment()))
    assert list(found) == ["providers"]
    assert found["providers"].found == "not checked; keys are tried only when used"


def test_proxies_are_named_and_not_shown(environment, find, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://me:hunter2@proxy")
    monkeypatch.setenv("NO_PROXY", "inside.example")
    check = find(machine.check_network(environment()))["proxy"]
    assert check.found == "https_proxy, NO_PROXY set"


def test_certificates_that_are_not_there_are_bad(environment, find, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/at/all.pem")
    check = find(machine.check_network(environment()))["SSL_CERT_FILE"]
    assert check.state == "bad"
    assert "unset SSL_CERT_FILE" in check.advice
