"""What masking secrets costs: exports of a long session with it and without, by turns.

python -m tests.benchmarks.masking [--megabytes 6] [--rounds 5]

The session's outputs are pieces of this package's source, 200 to 4,000 characters each. Figures
are the fastest of the rounds, in seconds; the ratio is of an export with masking to one without.
Hostile text, last: nothing but beginnings of one kind of key, beside the same length of source.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from unittest.mock import patch

import agent_tui
from agent_tui.features.export.atif import to_atif
from agent_tui.features.export.documents import to_html, to_markdown
from agent_tui.secret_text import mask_secrets
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.export.document import document_of
from tests.support.session_values import chain, entry, header, reply, result, user

_MASKING = ("sessions.export.document.mask_secrets", "features.export.atif.mask_secrets")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    size = int(arguments.megabytes * 1_000_000)
    source = [path.read_text() for path in Path(agent_tui.__file__).parent.rglob("*.py")]
    path = chain(*long_session(source, size))
    first = header()
    began = time.perf_counter()
    mask_secrets("a first text")
    print(f"reading the rules: {(time.perf_counter() - began) * 1_000:.0f} ms, once")
    exports: dict[str, Callable[[], object]] = {
        "Markdown": lambda: to_markdown(document_of(first, path)),
        "HTML": lambda: to_html(document_of(first, path)),
        "ATIF": lambda: to_atif(first, path),
    }
    for name, export in exports.items():
        masked, bare = fastest(export, arguments.rounds)
        print(f"{name}: {masked:.2f} with masking, {bare:.2f} without, ratio {masked / bare:.2f}")
    text = "".join(source)[:200_000]
    for begin in ("sk-", "eyJ", "-----BEGIN RSA PRIVATE KEY-----\n", "curl ", "twitter="):
        hostile = (begin * len(text))[: len(text)]
        ratio = seconds(lambda: mask_secrets(hostile)) / seconds(lambda: mask_secrets(text))  # noqa: B023
        print(f"{begin.strip()!r}, again and again: {ratio:.1f} times source of that length")


def long_session(source: Sequence[str], size: int) -> list[Entry]:
    chance = random.Random(1)
    entries: list[Entry] = []
    while size > 0:
        text = chance.choice(source)
        start = chance.randrange(max(len(text) - 4_000, 1))
        output = text[start : start + chance.randint(200, 4_000)]
        call = f"call_{chance.randrange(1 << 60):x}"
        entries += [
            entry(user("Look at this and fix what is wrong there.")),
            entry(reply("I read it first.", (call, "read"))),
            entry(result(call, output)),
            entry(reply("It is fixed.")),
        ]
        size -= len(output)
    return entries


def fastest(export: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The seconds of `export` with masking and without."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for with_masking, kept in zip((True, False), times, strict=True):
            with nullcontext() if with_masking else unmasked():
                kept.append(seconds(export))
    return min(times[0]), min(times[1])


def unmasked() -> ExitStack:
    stack = ExitStack()
    for name in _MASKING:
        stack.enter_context(patch(f"agent_tui.{name}", lambda text, _: text))
    return stack


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
