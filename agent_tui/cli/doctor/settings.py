"""Settings: what could not be used, what the environment changes, which rules were left out."""

import difflib
from collections.abc import Iterator, Mapping

from agent_tui import paths
from agent_tui.cli.doctor.check import Check, State
from agent_tui.cli.doctor.surroundings import Surroundings
from agent_tui.cli.doctor.wording import listed, shown_path
from agent_tui.config import SettingProblem, setting_variables
from agent_tui.permissions.engine import Approvals

_SECTION = "settings"
_FOLDER_VARIABLES = tuple(
    f"AGENT_TUI_{name}_DIR" for name in ("CONFIG", "DATA", "CACHE", "SESSION")
)


def check_settings(around: Surroundings) -> Iterator[Check]:
    """The settings file and every line of it that is not in force."""
    file = shown_path(around.config_file, around.environ)
    if around.config_file.exists():
        problems = around.loaded.problems
        found = f"{file}, {len(problems)} to mend" if problems else f"{file}, all of it in force"
        yield Check(_SECTION, "file", "info" if problems else "ok", found)
    else:
        yield Check(_SECTION, "file", "info", f"{file} does not exist: the defaults are in force")
    for problem in around.loaded.problems:
        yield _problem_check(problem, around.environ)


def check_environment(around: Surroundings) -> Iterator[Check]:
    """Our own variables, by name: those in force, and those that set nothing."""
    known = {*setting_variables(), *_FOLDER_VARIABLES}
    present = sorted(name for name in around.environ if name.startswith("AGENT_TUI_"))
    in_force = [name for name in present if name in known]
    found = f"{listed(in_force)}: stronger than the file" if in_force else "changes no setting"
    yield Check(_SECTION, "environment", "info" if in_force else "ok", found)
    for name in present:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            advice = f"Did you mean {near[0]}?" if near else f"Unset it: unset {name}"
            yield Check(_SECTION, name, "warning", "sets nothing", advice)


def check_rules(around: Surroundings) -> Iterator[Check]:
    """The permission rules of the settings and of this project."""
    if around.cwd is None:
        return
    approvals = Approvals(
        mode=around.loaded.settings.permission_mode,
        rules=around.loaded.settings.permissions,
        workspace=around.cwd,
        project_rules_file=paths.project_dir(around.cwd) / "permissions.toml",
        is_interactive=False,
    )
    found = f"{around.loaded.settings.permission_mode} mode, {len(approvals.rules)} rules"
    yield Check(_SECTION, "permissions", "ok", found)
    for problem in approvals.problems:
        advice = "Mend the rule: until then it neither allows nor denies anything."
        yield Check(_SECTION, "permissions", "bad", f"left out: {problem}", advice)


def _problem_check(problem: SettingProblem, environ: Mapping[str, str]) -> Check:
    """A whole file or a permission that is not in force is worse than one odd key."""
    is_grave = not problem.key or problem.key.startswith("permissions")
    state: State = "bad" if is_grave else "warning"
    home = environ.get("HOME", "")
    said = str(problem)
    if home not in ("", "/"):
        said = said.replace(f"{home}/", "~/", 1)
    if not problem.key:
        advice = "Mend the file: until then the defaults are in force instead of all of it."
    elif problem.line:
        advice = "Mend or remove that line: until then the default is in force."
    else:
        advice = "Mend or unset that variable: until then the default is in force."
    return Check(_SECTION, problem.key or "file", state, said, advice)
