import subprocess

import pytest

from agent_tui.compaction.ledger.build import build_ledger
from agent_tui.events import BashFinished
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import FileTouches
from agent_tui.sessions.log import SessionLog
from agent_tui.tools.git import changes as git_changes
from tests.support.runtime import collect, only


@pytest.fixture
def repository(stage, monkeypatch):
    monkeypatch.setattr(git_changes, "LOOK_S", 100)
    monkeypatch.setattr(git_changes, "COMPARE_S", 100)
    (stage.workspace / "a.py").write_text("one\n")
    (stage.workspace / "b.py").write_text("one\n")
    script = (
        "git init -q --template=; git add .; git -c user.name=A -c user.email=a commit -qm first"
    )
    subprocess.run(["/bin/sh", "-ec", script], cwd=stage.workspace, check=True)
    return stage.workspace


def ledger_of_file(runtime, workspace):
    """What is known to a program that opens the session anew."""
    entries = SessionLog.open(runtime.conversation.log.path).entries
    return build_ledger(entries, folders=(str(workspace),), previous=None)


@pytest.mark.thorough
async def test_files_that_commands_change_are_in_the_session_and_in_the_ledger(stage, repository):
    edit = "python3 -c \"open('a.py','a').write('x')\"; false"
    runtime = stage.runtime(
        [Reply(tool_calls=(call("c1", "bash", command=edit),)), Reply(text="ok")]
    )
    await collect(runtime.submit("go"))
    command = "python3 -c \"open('new.py','w').write('x')\"; rm b.py"
    finished = only(await collect(runtime.run_bash(command, in_context=True)), BashFinished)
    touched = FileTouches(written=(f"{repository}/new.py",), edited=(f"{repository}/b.py",))
    assert finished.message.files == touched
    await runtime.aclose()
    assert ledger_of_file(runtime, repository).modified_files == ("new.py", "a.py")


async def test_a_command_that_changes_nothing_adds_nothing_to_its_line(stage, repository):
    runtime = stage.runtime([Reply(text="hi")])
    await collect(runtime.submit("hello"))
    finished = only(await collect(runtime.run_bash("ls", in_context=True)), BashFinished)
    assert finished.message.files is None
    await runtime.aclose()
    assert '"files"' not in runtime.conversation.log.path.read_text()
