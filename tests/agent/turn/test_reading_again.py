from agent_tui.features.tour.scripted import Reply
from tests.support.runtime import collect


async def test_changed_instructions_count_when_they_are_read_again_and_not_before(stage):
    file = stage.workspace / "AGENTS.md"
    file.write_text("Use tabs.")
    sent: list[str] = []

    def script(request):
        sent.append(request.system)
        return Reply("Done.")

    runtime = stage.runtime(script)
    await collect(runtime.submit("one"))
    file.write_text("Use blanks.")
    await collect(runtime.submit("two"))
    assert sent[1] == sent[0], "the same bytes, so that the provider's cache holds"
    await runtime.sessions.apply_trust()
    await collect(runtime.submit("three"))
    assert ("Use tabs." in sent[1], "Use blanks." in sent[2]) == (True, True)
    await runtime.sessions.apply_trust()
    assert runtime.conversation.prompt.system == sent[2]
    await runtime.aclose()
