"""The hosts that the text of a command names."""

import pytest

from agent_tui.permissions.programs.connections import named_hosts, network_reason
from agent_tui.permissions.shell.parts import split_command


@pytest.mark.parametrize(
    ("command", "hosts"),
    [
        ("curl -O https://example.org/a.tar.gz", [("example.org", 443)]),
        ("curl http://example.org/", [("example.org", 80)]),
        ("wget http://me:word@example.org:8080/x", [("example.org", 8080)]),
        ("git clone https://github.com/a/b && cd b", [("github.com", 443)]),
        ("pip install cowsay", [("pypi.org", 443)]),
        ("python3 -m pip install cowsay", [("pypi.org", 443)]),
        ("cd x && .venv/bin/pip3 install cowsay", [("pypi.org", 443)]),
        ("timeout 60 npm ci", [("registry.npmjs.org", 443)]),
        ("yarn", [("registry.npmjs.org", 443)]),
        ("uv sync; cargo fetch", [("pypi.org", 443), ("crates.io", 443)]),
        (
            "pip install -i https://simple.example.org/ x",
            [("simple.example.org", 443), ("pypi.org", 443)],
        ),
        ("git commit -m 'see https://example.org'", []),
        ("echo https://example.org", []),
        ("pip list", []),
        ("npm test", []),
        ("piping install", []),
        ("curl https://example.org:port/", []),
        ("curl $URL", []),
        ("curl 'https://example.org", []),
    ],
)
def test_hosts_are_those_that_the_command_will_connect_to(
    command: str, hosts: list[tuple[str, int]]
):
    assert [tuple(host) for host in named_hosts(command)] == hosts


@pytest.mark.parametrize(
    ("command", "host"),
    [
        ("npm -g install x", "registry.npmjs.org"),
        ("npm --loglevel=error publish", "registry.npmjs.org"),
        ("yarn global add x", "registry.npmjs.org"),
        ("cargo +nightly install x", "crates.io"),
        ("cargo publish", "crates.io"),
        ("poetry sync", "pypi.org"),
        ("python3 -m pip -q download x", "pypi.org"),
        ("gem push x.gem", "rubygems.org"),
        ("composer require a/b", "repo.packagist.org"),
        ("gh pr list", "github.com"),
    ],
)
def test_what_needs_a_registry_names_its_host(command: str, host: str):
    assert (network_reason(split_command(command)), named_hosts(command)) == (
        "network",
        ((host, 443),),
    )


@pytest.mark.parametrize("command", ["pip list", "pipx list", "go run add", "bundle exec add"])
def test_what_an_installer_does_without_its_registry_needs_no_network(command: str):
    assert (network_reason(split_command(command)), named_hosts(command)) == ("", ())
