from agent_tui.messages import ToolSpec
from agent_tui.ui.pages import Section, tools_page


def spec(name: str) -> ToolSpec:
    return ToolSpec(name=name, description=f"Does {name}. And more.", parameters={})


def test_tools_are_told_by_the_first_sentence_of_their_full_description() -> None:
    specs = [spec("read"), spec("bash")]
    short = [ToolSpec(name=each.name, description="Short.", parameters={}) for each in specs]
    rows = (("read", "Does read."), ("bash", "Does bash."))
    assert tools_page(short, specs).sections == (Section("", rows),)


def test_tools_that_the_window_has_no_room_for_are_named() -> None:
    has, left_out = tools_page([spec("read")], [spec("read"), spec("bash")]).sections
    assert has.rows == (("read", "Does read."),)
    assert "too small" in left_out.heading
    assert left_out.rows == (("bash", "Does bash."),)
