from agent_tui.features.tour.scripted import Reply
from tests.features.plain.talking import talk


def test_a_prompt_file_is_a_command_here_too(stage):
    folder = stage.folder / "config" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("Review $1 closely.")
    (folder / "bad.md").write_bytes(b"\0")
    (folder / "model.md").write_text("Mine.")
    seen: list[str] = []

    def script(request):
        seen.append(request.messages[-1].text)
        return Reply("Read.")

    text = talk(stage, stage.runtime(script), "/review src", "/bad", "/model x", "/none")
    assert seen == ["Review src closely."]
    assert "You: Review src closely." in text
    assert "bad.md is binary, not text." in text
    assert "Unknown command /none." in text
