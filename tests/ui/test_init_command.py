from pathlib import Path

from agent_tui.agent.context_files import load_context_files
from agent_tui.events import AgentEvent, TurnFinished
from tests.support.fake_runtime import FakeRuntime
from tests.ui.fed_app import running_app


class Reading(FakeRuntime):
    """Reads the context files when it is told to."""

    async def apply_trust(self) -> tuple[AgentEvent, ...]:
        may_obey = self.trust.may_obey
        self.context_files = load_context_files(self.user_config_dir, self.cwd, may_obey)
        return await super().apply_trust()


async def test_init_has_the_model_write_the_file_and_puts_it_in_force(tmp_path: Path):
    runtime = Reading(tmp_path)
    runtime.services.trust.trust_for_this_run(tmp_path)
    async with running_app(tmp_path, runtime=runtime) as ui:
        await ui.send("/init the release steps")
        await ui.until(lambda: runtime.submitted)
        assert runtime.submitted[0].startswith("Write AGENTS.md: ")
        assert runtime.submitted[0].endswith("in particular: the release steps")
        await ui.send("/init")
        assert ui.notices[-1].startswith("Cannot write AGENTS.md while responding")
        (tmp_path / "AGENTS.md").write_text("Mine.")
        runtime.finish(TurnFinished("done"))
        await ui.until(lambda: "in force" in ui.notices[-1])
        assert ui.notices[-1] == "AGENTS.md is in force from the next message on."
        assert [file.text for file in runtime.conversation.context_files] == ["Mine."]
        await ui.send("/init")
        await ui.until(lambda: len(runtime.submitted) == 2)
        assert "so improve it" in runtime.submitted[1]
        runtime.finish(TurnFinished("done"))
        await ui.settle()
        assert ui.notices[-1] == "AGENTS.md is in force from the next message on."
        assert len(ui.notices) == 2, "nothing changed, so nothing is said"


async def test_init_says_when_what_was_written_is_not_obeyed_and_writes_nothing_in_plan_mode(
    tmp_path: Path,
):
    runtime = Reading(tmp_path)
    async with running_app(tmp_path, runtime=runtime) as ui:
        await ui.send("/permissions plan")
        await ui.send("/init")
        assert ui.notices[-1].startswith("In plan mode nothing can be written")
        assert runtime.submitted == []
        await ui.send("/permissions ask")
        await ui.send("/init")
        await ui.until(lambda: runtime.submitted)
        (tmp_path / "AGENTS.md").write_text("Mine.")
        runtime.finish(TurnFinished("done"))
        await ui.until(lambda: "not in force" in ui.notices[-1])
        assert ui.notices[-1] == (
            "AGENTS.md is not in force: the folder is not trusted. /trust changes that."
        )
