from agent_tui.ui.parts import KEY, WORDS, keys_line


def test_only_the_keys_stand_out():
    line = keys_line("esc stops · enter or 1-7 answer")
    assert line.plain == "esc stops · enter or 1-7 answer"
    styled = [(line.plain[span.start : span.end], span.style) for span in line.spans]
    assert [text for text, style in styled if style == KEY] == ["esc", "enter"]
    assert "".join(text for text, style in styled if style == WORDS) == " stops ·  or 1-7 answer"
