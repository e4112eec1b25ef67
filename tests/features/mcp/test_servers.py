"""Real servers, good and bad ones."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE

import pytest

from agent_tui.errors import AgentTuiError, ToolError
from agent_tui.features.mcp.sources import FoundServer
from agent_tui.features.mcp.toolbox import CombinedToolbox
from agent_tui.safe_paths import distrust_programs_in
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.shorten import OutputLimits
from tests.support.mcp_servers import KEY, Stage
from tests.support.mcp_servers import PROGRAM as PROGRAM_OF_SERVER
from tests.support.processes import alive, gone

PROGRAM = """
import asyncio, sys
from pathlib import Path
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.mcp_servers import Stage

async def main():
    stage = Stage(Path(sys.argv[1]), ProcessKeeper())
    stage.add()
    await stage.take_up()
    print(stage.hub.servers[0].state, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def call(stage: Stage, tool: str, **arguments):
    """Call a tool of the one server as a turn does."""
    box = CombinedToolbox(default_toolbox(), stage.hub)
    return await box.prepare(f"mcp__srv__{tool}", arguments, stage.context()).run()


async def test_a_server_is_started_asked_and_called(stage):
    await stage.ready()
    (shown,) = stage.hub.servers
    assert (shown.state, shown.why, shown.notes) == ("ready", "", ())
    assert list(stage.offered())[:3] == ["mcp__srv__change", "mcp__srv__die", "mcp__srv__echo"]
    assert len(shown.tools) == 11  # of two pages
    said = await call(stage, "echo", text="ä\n\x1b[31mred")
    assert (said.for_model, said.is_error, said.for_person.summary) == ("ä\nred", False, "2 lines")
    assert stage.told == []
    assert await stage.take_up() is False  # nothing changed
    await stage.hub.aclose()
    assert stage.notes() == ["started", "called echo", "ended"]


async def test_a_server_that_a_command_put_into_the_folder_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    decoys, real = tmp_path / "project" / ".venv" / "bin", tmp_path / "bin"
    for folder, script in (
        (decoys, f"touch {tmp_path}/marker"),
        (real, f'exec {sys.executable} "$@"'),
    ):
        folder.mkdir(parents=True)
        (folder / "server-of-mine").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "server-of-mine").chmod(0o755)
    distrust_programs_in([tmp_path / "project"])
    monkeypatch.setenv("PATH", f"{decoys}{os.pathsep}{real}{os.pathsep}{os.environ['PATH']}")
    keeper = ProcessKeeper()
    stage = Stage(tmp_path, keeper)
    argv = ("server-of-mine", *PROGRAM_OF_SERVER[1:], "", str(stage.notes_file()))
    stage.add(argv=argv)
    await stage.take_up()
    assert [server.state for server in stage.hub.servers] == ["ready"]
    assert not (tmp_path / "marker").exists()
    await stage.hub.aclose()
    keeper.close()


async def test_results_of_all_kinds_come_through(stage):
    await stage.ready()
    rich = await call(stage, "rich")
    assert rich.for_model == "[file:///a]\n[audio, audio/wav: cannot be shown]"
    assert [image.mime_type for image in rich.images] == ["image/png"]
    failed = await call(stage, "fail")
    assert (failed.for_model, failed.is_error) == ("it did not work", True)
    with pytest.raises(ToolError, match="srv: not that"):
        await call(stage, "refuse")
    box = CombinedToolbox(default_toolbox(), stage.hub)
    context = stage.context(limits=OutputLimits(2_000))
    long = await box.prepare("mcp__srv__lines", {"count": 5_000}, context).run()
    assert "left out" in long.for_model
    assert len(long.for_model) < 2_200
    assert long.for_person.truncated
    whole = list((stage.folder / "outputs").glob("mcp-*.txt"))
    assert [file.read_text().count("\n") for file in whole] == [4_999]
    assert [file.stat().st_mode & 0o777 for file in whole] == [0o600]


async def test_what_is_no_message_is_passed_over(stage):
    await stage.ready("garbage")
    assert (await call(stage, "garbage")).for_model == "after all"


async def test_a_message_of_ten_megabytes_fails_its_call_and_nothing_else(stage):
    await stage.ready()
    with pytest.raises(ToolError, match="message over 8 MB"):
        await call(stage, "huge")
    assert (await call(stage, "echo", text="still there")).for_model == "still there"


