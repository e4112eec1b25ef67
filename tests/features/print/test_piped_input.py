"""What ``-p`` takes from standard input, and what it leaves to others."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = """
import dataclasses, json, sys
from agent_tui.features.print.piped_input import read_prompt
given = read_prompt(sys.argv[2:], first_byte_s=float(sys.argv[1]))
print(json.dumps(dataclasses.asdict(given)))
"""

FOREVER, NOT_AT_ALL = "60", "0"


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    """A program that prints what `read_prompt` makes of its arguments and its input."""
    script = tmp_path / "probe.py"
    script.write_text(PROBE)
    return script


def shell(line: str, probe: Path, shell: str = "sh") -> list[dict[str, str]]:
    """What the probe found, each time `line` runs it as ``$P``; the input is a pipe left open."""
    environ = {**os.environ, "P": f"{sys.executable} {probe}"}
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [shell, "-c", line],
            stdin=reading,
            stdout=subprocess.PIPE,
            check=True,
            env=environ,
            cwd=probe.parent,
        )
    finally:
        os.close(reading)
        os.close(writing)
    return [json.loads(found) for found in done.stdout.splitlines()]


def test_what_a_slow_program_pipes_in_is_waited_for(probe: Path) -> None:
    (given,) = shell(f"(sleep 0.3; echo the diff) | $P {FOREVER} review", probe)
    assert given == {"written": "review", "piped": "the diff", "note": ""}


def test_what_a_program_pipes_in_after_its_first_line_is_waited_for(probe: Path) -> None:
    (given,) = shell(f"(echo one; sleep 0.3; echo two) | $P {FOREVER} review", probe)
    assert given["piped"] == "one\ntwo"


def test_a_pipe_left_open_is_not_waited_for_beside_a_prompt(probe: Path) -> None:
    reading, writing = os.pipe()
    command = [sys.executable, str(probe), NOT_AT_ALL, "hello"]
    done = subprocess.run(command, stdin=reading, capture_output=True, check=True)
    os.close(reading)
    os.close(writing)
    given = json.loads(done.stdout)
    assert (given["written"], given["piped"]) == ("hello", "")
    assert "No data" in given["note"]


@pytest.mark.parametrize("words", ["-", "review -", "- review", ""])
def test_a_dash_or_no_prompt_asks_for_the_input(probe: Path, words: str) -> None:
    (given,) = shell(f"(sleep 0.3; echo the diff) | $P {NOT_AT_ALL} {words}", probe)
    assert given["piped"] == "the diff"
    assert given["written"] == words.replace("-", "").strip()


@pytest.mark.parametrize(
    "name",
    ["sh", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("bash", "zsh", "ksh"))],
)
@pytest.mark.parametrize(
    "line",
    [
        "while read f; do $P 60 about $f; done < list",
        "cat list | while read f; do $P 60 about $f; done",
        "cat list | while read f; do timeout 100 $P 60 about $f; done",
        "(cat list; sleep 0.2) | while read f; do $P 60 about $f; done",
    ],
)
def test_the_rest_of_a_loop_is_left_to_it(probe: Path, line: str, name: str) -> None:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"no {name} here")
    (probe.parent / "list").write_text("a\nb\nc\n")
    found = shell(line.replace("$P", f"{sys.executable} {probe}"), probe, program)
    assert [given["written"] for given in found] == ["about\n\na", "about\n\nb", "about\n\nc"]
    assert all(not given["piped"] for given in found)
    assert "not read" in found[0]["note"]


def test_the_rest_of_a_script_that_is_piped_into_a_shell_is_left_to_it(probe: Path) -> None:
    (probe.parent / "script").write_text(f"$P {FOREVER} one\n$P {FOREVER} two\n")
    found = shell("cat script | sh", probe)
    assert [(given["written"], given["piped"]) for given in found] == [("one", ""), ("two", "")]


@pytest.mark.parametrize("line", ["$P 60 x < list", "timeout 9 $P 60 x < list", "sh run < list"])
def test_a_file_is_read_whole_through_whatever_runs_us(probe: Path, line: str) -> None:
    (probe.parent / "list").write_text("a\nb\n")
    (probe.parent / "run").write_text("$P 60 x\n")
    (given,) = shell(line, probe)
    assert given == {"written": "x", "piped": "a\nb", "note": ""}


def test_a_pipe_is_read_whole_through_a_program_that_is_no_shell(probe: Path) -> None:
    (given,) = shell("echo a | timeout 100 $P 60 x", probe)
    assert given["piped"] == "a"


def test_the_null_device_and_a_closed_input_hold_nothing_to_tell(probe: Path) -> None:
    (given,) = shell("$P 60 x < /dev/null", probe)
    assert given == {"written": "x", "piped": "", "note": ""}
