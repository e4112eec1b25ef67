"""How many small faults in a room its tests would let through: mutmut's mutants, a random sample.

    python -m pip install "mutmut>=3.8,<4" "pytest-cov>=7,<8"
    python -m tests.benchmarks.mutants permissions tools [--sample 200] [--seed 1] [--types]

Works on copies of the tree, each with a Python environment that finds the copy first: the processes
that this program starts run the mutant, too, whatever variables they are given. The tests of a room
run once to learn which of them reach which line; each sampled mutant is then written into its file
and meets the tests that reach it (all of the room, where none is known to: the line runs in a
process of its own). What a mutant's processes leave running is ended. mutmut's own runner is not
used: it keeps all mutants in one file and chooses by a variable of the environment, which those
processes do not get to see.

Survivors are printed as unified diffs, which ``git apply`` takes.

A mutant *survives* if no test fails. What only changes the wording of a text for people is counted
apart and not tried: tests that compare such texts letter by letter would be worth little. With
``--types`` the type checker sees the survivors, too, as it sees every change before it lands.
"""

import argparse
import ast
import difflib
import os
import random
import re
import shutil
import subprocess
import sysconfig
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Literal, TypeAlias

from tests.benchmarks import contained_pytest, first_failure

ROOT = Path(__file__).parents[2]

TESTS_OF_ROOMS: Mapping[str, tuple[str, ...]] = {
    "agent": ("tests/agent",),
    "permissions": (
        "tests/permissions",
        "tests/safety/test_commands.py",
        "tests/safety/test_engine.py",
        "tests/safety/test_files.py",
    ),
    "sessions": ("tests/sessions",),
    "tools": ("tests/tools",),
}
MUTANT_TIMEOUT_S = 400
"""A test alone has a minute, so that this tells of a slow machine, not of an endless loop."""
_SENTENCE = re.compile(r"[A-Za-z,:.] | [A-Za-z]")
"""Words with a blank beside them; keys, options and most regular expressions have none."""