async def test_a_server_sees_no_keys_and_what_it_was_given(stage):
    stage.add(env={"TOKEN": "${TOKEN_OF_MINE}", "PLAIN": "${NOT_SET:-else}"})
    await stage.take_up()
    names = (await call(stage, "environment")).for_model.split("\n")
    assert {"PATH", "PLAIN", "TOKEN"} <= set(names)
    assert "OUR_KEY" not in names


@pytest.mark.parametrize(
    ("value", "why"),
    [("${OUR_KEY}", "contains a model's key"), ("${NO_SUCH}", "NO_SUCH is not set")],
)
async def test_a_variable_that_is_not_to_be_had_stops_the_start(stage, value, why):
    stage.add(env={"X": value})
    await stage.take_up()
    assert why in stage.hub.servers[0].why
    assert stage.told[-1].endswith(f"{stage.hub.servers[0].why}. To try again: /mcp restart srv.")
    assert ".." not in stage.told[-1]
    assert stage.notes() == []


async def test_a_server_that_ends_at_once_gives_one_line_with_its_last_words(stage):
    await stage.ready("crash")
    (line,) = stage.told
    assert line == (
        "MCP server srv: it exited with code 1: no such database: please run setup. "
        "To try again: /mcp restart srv."
    )
    assert stage.hub.servers[0].state == "failed"
    assert "no such database" in stage.log_path.read_text()
    assert await stage.take_up() is False  # it is not tried again by itself
    assert stage.notes() == ["started"]


async def test_a_program_that_is_not_there_gives_one_line(stage):
    stage.add(argv=("/nowhere/at/all",))
    await stage.take_up()
    (line,) = stage.told
    assert "/nowhere/at/all cannot be started" in line


async def test_a_server_that_says_nothing_is_given_up(stage):
    stage.add(fault="hang", timeout_s=0.05)
    await stage.take_up()
    assert "did not answer within 0.05 s" in stage.hub.servers[0].why
    assert gone(str(stage.notes_file()))


async def test_a_turn_waits_for_a_slow_start_once_and_no_longer_than_it_may(tmp_path):
    keeper = ProcessKeeper()
    stage = Stage(tmp_path, keeper, wait_s=0.02)
    await stage.ready("hang")
    await stage.take_up()
    assert stage.waited == [
        "Waiting up to 0.02 s for the MCP server srv.",
        "Continuing without the MCP server srv, which is still starting.",
    ]
    await stage.hub.aclose()
    keeper.close()


async def test_an_answer_that_is_none_is_an_error(stage):
    await stage.ready("no list")
    assert "its list of tools is not a list" in stage.hub.servers[0].why


async def test_a_server_without_a_handshake_is_spoken_with_all_the_same(stage):
    await stage.ready("stateless")
    assert (await call(stage, "echo", text="hi")).for_model == "hi"


async def test_a_server_that_dies_in_a_call_is_started_again_once(stage):
    await stage.ready()
    with pytest.raises(ToolError, match="stopped during this call"):
        await call(stage, "die")
    await stage.take_up()
    assert stage.told == ["MCP server srv: it exited with code 3: out of cheese; restarting it."]
    with pytest.raises(ToolError, match="stopped during this call"):
        await call(stage, "die")
    await stage.take_up()
    assert stage.hub.servers[0].state == "failed"
    assert list(stage.offered()) == []
    assert stage.notes().count("started") == 2
    await stage.hub.restart("srv")
    await stage.take_up()
    assert (await call(stage, "echo", text="back")).for_model == "back"


async def test_a_call_ends_with_its_turn_and_is_cancelled_there(stage):
    await stage.ready()
    running = asyncio.create_task(call(stage, "slow"))
    while "50 %\n" not in stage.told:
        await asyncio.sleep(0.005)
    assert stage.told == ["1 of 4\n", "50 %\n"]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await call(stage, "echo", text="next")).for_model == "next"
    assert stage.notes() == ["started", "called slow", "cancelled", "called echo"]


async def test_a_call_that_takes_too_long_is_cancelled_and_said(stage):
    spec = stage.add()
    await stage.take_up()
    stage.hub._servers["srv"].spec = replace(spec, timeout_s=0.05)
    with pytest.raises(ToolError, match=r"did not answer within 0.05 s"):
        await call(stage, "slow")


