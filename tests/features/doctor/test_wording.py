from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.commands.core.checks import path_text
from agent_tui.config.model_addresses import display_address


@pytest.mark.parametrize(
    ("path", "home", "shown"),
    [
        ("/home/me/a/b", "/home/me", "~/a/b"),
        ("/home/me", "/home/me", "~"),
        ("/home/merry/a", "/home/me", "/home/merry/a"),
        ("/a", "/", "/a"),
        ("/a", "", "/a"),
    ],
)
def test_the_home_folder_is_a_tilde(environment, path, home, shown):
    env = replace(environment(), environ={"HOME": home})
    assert path_text(Path(path), env) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
        ("https://me:hunter2@example.org/v1?key=hunter2#hunter2", "https://example.org/v1"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1"),
        ("http://host:port/v1", "http://host:port/v1"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url, shown):
    assert display_address(url) == shown