Outcome: TypeAlias = Literal["killed", "survived", "wording", "killed by types", "out of time"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file: its whole text with the change, the first changed line, the diff."""

    path: str
    line: int
    code: str
    diff: str


def sampled_mutants(
    files: Sequence[Path], root: Path, sample: int, seed: int
) -> tuple[list[Mutant], int]:
    """Mutants of the functions of `files`, chosen by chance, and how many there are in all."""
    mutmut = import_module("mutmut.mutation.file_mutation")
    made = [(file, *mutmut.create_mutations(str(file), file.read_text())[:2]) for file in files]
    everyone = [
        (file, module, mutation)
        for file, module, mutations in made
        for mutation in mutations
        if mutation.contained_by_top_level_function  # tables would be repeated by their tests
    ]
    chosen: list[Mutant] = []
    for file, module, mutation in random.Random(seed).sample(everyone, len(everyone)):
        if len(chosen) == sample:
            break
        changed = mutmut.deep_replace(module, mutation.original_node, mutation.mutated_node).code
        path = str(file.relative_to(root))
        before, after = file.read_text().splitlines(), changed.splitlines()
        diff = "\n".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm=""))
        if diff:
            same = (old == new for old, new in zip(before, after, strict=False))
            line = next((number for number, is_same in enumerate(same, 1) if not is_same), 1)
            chosen.append(Mutant(path, line, changed, diff))
    return chosen, len(everyone)


def is_wording(before: str, after: str) -> bool:
    """Whether two texts of a file differ only in sentences: what people and the model read."""
    return _without_sentences(before) == _without_sentences(after)


def _without_sentences(code: str) -> str:
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if _SENTENCE.search(node.value):
            node.value = ""
    return ast.dump(tree)


def copy_tree(target: Path) -> None:
    """Copy what the repository holds, without its history."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place)


def make_environment(tree: Path) -> None:
    """An environment beside `tree` in which `agent_tui` is the copy, then as this one.

    Neither ``-P`` nor an environment variable of a child's own changes what it imports.
    """
    place = tree.parent / "environment"
    venv.create(place, symlinks=True)
    bases = {"base": str(place), "platbase": str(place)}
    packages = sysconfig.get_path("purelib")
    Path(sysconfig.get_path("purelib", vars=bases), "copy.pth").write_text(
        f"{tree}\nimport site; site.addsitedir({packages!r})\n"
    )


def reaching_tests(room: str, tree: Path, jobs: int) -> dict[str, dict[int, list[str]]]:
    """For each file of the room and each of its lines the tests that run it.

    Raises:
        SystemExit: a test fails as the code is, so that it would tell nothing of a mutant.
    """
    settings = tree / "coverage.ini"
    settings.write_text("[run]\ncore = ctrace\ndynamic_context = none\n")
    code = _pytest(
        tree,
        f"-n{jobs}",
        "--dist=load",  # with groups a test's name has its group behind it
        f"--cov=agent_tui/{room}",
        "--cov-context=test",
        "--cov-report=",
        f"--cov-config={settings.name}",
        *TESTS_OF_ROOMS[room],
    )
    if code != 0:
        end = (tree / "log").read_text().splitlines()[-20:]
        raise SystemExit("\n".join([f"{room}: its tests fail without a mutant", *end]))
    data = import_module("coverage").CoverageData(str(tree / ".coverage"))
    data.read()
    found: dict[str, dict[int, list[str]]] = {}
    for file in data.measured_files():
        by_line = data.contexts_by_lineno(file)
        found[str(Path(file).relative_to(tree))] = {
            line: sorted({context.rpartition("|")[0] for context in contexts if context})
            for line, contexts in by_line.items()
        }
    names = {test for lines in found.values() for tests in lines.values() for test in tests}
    (tree / "names").write_text("\n".join(sorted(names)))
    if _pytest(tree, "-n0", "--collect-only", "@names") != 0:
        raise SystemExit(f"{room}: not every test can be called by its name")
    return found


def tests_of_line(file: Path, line: int, known: Mapping[int, Sequence[str]]) -> Sequence[str]:
    """The tests that run a line; of a line within a statement those of the line above it.

    Empty where its function is not known to run at all.
    """
    functions = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    around = min((lines for lines in functions if line in lines), key=len, default=range(0))
    nearest = sorted(around, key=lambda number: (number > line, abs(number - line)))
    return next((known[number] for number in nearest if known.get(number)), ())


def _pytest(tree: Path, *arguments: str, timeout_s: int = 3_600) -> int:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    python = str(tree.parent / "environment" / "bin" / "python")
    command = [python, "-m", contained_pytest.__name__, str(timeout_s), "-q", "-x"]
    command += ["-p", "no:cacheprovider", *arguments]
    with (tree / "log").open("w") as log:
        return subprocess.run(
            command,
            cwd=tree,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        ).returncode


def try_out(mutant: Mutant, tests: Sequence[str], room: str, tree: Path, *, types: bool) -> Outcome:
    """What becomes of a mutant in `tree`, which is as before afterwards."""
    file = tree / mutant.path
    original = file.read_text()
    if is_wording(original, mutant.code):
        return "wording"
    file.write_text(mutant.code)
    try:
        (tree / "names").write_text("\n".join(tests or TESTS_OF_ROOMS[room]))
        plugin = first_failure.__name__
        code = _pytest(
            tree, "-n0", "-p", plugin, "--timeout=60", "@names", timeout_s=MUTANT_TIMEOUT_S
        )
        if code != 0:
            return "out of time" if code == contained_pytest.OUT_OF_TIME else "killed"
        if (
            types
            and subprocess.run(
                ["pyright", mutant.path], cwd=tree, stdout=subprocess.DEVNULL, check=False
            ).returncode
        ):
            return "killed by types"
        return "survived"
    finally:
        file.write_text(original)


def measure(room: str, sample: int, seed: int, scratch: Path, *, types: bool, jobs: int) -> None:
    """Try a sample of the room's mutants and print what became of them."""
    trees = [scratch / f"tree{number}" / "main" for number in range(jobs)]
    for tree in trees:
        tree.mkdir(parents=True)
        copy_tree(tree)
        make_environment(tree)
    tests = reaching_tests(room, trees[0], jobs)
    files = sorted((trees[0] / "agent_tui" / room).rglob("*.py"))
    chosen, in_all = sampled_mutants(files, trees[0], sample, seed)
    free: SimpleQueue[Path] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def run(mutant: Mutant) -> Outcome:
        tree = free.get()
        started = time.monotonic()
        try:
            reaching = tests_of_line(tree / mutant.path, mutant.line, tests.get(mutant.path, {}))
            outcome = try_out(mutant, reaching, room, tree, types=types)
        finally:
            free.put(tree)
        took = f"{time.monotonic() - started:.0f} seconds"
        print(f"{outcome}: {mutant.path}:{mutant.line}, {len(reaching)} tests, {took}", flush=True)
        if outcome == "survived":
            print(f"{mutant.diff}\n", flush=True)
        return outcome

    with ThreadPoolExecutor(jobs) as pool:
        counts = Counter(pool.map(run, chosen))
    judged = len(chosen) - counts["wording"] - counts["out of time"]
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    share = counts["survived"] / judged if judged else 0.0
    print(f"{room}: {len(chosen)} of {in_all:,} mutants: {told}; surviving {share:.0%}")


def main() -> None:
    """Measure the rooms that were named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rooms", nargs="*", default=sorted(TESTS_OF_ROOMS))
    parser.add_argument("--sample", type=int, default=200, help="mutants tried per room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--types", action="store_true", help="let the type checker see survivors")
    given = parser.parse_args()
    for room in given.rooms:
        with tempfile.TemporaryDirectory() as scratch:
            measure(
                room,
                given.sample,
                given.seed,
                Path(scratch),
                types=given.types,
                jobs=given.jobs,
            )


if __name__ == "__main__":
    main()