async def test_other_tools_come_in_when_the_next_turn_begins(stage):
    await stage.ready()
    before = list(stage.offered())
    await call(stage, "change")
    assert list(stage.offered()) == before
    assert await stage.take_up() is True
    assert list(stage.offered()) == ["mcp__srv__echo", "mcp__srv__new"]
    with pytest.raises(ToolError, match="There is no tool 'mcp__srv__lines'"):
        await call(stage, "lines", count=1)


async def test_tools_that_no_provider_would_take_are_left_out_with_a_word(stage):
    await stage.ready("bad tools")
    offered = {tool.name: tool.spec for tool in stage.hub.offered}
    assert "mcp__srv__bad_na_me_" in offered
    assert all(len(name) <= 64 and name.isascii() for name in offered)
    assert not {"mcp__srv__texts", "mcp__srv__strange", "mcp__srv__large"} & offered.keys()
    assert len(offered["mcp__srv__worded"].description) <= 1_501
    assert "\x1b" not in json.dumps([spec.description for spec in offered.values()])
    (line,) = stage.told
    assert "left out" in line
    assert "more, see /mcp" in line
    notes = "\n".join(stage.hub.servers[0].notes)
    for reason in ("another tool has this name", "not a JSON schema", "'a b'", "12,000", "no name"):
        assert reason in notes


async def test_a_server_that_is_killed_from_outside_is_started_again(stage):
    spec = stage.add()
    await stage.take_up()
    pid = next(int(line.split()[1]) for line in stage.notes_file().read_text().splitlines())
    os.kill(pid, signal.SIGKILL)
    while stage.notes().count("started") < 2:
        await asyncio.sleep(0.005)
    assert "was killed by SIGKILL" in stage.told[0]
    await stage.hub.aclose()
    assert gone(spec.argv[-1])


def test_no_server_outlives_a_program_that_is_killed(tmp_path):
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=PIPE)
    assert program.stdout is not None
    assert program.stdout.readline() == b"ready\n"
    assert len(alive(f"{tmp_path}/srv.notes")) == 1
    program.kill()
    program.wait()
    program.stdout.close()
    assert gone(f"{tmp_path}/srv.notes")


async def test_servers_are_switched_off_and_on_again(stage):
    await stage.ready()
    await stage.hub.switch("srv", is_on=False)
    assert await stage.take_up() is True
    assert [server.state for server in stage.hub.servers] == ["off"]
    assert gone(str(stage.notes_file()))
    await stage.hub.switch("srv", is_on=True)
    assert await stage.take_up() is True
    with pytest.raises(AgentTuiError, match="no MCP server 'other'"):
        await stage.hub.restart("other")


async def test_a_server_of_the_project_runs_once_the_person_says_so(stage):
    spec = stage.add()
    stage.sources.servers[0] = FoundServer(spec, is_allowed=None)
    await stage.take_up()
    assert (stage.hub.servers[0].state, stage.notes()) == ("not asked", [])
    await stage.hub.answer(spec, is_allowed=True)
    stage.sources.servers[0] = FoundServer(spec, is_allowed=True)
    assert await stage.take_up() is True
    assert (await call(stage, "echo", text="hi")).for_model == "hi"
    await stage.hub.answer(spec, is_allowed=False)
    assert (stage.hub.servers[0].state, stage.hub.servers[0].why) == ("off", "you said no to it")
    assert gone(str(stage.notes_file()))
    assert stage.sources.answers == [("srv", True), ("srv", False)]


async def test_an_answer_to_a_question_about_another_program_starts_nothing(stage):
    spec = stage.add()
    stage.sources.servers[0] = FoundServer(spec, is_allowed=None)
    await stage.take_up()
    await stage.hub.answer(replace(spec, argv=("other",)), is_allowed=True)
    assert stage.hub.servers[0].state == "not asked"
    assert stage.sources.answers == []


async def test_what_a_server_was_given_is_not_in_the_log(stage):
    stage.add(fault="tell", env={"TOKEN": "${TOKEN_OF_MINE}", "ON": "1"})
    await stage.take_up()
    (line,) = stage.told
    assert line.startswith("MCP server srv: it exited with code 1: my token is [key removed]")
    assert "s3cret-token-1" not in stage.log_path.read_text()


async def test_no_secret_of_ours_is_in_what_a_server_says(stage):
    await stage.ready()
    said = await call(stage, "echo", text=f"the key is {KEY}")
    assert KEY not in said.for_model
