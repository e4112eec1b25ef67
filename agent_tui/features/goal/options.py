"""The options of ``agent-tui`` that set a goal."""

import argparse
import shlex


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to the command line without a subcommand."""
    goal = parser.add_argument_group("goal")
    goal.add_argument(
        "--goal",
        metavar="TEXT",
        help="work until this is met, as /goal does; with -p, exit with 0 only if it is",
    )
    goal.add_argument(
        "--check",
        action="append",
        default=[],
        metavar="COMMAND",
        dest="checks",
        help="with --goal: a command that must exit with 0; repeatable",
    )
    goal.add_argument(
        "--checks-outside",
        action="store_true",
        help="with --goal: run the checks outside the sandbox",
    )


def take_options(parser: argparse.ArgumentParser, values: argparse.Namespace) -> None:
    """Replace the options of a goal by the command that sets it, as the prompt."""
    text, checks, is_outside = map(vars(values).pop, ("goal", "checks", "checks_outside"))
    if text is None:
        if checks or is_outside:
            parser.error("--check and --checks-outside require --goal")
    elif values.prompt:
        parser.error("--goal cannot be combined with a prompt: say all of it in the goal")
    elif not text.strip():
        parser.error("--goal is empty: say what is to be reached")
    else:
        options = [f"--text={shlex.quote(text)}"]  # never read as a word or an option of /goal
        options += [f"--check={shlex.quote(check)}" for check in checks]
        options += ["--outside"] * is_outside
        values.prompt, values.prompt_option = " ".join(("/goal", *options)), "--goal"
