"""What must hold of the permission engine whatever it is given. No command is ever run."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.config import PermissionMode
from tests.safety.corpus import MODES, judge, make_workspace, read_corpus
from tests.support.rows import each_row

_HARMLESS = tuple(j.command for j in read_corpus() if j.kind == "harmless" and not j.allow)
_HOSTILE = tuple(
    j.command for j in read_corpus() if j.kind == "hostile" and not j.deny and "#" not in j.command
)
_ONE_LINE = tuple(c for c in _HARMLESS if "\n" not in c and "#" not in c)
_JOINTS = ("{}; {}", "{} && {}", "{} | {}", "{} & {}", "{}\n{}", "({}; {})", "{} || {}")
_AROUND = ("echo $({})", "echo `{}`", 'echo "$({})"', "cat <({})", "if {}; then ls; fi", "! {}")
_NOT_ALLOWED = (
    "rm x",
    "/bin/rm x",
    "git push",
    "A=1 ls",
    "ls > out",
    "cat .env",
    "make",
    "find . -delete",
    "sort -o out x",
    "timeout 5 rm x",
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("safety"))


@settings(max_examples=100)
@given(data=st.data())
def test_nothing_glued_to_an_allowed_command_runs_with_it(data: st.DataObject, workspace: Path):
    allowed = data.draw(st.sampled_from(_ONE_LINE))
    other = data.draw(st.sampled_from(_NOT_ALLOWED))
    joint = data.draw(st.sampled_from(_JOINTS))
    wrapped = data.draw(st.sampled_from(("{}", *_AROUND))).format(other)
    pair = (wrapped, allowed) if data.draw(st.booleans()) else (allowed, wrapped)
    command = joint.format(*pair)
    allow = ("bash(git status)", "bash(git log *)", "bash(npm test)")
    assert judge(workspace, command, "ask", allow).decision == "ask", command
    assert judge(workspace, command, "plan", allow).decision == "deny", command


@settings(max_examples=60)
@given(data=st.data())
def test_two_commands_of_the_corpus_are_as_hostile_as_the_worse(
    data: st.DataObject, workspace: Path
):
    allowed, hostile = data.draw(st.sampled_from(_ONE_LINE)), data.draw(st.sampled_from(_HOSTILE))
    joint = data.draw(st.sampled_from(("{}; {}", "{} && {}", "{}\n{}")))
    command = joint.format(allowed, hostile)
    assert judge(workspace, command, "ask").decision != "allow", command


@settings(max_examples=150)
@given(
    st.one_of(
        st.text(max_size=60),
        st.text(alphabet="ab $(){}[]`'\"\\;|&<>\n#=~*!-/.:^%@?+0", max_size=60),
        st.lists(st.sampled_from(_HARMLESS + _HOSTILE), min_size=1, max_size=4).map(" ".join),
    ),
    st.sampled_from(MODES),
)
def test_judging_never_raises(command: str, mode: PermissionMode):
    decided = judge(Path("/ws"), command, mode, deny=("bash(rm *)", "read(x/**)"))
    assert decided.decision in ("allow", "ask", "deny")


@each_row(
    "command",
    [
        "[ " + "-f a -a " * 2_000 + "-f b ]",
        "env " * 4_000 + "ls",
        "echo " + "$(" * 300 + "ls" + ")" * 300,
        "echo " + "{a," * 5_000,
        "for f in a b c d e f; do " * 10 + "ls; " + "done; " * 10,
        "bash -c " * 2_000 + "ls",
        "ls " + "> a " * 3_000,
        "awk '" + "/a/;" * 4_000 + "' x",
        "sed -n '" + "p;" * 8_000 + "' x",
        "(" * 9_000,
        "x" * 50_000,
    ],
    ids=lambda command: command[:20],
)
def test_long_and_deep_commands_are_judged_all_the_same(command: str, workspace: Path):
    assert judge(workspace, command, "ask").decision in ("allow", "ask")


@pytest.mark.parametrize("parts", [1, 51, 700])
def test_a_deny_rule_holds_at_any_number_of_parts(parts: int, workspace: Path):
    for joint in ("; ", " && ", " | "):
        command = joint.join([*(f"ls a{number}" for number in range(parts)), "rm x"])
        verdict = judge(workspace, command, "full", ("bash(*)",), ("bash(rm *)",))
        assert verdict.decision == "deny"


def test_a_loop_in_many_folders_cannot_hide_where_it_writes(workspace: Path):
    steps = "; ".join(f"cd d{number}" for number in range(60))
    for command in (f"{steps}; cd .git; echo x > config", f"{steps}; echo x > out"):
        assert judge(workspace, command, "accept-edits").decision == "ask"


@pytest.mark.parametrize(
    "command",
    ["ls " + " ".join(f"a{index}*" for index in range(2_800)), "ls " + "/*" * 9 + "/nowhere"],
)
def test_more_file_patterns_than_can_be_followed_ask_in_every_mode(command: str, workspace: Path):
    assert judge(workspace, command, "plan").decision == "deny"
    for mode in MODES[1:]:
        verdict = judge(workspace, command, mode)
        assert verdict.decision == "ask"
        assert "too many files to check" in verdict.why


@pytest.mark.parametrize("program", ["cargo --version", "rustc -V"])
def test_a_version_is_not_asked_of_a_program_the_folder_chooses(program: str, tmp_path: Path):
    project = make_workspace(tmp_path)
    assert judge(project, program, "ask").decision == "allow"
    (project / "rust-toolchain.toml").write_text("[toolchain]\npath = 'evil'\n")
    assert judge(project, program, "ask").decision == "ask"
    assert judge(project, f"cd src && {program}", "ask").decision == "ask"


@pytest.mark.parametrize("search", ["grep -r token", "egrep -R token", "rg token"])
def test_searching_a_folder_with_keys_below_it_asks(search: str, tmp_path: Path):
    project = make_workspace(tmp_path)
    settings_folder = tmp_path / "elsewhere" / ".config"
    (settings_folder / "gh").mkdir(parents=True)
    (settings_folder / "gh" / "hosts.yml").write_text("oauth_token: x\n")
    assert judge(project, f"{search} {settings_folder}", "ask").decision == "ask"
    assert judge(project, f"{search} {settings_folder.parent}", "ask").decision == (
        "allow" if search.startswith("rg") else "ask"  # rg leaves hidden folders out
    )
