"""Entries in the form in which they travel: without keys and without the name of the folder."""

import json
from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.sharing.form import (
    PROJECT,
    SharedForm,
    count_masks,
    local_entry,
    local_header,
)
from agent_tui.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserMessage,
)
from agent_tui.sessions.entries import (
    Carryover,
    CustomEntry,
    Entry,
    Header,
    MessageEntry,
    PulledFrom,
    Requests,
    Usage,
)
from agent_tui.sessions.format.codec import decode_record
from tests.support.rows import each_row
from tests.support.session_values import chain, entry, header, user

ROOT = Path("/home/ada/tally")
KEY = "sk-ant-api03-abcdefgh12345678"


def shared(message: UserMessage | AssistantMessage, *secrets: str) -> str:
    (placed,) = chain(entry(message))
    return SharedForm((ROOT,), secrets).write_entry(placed).decode()


def read(line: bytes) -> Entry:
    value = decode_record(line.rstrip(b"\n")).value
    assert not isinstance(value, Header)
    return value


@each_row(
    ("text", "travels"),
    [
        ("see /home/ada/tally/a.py", f"see {PROJECT}/a.py"),
        ("in /home/ada/tally.", f"in {PROJECT}."),
        ("file:///home/ada/tally/a", f"file://{PROJECT}/a"),
        ("/home/ada/tally2/a", "/home/ada/tally2/a"),
        ("/home/ada/tally.bak/a", "/home/ada/tally.bak/a"),
        ("/mnt/home/ada/tally/a", "/mnt/home/ada/tally/a"),
        (f"it is {KEY}", "it is [key removed]"),
        ("say hunter22 twice: hunter22", "say [key removed] twice: [key removed]"),
    ],
)
def test_the_folder_gets_a_neutral_name_and_keys_go(text: str, travels: str) -> None:
    line = json.loads(shared(user(text), "hunter22"))
    assert line["message"]["content"] == travels


def test_keys_go_from_arguments_and_from_their_names() -> None:
    call = ToolCall(id="c1", name="bash", arguments={"env": {KEY: [KEY]}, "command": KEY})
    line = shared(AssistantMessage(content=(call,)))
    assert "sk-ant" not in line
    assert count_masks(line.encode()) == 3


def test_a_short_secret_changes_no_id() -> None:
    (placed,) = chain(entry(user("ab12cd is the password")).model_copy(update={"id": "00ab12cd"}))
    written = read(SharedForm((ROOT,), ("ab12cd",)).write_entry(placed))
    assert written.id == "00ab12cd"
    assert "password" in written.model_dump_json()
    assert "ab12cd is" not in written.model_dump_json()


def png(content: bytes) -> ImageContent:
    data = b64encode(b"\x89PNG\r\n\x1a\n" + content).decode()
    return ImageContent(data=data, mime_type="image/png")


@pytest.mark.parametrize(
    "data",
    [KEY, b64encode(KEY.encode()).decode(), f"GIF8 {KEY}", f"in {ROOT}/a", "the-word"],
    ids=["a key", "a key in Base64", "a text", "a path", "a known value"],
)
def test_what_only_says_that_it_is_a_picture_is_a_text(data: str) -> None:
    said = CustomEntry(custom_type="x", data={"deep": [{"type": "image", "data": data}]})
    (placed,) = chain(said)
    value = read(SharedForm((ROOT,), ("the-word",)).write_entry(placed))
    assert isinstance(value, CustomEntry)
    written = json.dumps(value.data)
    assert KEY not in written
    assert str(ROOT) not in written
    assert "the-word" not in written


def test_a_picture_with_a_key_in_its_notes_stays_here() -> None:
    noted = png(b"\x00\x00\x00\x30tEXtComment\x00made with " + KEY.encode() + bytes(9))
    line = shared(UserMessage(content=(TextContent(text="look"), noted)))
    assert noted.data not in line
    said = read(line.encode())
    assert isinstance(said, MessageEntry)
    assert isinstance(said.message, UserMessage)
    assert said.message.content == (TextContent(text="look"), TextContent(text="[key removed]"))


def test_a_picture_stays_and_signatures_go() -> None:
    picture = png(bytes(range(256)) * 9)
    assert picture.data in shared(UserMessage(content=(picture,)))
    reply = AssistantMessage(
        content=(
            ThinkingContent(thinking="hm", signature="sealed-1"),
            TextContent(text="so", signature="sealed-2"),
            ToolCall(id="c", name="read", signature="sealed-3"),
        )
    )
    line = shared(reply)
    assert "sealed" not in line
    assert '"hm"' in line


def test_a_root_of_the_file_system_is_no_name_of_a_project() -> None:
    (placed,) = chain(entry(user("/etc/hosts")))
    assert b"/etc/hosts" in SharedForm((Path("/"),)).write_entry(placed)


def test_of_a_header_only_what_another_clone_needs_travels() -> None:
    usage = Requests(model="m", requests=3, usage=Usage())
    carried = Carryover(lastSummary=f"S {KEY} {ROOT}", spent=(usage,))
    first = header(
        cwd=f"{ROOT}/src",
        parentSession="/home/ada/sessions/x/2026-03-02_b1.jsonl",
        baseUrl="http://127.0.0.1:8080/v1",
        launchCwd="/home/ada",
        compaction=carried,
        firstPrompt="do it",
    )
    line = SharedForm((ROOT,)).write_header(first)
    written = json.loads(line)
    assert written["cwd"] == f"{PROJECT}/src"
    assert written["parentSession"] == "b1"
    assert written["firstPrompt"] == "do it"
    assert written["compaction"]["lastSummary"] == f"S [key removed] {PROJECT}"
    assert b"ada" not in line
    assert not {"baseUrl", "launchCwd"} & written.keys()
    assert not written["compaction"].get("spent")


def test_a_header_from_elsewhere_works_in_this_clone_with_its_own_model(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    came = header(cwd=f"{PROJECT}/src", provider="x", modelId="y", baseUrl="http://127.0.0.1/v1")
    source = PulledFrom(by="Ada <a@x>", remote="r")
    local = local_header(came, tmp_path, source)
    assert local.cwd == str(tmp_path / "src")
    assert (local.provider, local.model_id, local.base_url) == ("", "", None)
    assert local.pulled_from == source
    assert source.name == "Ada"


@pytest.mark.parametrize("cwd", ["/etc", f"{PROJECT}/../etc", f"{PROJECT}/gone", "", "x\0y", "l"])
def test_another_folder_becomes_the_root(tmp_path: Path, cwd: str) -> None:
    (tmp_path / "l").symlink_to("/etc")
    wanted = f"{PROJECT}/l" if cwd == "l" else cwd
    assert local_header(header(cwd=wanted), tmp_path, PulledFrom()).cwd == str(tmp_path)


@given(st.text(max_size=80), st.sampled_from(["/", "/a.py", " ", ""]))
def test_what_travels_to_the_same_folder_and_back_is_what_it_was(text: str, end: str) -> None:
    said = text.replace("\x00", "") + f" {ROOT}{end}"
    (placed,) = chain(CustomEntry(custom_type="t", data={"said": said}))
    form = SharedForm((ROOT,))
    line = form.write_entry(placed)
    back = local_entry(read(line), ROOT)
    assert form.write_entry(back) == line
    if count_masks(line) == 0 and end != "":
        assert isinstance(back, CustomEntry)
        assert isinstance(back.data, dict)
        assert back.data["said"] == said
