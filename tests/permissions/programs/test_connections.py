"""The hosts that the text of a command names."""

import pytest

from agent_tui.permissions.programs.connections import named_hosts


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
