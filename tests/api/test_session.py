"""`agent_tui.Session`: what was said is kept, found again and gone on with."""

from pathlib import Path

import pytest

from agent_tui import Agent, Session, paths
from agent_tui.cli.main import run
from agent_tui.errors import SessionError
from tests.support.openai_server import Call, OpenAiServer, Reply


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


async def said(server: OpenAiServer, text: str, **options: object) -> Session:
    server.play(Reply(text=f"{text} is noted."))
    async with Agent("some-model", base_url=server.base_url, **options) as one:  # type: ignore[arg-type]
        await one.ask(text)
        assert one.session is not None
        return one.session


async def test_a_conversation_is_kept_found_and_continued(tmp_path: Path, work: Path) -> None:
    kept = tmp_path / "kept"
    with OpenAiServer() as server:
        first = await said(server, "Colour one", cwd=work, session=kept)
        assert first.path.is_relative_to(kept)
        assert (first.cwd, first.first_prompt) == (work, "Colour one")
        again = await said(server, "Colour two", session=Session.open(first.id[:6], folder=kept))
        sent = server.chats[-1].body["messages"]
    assert again.path == first.path
    assert [m["content"] for m in sent if m["role"] == "user"] == ["Colour one", "Colour two"]
    assert Session.list(work, folder=kept) == (again,)
    assert Session.list(tmp_path, folder=kept) == ()
    assert [m["role"] for m in again.messages()] == ["user", "assistant"] * 2


async def test_the_one_written_last_is_resumed(tmp_path: Path, work: Path) -> None:
    with OpenAiServer() as server:
        older = await said(server, "one", cwd=work, session=tmp_path / "kept")
        newer = await said(server, "two", cwd=work, session=tmp_path / "kept")
        older = await said(server, "three", session=older)
    assert newer.id != older.id
    assert [one.id for one in Session.list(folder=tmp_path / "kept")] == [older.id, newer.id]
    assert Session.resume(work, folder=tmp_path / "kept").id == older.id
    with pytest.raises(SessionError, match=r"No session in .* works in"):
        Session.resume(tmp_path, folder=tmp_path / "kept")


async def test_without_one_nothing_is_kept(tmp_path: Path, work: Path) -> None:
    with OpenAiServer() as server:
        server.play(Reply(text="Yes."))
        async with Agent("some-model", base_url=server.base_url, cwd=work) as one:
            await one.ask("Hello")
            assert one.session is None
    assert Session.list() == ()


async def test_one_that_is_open_elsewhere_is_not_written(tmp_path: Path, work: Path) -> None:
    with OpenAiServer() as server:
        kept = await said(server, "one", cwd=work, session=tmp_path / "kept")
        server.play(Reply(text="Yes."))
        async with Agent("some-model", base_url=server.base_url, session=kept) as first:
            await first.ask("two")
            async with Agent("some-model", base_url=server.base_url, session=kept) as second:
                with pytest.raises(SessionError, match="is open in another"):
                    await second.ask("three")
    assert "three" not in kept.path.read_text()


async def test_a_session_gives_no_permission(tmp_path: Path, work: Path) -> None:
    with OpenAiServer() as server:
        kept = await said(server, "one", cwd=work, session=tmp_path / "kept")
        mode = '{"type":"custom","id":"aa","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z",'
        with kept.path.open("a") as file:
            file.write(mode + '"customType":"permission_mode","data":"full"}\n')
        call = Call("write", {"path": "a.txt", "content": "x"})
        server.play(Reply(tool_calls=(call,)), Reply(text="Refused."))
        async with Agent("some-model", base_url=server.base_url, session=kept) as one:
            await one.ask("Write it")
    assert not (work / "a.txt").exists()


async def test_an_id_or_a_file_continues_that_session(tmp_path: Path, work: Path) -> None:
    with OpenAiServer() as server:
        first = await said(server, "one", cwd=work, session=paths.default_session_dir())
        for name in (first.id, first.id[:8], first.path, str(first.path)):
            again = await said(server, "two", session=name)
            assert (again.path, again.cwd) == (first.path, work)
        sent = server.chats[-1].body["messages"]
    assert [m["content"] for m in sent if m["role"] == "user"] == ["one", *["two"] * 4]


async def test_the_program_lists_and_resumes_what_is_kept_in_its_folder(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with OpenAiServer() as server:
        kept = await said(server, "Colour one", cwd=work, session="~/kept")
    assert kept.path.is_relative_to(tmp_path / "kept")
    assert Session.list(work, folder="~/kept") == (kept,)
    monkeypatch.chdir(work)
    assert run(["sessions", "list", "--session-dir", str(tmp_path / "kept")]) == 0
    assert "Colour one" in capsys.readouterr().out
    assert run(["sessions", "list"]) == 0
    assert "Colour one" not in capsys.readouterr().out
    with OpenAiServer() as server:
        kept = await said(server, "Colour two", cwd=work, session=paths.default_session_dir())
    assert run(["sessions", "list"]) == 0
    assert "Colour two" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["01993c2a", "01993c2a-77aa-4a3e-8a51-2f4a0d6d7f11", "gone/kept.jsonl"]
)
def test_the_name_of_a_session_that_is_gone_makes_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SessionError, match=name):
        Agent("some-model", base_url="http://127.0.0.1:1/v1", session=name)
    assert list(tmp_path.iterdir()) == []


def test_what_there_is_not_is_said(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="nowhere"):
        Session.open("nowhere", folder=tmp_path)
    with pytest.raises(SessionError, match="empty text names no session"):
        Session.open("", folder=tmp_path)
