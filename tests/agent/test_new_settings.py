from agent_tui.agent.runtime import AgentRuntime
from agent_tui.config import CompactionSettings, Settings
from agent_tui.features.tour.scripted import Reply
from tests.support.runtime import GOOD_SUMMARY, collect


def settings(**compaction: object) -> Settings:
    chosen = CompactionSettings.model_validate({"background": False, **compaction})
    return Settings(compaction=chosen, bash_timeout_s=7, durability="none")


async def test_other_settings_of_compaction_are_in_force_at_once(stage):
    runtime: AgentRuntime = stage.runtime(lambda _request: Reply(text="hi"))
    await collect(runtime.submit("hello"))
    before = runtime.services.settings
    runtime.use_settings(settings(trigger_at=0.01, warn_at=0.005, strategy="hybrid"))
    assert runtime.conversation.level != "normal"
    assert runtime.conversation.settings.strategy == "hybrid"
    assert (runtime.services.settings.bash_timeout_s, before.bash_timeout_s) == (7, 120)
    assert runtime.services.settings.durability == before.durability, (
        "files are open with it already"
    )


async def test_they_are_those_of_the_next_session_and_of_its_summaries_too(stage):
    asked: list[str] = []

    def script(request):
        if request.purpose == "summary":
            asked.append(request.messages[-1].text)
            return Reply(text=GOOD_SUMMARY)
        return Reply(text="word " * 4_000)

    runtime: AgentRuntime = stage.runtime(script)
    runtime.use_settings(settings(template="seven-section", keep_recent_tokens=200))
    await runtime.sessions.start_new()
    assert runtime.conversation.settings.template == "seven-section"
    for text in ("one", "two", "three"):
        await collect(runtime.submit(text))
    await collect(runtime.compact())
    assert "## Key Decisions" not in asked[0], "that is the form of the default"
