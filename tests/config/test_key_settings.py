"""``[keys]``: what may be bound, and what is told of the rest."""

from pathlib import Path

import pytest

from agent_tui.config.loading import LoadedSettings, load_settings
from agent_tui.key_actions import KEY_ACTIONS, KeyMap, format_key, normal_key


def load(tmp_path: Path, text: str, **environ: str) -> LoadedSettings:
    file = tmp_path / "config.toml"
    file.write_text(f"[keys]\n{text}")
    return load_settings(file, environ)


def told(loaded: LoadedSettings) -> list[str]:
    return [f"{problem.line} {problem.key}: {problem.problem}" for problem in loaded.problems]


def test_a_key_several_keys_and_none(tmp_path: Path):
    loaded = load(
        tmp_path,
        'external_editor = "Ctrl+E"\ninterrupt = ["escape", "ctrl+x"]\nfind = ""\nundo = "alt+_"\n',
    )
    assert loaded.problems == ()
    keys = loaded.settings.keys.key_map
    assert keys.keys("external_editor") == ("ctrl+e",)
    assert keys.keys("interrupt") == ("escape", "ctrl+x")
    assert keys.keys("find") == ()
    assert keys.all_shown("undo") == "alt+_"
    assert keys.keys("quit") == ("ctrl+q",)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('fnd = "f5"', "2 keys.fnd: no such setting; did you mean find?"),
        ('find = "ctrl+wrong"', "2 keys.find: there is no key named wrong"),
        ('find = "strg+f"', "2 keys.find: strg+f: strg is not a modifier"),
        ('find = "x"', "2 keys.find: x is needed for typing"),
        ('find = "enter"', "2 keys.find: enter is needed for typing"),
        ('find = "shift+x"', "2 keys.find: shift+x is needed for typing"),
        ('find = "ctrl+i"', "2 keys.find: terminals cannot tell ctrl+i from tab"),
        ('find = "ctrl+c"', "2 keys.find: ctrl+c is reserved"),
        ('find = "ctrl+t"', "2 keys.find: ctrl+t is bound to toggle_thinking; give"),
        ('find = "f5"\nmouse = "f5"', "3 keys.mouse: f5 is already bound to find"),
        ('submit = ""', "2 keys.submit: this action needs a key"),
        ('interrupt = ""', "2 keys.interrupt: this action needs a key"),
        ("clear_or_leave = []", "2 keys.clear_or_leave: this action needs a key"),
        ("find = 5", "2 keys.find: "),
    ],
)
def test_what_cannot_stand_is_left_out_and_told(tmp_path: Path, line: str, problem: str):
    loaded = load(tmp_path, line)
    (only,) = told(loaded)
    assert only.startswith(problem)
    left = loaded.settings.keys.key_map.chosen
    assert dict(left) == ({"find": ("f5",)} if "mouse" in line else {})


def test_a_default_key_of_another_action_is_free_where_that_has_a_second_one(tmp_path: Path):
    loaded = load(tmp_path, 'find = "ctrl+l"\nhelp = "f1"\n')
    assert loaded.problems == ()
    keys = loaded.settings.keys.key_map
    assert keys.keys("last_message") == ("ctrl+end",)
    assert keys.action("ctrl+l") == "find"
    assert keys.action("question_mark") == ""


def test_keys_may_be_swapped(tmp_path: Path):
    loaded = load(tmp_path, 'submit = "ctrl+enter"\nnewline = ["enter", "ctrl+j"]\n')
    assert loaded.problems == ()
    keys = loaded.settings.keys.key_map
    assert (keys.action("enter"), keys.action("ctrl+\r")) == ("newline", "submit")


def test_layers_are_judged_together(tmp_path: Path):
    loaded = load(tmp_path, 'find = "f5"\n', AGENT_TUI_KEYS__MOUSE="f5")
    assert told(loaded) == ["0 keys.mouse: f5 is already bound to find"]
    assert loaded.problems[0].source == "AGENT_TUI_KEYS__MOUSE"
    assert loaded.settings.keys.key_map.keys("mouse") == ("alt+m",)


def test_one_clash_that_goes_may_make_another(tmp_path: Path):
    """Find gets its ctrl+f back, which the palette was given."""
    loaded = load(tmp_path, 'mouse = "f5"\nfind = "ctrl+c"\npalette = "ctrl+f"\n')
    assert [problem.key for problem in loaded.problems] == ["keys.find", "keys.palette"]


def test_the_defaults_stand_for_themselves():
    assert next(KeyMap().clashes(), None) is None
    for action in KEY_ACTIONS.values():
        assert tuple(normal_key(key, action) for key in action.keys) == action.keys


def test_keys_are_normal_as_terminals_are_read():
    find = KEY_ACTIONS["find"]
    assert normal_key("alt+F", find) == "alt+shift+f"
    assert normal_key("shift+ctrl+Up", find) == "ctrl+shift+up"
    assert normal_key("ctrl+_", find) == "ctrl+underscore"
    assert normal_key("ctrl++", find) == "ctrl+plus"
    assert format_key("ctrl+plus") == "ctrl++"
