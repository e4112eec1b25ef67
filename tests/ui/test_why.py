"""``/why``: the change that made a line, in a conversation."""

import io
from pathlib import Path

from agent_tui.features.print.printer import print_command
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.ui.screens.modal import PageRow, PageScreen
from tests.support.models import listed_services
from tests.support.runtime import Stage, collect
from tests.ui.app_support import running_app


async def test_a_line_of_this_conversation_is_explained(tmp_path: Path):
    stage = Stage(tmp_path)
    (stage.workspace / "a.py").write_text("one\ntwo\n")
    change = call("e", "edit", path="a.py", old="two", new="TWO")
    runtime = stage.runtime([Reply("It must be loud.", tool_calls=(change,)), Reply("Done.")])
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(120, 40)) as ui:
        await ui.send("Shout the second line.")
        await ui.send("/why a.py:2")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        await ui.until(lambda: ui.app.screen.query(PageRow))
        rows = "\n".join(row.words for row in ui.app.screen.query(PageRow))
        assert "you asked: shout the second line." in rows
        assert "the model: it must be loud." in rows


async def test_it_is_printed_for_scripts(tmp_path: Path):
    stage, out = Stage(tmp_path), io.StringIO()
    (stage.workspace / "a.py").write_text("one\ntwo\n")
    change = call("e", "edit", path="a.py", old="two", new="TWO")
    runtime = stage.runtime([Reply(tool_calls=(change,)), Reply("Done.")])
    await collect(runtime.submit("Shout the second line."))
    services = listed_services()
    await print_command(runtime, services, "/why a.py:2", "text", out=out)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert "a.py:2: TWO" in lines
    assert "You asked: Shout the second line." in lines
    assert lines[-3:] == ["Changed by edit", "- two", "+ TWO"]


async def test_several_lines_share_an_answer_and_keys_are_removed(tmp_path: Path):
    stage, key = Stage(tmp_path), "a-key-of-the-provider"
    (stage.workspace / "a.py").write_text("one\ntwo\n")
    change = call("e", "edit", path="a.py", old="two", new="TWO\nTHREE")
    runtime = stage.runtime([Reply(tool_calls=(change,)), Reply("Done.")])
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(120, 40)) as ui:
        await ui.send(f"Shout {key}.")
        runtime.services.secrets = (key,)
        await ui.send("/why a.py:2-3")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        await ui.until(lambda: ui.app.screen.query(PageRow))
        rows = "\n".join(row.words for row in ui.app.screen.query(PageRow))
        assert "you asked: shout [key removed]." in rows
        assert rows.count("you asked") == 1
