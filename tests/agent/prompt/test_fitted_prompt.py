import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.agent.prompt.context_files import ContextFile
from agent_tui.agent.prompt.fitted_prompt import (
    LEAST_WINDOW,
    FittedPrompt,
    PromptParts,
    fit_prompt,
    full_prompt,
)
from agent_tui.tokens import TokenCounter
from agent_tui.tools.registry import default_toolbox
from tests.support.offered import offered

COUNTER = TokenCounter()
TOOLS = offered(default_toolbox().specs, "any")
SHORT_TOOLS = offered(default_toolbox().short_specs, "any")
NAMES = [spec.name for spec in TOOLS]
CWD = Path("/home/person/projects/some-project")
DAY = date(2026, 1, 2)

_lines = st.sampled_from(
    ["Use tabs.", "", "- never push, never ever", "日本語の規則を守る", "x" * 900, "\tindented "]
)
_texts = st.lists(_lines, min_size=1, max_size=60).map(lambda lines: "x\n" + "\n".join(lines))
_paths = st.sampled_from([CWD / "AGENTS.md", CWD / ("d" * 160) / "AGENTS.md", Path("/u/AGENTS.md")])
_files = st.lists(
    st.builds(ContextFile, _paths, _texts, st.booleans()), unique_by=lambda file: file.path
).map(tuple)
_folders = st.sampled_from([CWD, Path("/"), Path("/" + "長い道/" * 300), Path("/" + "x" * 4_000)])
_windows = st.integers(2_048, 20_000)


def parts(files: tuple[ContextFile, ...] = (), cwd: Path = CWD) -> PromptParts:
    return PromptParts(cwd, DAY, TOOLS, SHORT_TOOLS, files)


def fit(window: int, *files: ContextFile) -> FittedPrompt:
    return fit_prompt(parts(files), window, COUNTER)


def tokens(fitted: FittedPrompt) -> int:
    return COUNTER.count_text(fitted.system) + COUNTER.count_tools(fitted.tools)


def names(fitted: FittedPrompt) -> list[str]:
    return [tool.name for tool in fitted.tools]


@settings(max_examples=80)
@given(window=_windows, files=_files, cwd=_folders)
def test_the_prompt_keeps_its_share_and_is_the_same_for_the_same_inputs(
    window: int, files: tuple[ContextFile, ...], cwd: Path
):
    fitted = fit_prompt(parts(files, cwd), window, COUNTER)
    assert tokens(fitted) <= window // 5 + (window - 1_024) // 8
    assert names(fitted) == NAMES[: len(fitted.tools)]
    assert len(fitted.tools) >= 3
    assert fitted == fit_prompt(parts(files, cwd), window, TokenCounter())
    assert not fitted.is_too_small


@settings(max_examples=80)
@given(window=_windows, more=st.integers(0, 9_000), files=_files, cwd=_folders)
def test_a_larger_window_never_gives_less(
    window: int, more: int, files: tuple[ContextFile, ...], cwd: Path
):
    small = fit_prompt(parts(files, cwd), window, COUNTER)
    large = fit_prompt(parts(files, cwd), window + more, COUNTER)
    assert len(small.tools) <= len(large.tools)
    for path, text in _instructions(small).items():
        assert _instructions(large)[path].startswith(text)


def _instructions(fitted: FittedPrompt) -> dict[str, str]:
    """What stands in the prompt of each file, without the remark where it was cut."""
    found = re.findall(r'<instructions file="(.*?)">\n(.*?)</instructions>', fitted.system, re.S)
    return {path: text.partition("(cut here;")[0].rstrip("\n") for path, text in found}


@pytest.mark.parametrize("window", [0, 8_192, 200_000])
def test_from_8k_on_and_where_nothing_is_known_the_full_texts_are_used(window: int):
    fitted = fit(window, ContextFile(CWD / "AGENTS.md", "Use tabs.\n"))
    assert fitted.system == (
        f'{full_prompt(CWD, DAY)}\n\n<instructions file="{CWD}/AGENTS.md">\nUse tabs.\n'
        "</instructions>"
    )
    assert fitted.tools == TOOLS
    assert fitted.note == ""


