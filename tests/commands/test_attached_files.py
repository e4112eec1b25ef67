from agent_tui.commands.attached_files import describe_attached


def test_each_attached_file_is_named_with_its_size():
    text = (
        "read @a.txt and @b.py\n\n"
        '<file path="a.txt">\none\ntwo\n</file>\n\n'
        '<file path="b.py" lines="41-43">\nx\nx\nx\n</file>'
    )
    assert describe_attached(text) == (
        "a.txt · 2 lines · 7 bytes",
        "b.py · lines 41 to 43 · 5 bytes",
    )


def test_of_a_message_without_files_there_is_nothing_to_tell():
    assert describe_attached("read @a.txt") == ()
