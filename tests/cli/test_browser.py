"""Bringing the person to a page, and what they may paste where the browser is elsewhere."""

import asyncio
import os
import sys
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path
from queue import Queue

import pytest

from agent_tui.cli.browser import has_browser, listening_callback, query_in, show_page
from agent_tui.safe_paths import distrust_programs_in
from tests.support.patience import PATIENCE_S
from tests.support.rows import each_row


@pytest.mark.parametrize(
    ("pasted", "brought"),
    [
        ("auth_code_1", {"code": "auth_code_1"}),
        ("http://localhost:1/callback?code=a%2Fb&state=s", {"code": "a/b", "state": "s"}),
        ("http://localhost:1/callback?error=access_denied", {"error": "access_denied"}),
    ],
)
def test_a_code_may_be_pasted_bare_or_in_its_address(pasted: str, brought: dict[str, str]):
    assert query_in(pasted) == brought


async def test_an_empty_line_is_no_answer_and_the_terminal_is_left_alone_afterwards():
    master, slave = os.openpty()
    try:
        async with listening_callback() as callback:
            waiting = asyncio.ensure_future(callback.wait_for_values(slave))
            os.write(master, b"\n  \nthe code\n")
            assert await waiting == {"code": "the code"}
        assert not asyncio.get_running_loop().remove_reader(slave)
    finally:
        os.close(master)
        os.close(slave)


@each_row(
    ("environ", "platform", "opens"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"BROWSER": "w3m"}, "linux", True),
        ({}, "darwin", True),
    ],
)
def test_a_browser_that_would_take_the_terminal_is_not_opened(
    environ: dict[str, str], platform: str, *, opens: bool
):
    assert has_browser(environ, platform) is opens


def test_a_program_that_a_command_put_into_the_folder_opens_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "project"
    distrust_programs_in([folder])
    monkeypatch.setenv("PATH", f"{folder / '.venv/bin'}{os.pathsep}/usr/bin")
    monkeypatch.setenv("DISPLAY", ":0")
    paths: Queue[str] = Queue()
    monkeypatch.setattr(webbrowser, "open", lambda _page: paths.put(os.environ["PATH"]))
    show_page("http://127.0.0.1/x")
    assert paths.get(timeout=PATIENCE_S) == "/usr/bin"


async def test_a_browser_that_stays_in_the_foreground_does_not_hold_up_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    page, quits, closed = (tmp_path / name for name in ("page", "quits", "closed"))
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {page}.new; mv {page}.new {page}\n'
        f"for try in $(seq 100); do test -e {quits} && break; sleep 0.1; done; touch {closed}\n"
    )
    browser.chmod(0o755)
    monkeypatch.setattr(webbrowser, "open", webbrowser.GenericBrowser(str(browser)).open)
    monkeypatch.setenv("DISPLAY", ":0")
    async with listening_callback() as callback, asyncio.timeout(PATIENCE_S):
        show_page(f"http://127.0.0.1:{callback.port}/callback?code=abc")
        while not page.exists():
            await asyncio.sleep(0.01)
        ask_page = f"import urllib.request; urllib.request.urlopen({page.read_text().strip()!r})"
        asking = await asyncio.create_subprocess_exec(sys.executable, "-c", ask_page)
        assert await callback.came == {"code": "abc"}
        assert not closed.exists()
        await asking.wait()
        quits.touch()
        while not closed.exists():
            await asyncio.sleep(0.01)


async def test_what_is_no_answer_is_refused_and_the_wait_continues():
    def ask(port: int, query: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/callback?{query}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    async with listening_callback(is_answer=lambda given: given.get("state") == "s") as callback:
        for query in ("", "state=s", "code=x", "code=x&state=y", "error=no&state=%73%20", "state="):
            status, text = await asyncio.to_thread(ask, callback.port, query)
            assert status == 400, query
            assert "still waits" in text
            assert not callback.came.done(), query
        status, text = await asyncio.to_thread(ask, callback.port, "code=x&state=s")
        assert status == 200
        assert "received the answer" in text
        assert await callback.wait_for_values(-1) == {"code": "x", "state": "s"}