def test_a_small_window_gets_the_first_tools_and_says_so():
    fitted = fit(2_048)
    assert names(fitted) == ["read", "bash", "edit", "write"]
    assert fitted.note == (
        "To fit this model's context window (2,048 tokens): only these tools are available: "
        "read, bash, edit, write."
    )
    assert tokens(fitted) < 410


def test_in_between_all_tools_are_there_in_few_words():
    fitted = fit(5_632)
    assert fitted.tools == SHORT_TOOLS
    assert fitted.note == ""
    assert "description" not in str(fitted.tools[0].parameters)


def test_a_long_context_file_is_cut_at_a_line_and_says_how_to_go_on():
    lines = [f"Rule {number}: never do {number}." for number in range(1, 501)]
    fitted = fit(8_192, ContextFile(CWD / "AGENTS.md", "\n".join(lines)))
    block = fitted.system.partition("<instructions")[2].split("\n")
    kept = block[1:-2]
    assert kept == lines[: len(kept)]
    assert 50 < len(kept) < 200
    assert block[-2] == (f"(cut here; to see the rest, read this file with offset={len(kept) + 1})")
    assert block[-1] == "</instructions>"
    assert fitted.note == "To fit this model's context window (8,192 tokens): cut: AGENTS.md."


def test_a_line_without_end_is_cut_inside():
    fitted = fit(8_192, ContextFile(CWD / "AGENTS.md", "one\n" + "word " * 20_000))
    assert fitted.system.endswith("read this file with offset=2)\n</instructions>")
    assert 500 < fitted.system.count("word ") < 900


def test_short_files_stay_whole_and_the_long_one_gets_what_they_leave():
    user = ContextFile(Path("/u/AGENTS.md"), "Speak plainly.\n")
    repo = ContextFile(CWD / "AGENTS.md", "Use tabs.\n" * 2_000)
    deep = ContextFile(CWD / "deep" / "AGENTS.md", "No comments.\n")
    fitted = fit(8_192, user, repo, deep)
    assert fitted.note.endswith("cut: AGENTS.md.")
    assert fitted.system.index("Speak plainly.") < fitted.system.index("Use tabs.")
    assert fitted.system.endswith("No comments.\n</instructions>")
    assert tokens(fitted) > tokens(fit(8_192)) + 800


def test_a_file_not_even_the_remark_has_room_for_is_named_to_the_person():
    files = [ContextFile(CWD / (str(n) * 40) / "AGENTS.md", "Use tabs.\n" * 99) for n in range(9)]
    fitted = fit(2_048, *files)
    assert "<instructions" not in fitted.system
    assert f"left out: {'0' * 40}/AGENTS.md, " in fitted.note


def test_a_file_that_was_cut_when_it_was_read_says_so_in_any_window():
    file = ContextFile(CWD / "AGENTS.md", "one\ntwo\nthr", was_cut=True)
    assert "thr\n(cut here; to see the rest, read this file with offset=3)" in fit(0, file).system


def test_below_1500_tokens_it_is_said_that_no_work_is_possible():
    fitted = fit(LEAST_WINDOW - 1)
    assert fitted.is_too_small
    assert names(fitted)[0] == "read"
    assert fitted.note == (
        "This model's context window (1,499 tokens) is too small. Choose another model with "
        "{model}, or start its server with a larger context (at least 2,048 tokens)."
    )
    assert not fit(0).is_too_small


def test_a_large_window_needs_no_counting(monkeypatch: pytest.MonkeyPatch):
    counter, counted = TokenCounter(), list[str]()
    monkeypatch.setattr(counter, "count_text", lambda text: counted.append(text) or 1)
    fit_prompt(parts((ContextFile(CWD / "AGENTS.md", "Use tabs.\n" * 500),)), 100_000, counter)
    assert not counted
