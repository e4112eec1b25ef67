import pytest

from agent_tui.tools.sandbox.hints import stray_hint, wall_hint

HOME = "/home/ada"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("curl: (6) Could not resolve host: example.org", "hosts that are allowed"),
        ("npm ERR! getaddrinfo EAI_AGAIN registry", "hosts that are allowed"),
        ("curl: (56) CONNECT tunnel failed, response 403", "hosts that are allowed"),
        ("touch: cannot touch '/x': Read-only file system", "only in the working folders"),
        ("error: could not write config file .git/config: Device or resource busy", "git's"),
        ("error: gpg failed to sign the data", "signing keys"),
        ("mv: cannot move '.vscode': Device or resource busy", "holds this file"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock", "does not let"),
        ("cat: .env: Permission denied", "hides this file"),
        ("cat: /home/ada/notes.md: No such file or directory", "of /home/ada, only"),
        ("cat: notes.md: No such file or directory", ""),
        ("cat: other: Permission denied", ""),
        ("AssertionError", ""),
        ("", ""),
    ],
)
def test_a_failure_is_explained_only_where_the_sandbox_is_the_likely_cause(output: str, said: str):
    hint = wall_hint(f"before\n{output}\nafter", HOME, [".env"])
    assert said in hint
    assert bool(said) == bool(hint)
    assert ("outside: true" in hint) == bool(said)
    assert "\n" not in hint


def test_what_will_be_gone_is_said():
    assert "notes.md, x" in stray_hint(["notes.md", "x"], HOME)
