"""Getting a model: from the list of offers, or from an address."""

import asyncio
import contextlib
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from typing import Final, assert_never

from pydantic import ValidationError

from agent_tui.errors import ModelFileError
from agent_tui.local_models.addresses import (
    check_address,
    file_stem,
    is_address,
    without_secrets,
)
from agent_tui.local_models.library import ModelLibrary, check_name, suggested_name
from agent_tui.local_models.model import OFFERS, LocalModel, Offer, PullProgress
from agent_tui.local_models.pull.job import JOB, REPORT, Pulled, PullFailed, PullJob

_COMPLAINT_BYTES: Final = 2_000
_MAX_REPORT_BYTES: Final = 1024 * 1024
_END_PATIENCE_S: Final = 3.0


async def pull(
    library: ModelLibrary,
    what: str,
    *,
    on_progress: Callable[[PullProgress], None],
    name: str = "",
    sha256: str = "",
    offers: tuple[Offer, ...] = OFFERS,
    environ: Mapping[str, str] | None = None,
) -> LocalModel:
    """Bring a model into `library`; one that is there already is returned at once.

    The work is done in a process of its own, which ends with this one. Cancel the task to stop:
    what came stays, and the next pull of the same goes on from there.

    Args:
        library: Where it goes.
        what: Name of an offer, or the https address of a GGUF file (http on this machine).
        on_progress: Told of every phase, and at most ten times a second within one.
        name: What to call it; else the offer's name, or one made from the address.
        sha256: Of the file at the address, where it is known; 64 hex digits.
        offers: What can be had by name.
        environ: Environment of the process that fetches; this one's when None.

    Raises:
        ModelFileError: There is no such offer, or it could not be brought; says what to do.
    """
    job = _job(library, what, name, sha256, offers)
    process = await _start(os.environ if environ is None else environ)
    assert process.stderr is not None
    complaints = asyncio.create_task(_last_bytes(process.stderr))
    try:
        pulled = await _follow(process, job, on_progress)
        if pulled is None:
            raise _broke_down(await process.wait(), await complaints)
    finally:
        await _end(process)
        await complaints
    model = library.find(pulled.name)
    if model is None:
        raise ModelFileError(f"{pulled.name} was removed during the download.", "Pull it again.")
    return model


def offer_named(name: str, offers: tuple[Offer, ...] = OFFERS) -> Offer | None:
    """The offer called `name`, or None."""
    return next((offer for offer in offers if offer.name == name), None)


def _job(
    library: ModelLibrary, what: str, name: str, sha256: str, offers: tuple[Offer, ...]
) -> PullJob:
    sha256 = sha256.lower().removeprefix("sha256:")
    if sha256 and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise ModelFileError(f"{sha256!r} is not a SHA-256.", "A SHA-256 has 64 hex digits.")
    if name:
        check_name(name)
    if is_address(what):
        check_address(what)
        chosen = name or suggested_name(file_stem(what))
        return PullJob(library.root, chosen, bool(name), address=what, sha256=sha256)
    offer = offer_named(what, offers)
    if offer is None:
        names = ", ".join(offer.name for offer in offers)
        raise ModelFileError(
            f"No model {what!r} to download.",
            f"Choose from {names}, or give the https URL of a .gguf file.",
        )
    if sha256 not in ("", offer.sha256):
        raise ModelFileError(f"{what} has the SHA-256 {offer.sha256}.", "Remove --sha256.")
    return PullJob(library.root, name or offer.name, is_name_fixed=True, offer=offer)


async def _start(environ: Mapping[str, str]) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "agent_tui.local_models.pull.worker"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(environ),
            limit=_MAX_REPORT_BYTES,
            start_new_session=True,  # Ctrl+C is for us; it ends when we do
        )
    except OSError as error:
        raise ModelFileError(
            f"Cannot start the download process: {error.strerror}.",
            "Check the limits on processes and memory.",
        ) from error


async def _follow(
    process: Process, job: PullJob, on_progress: Callable[[PullProgress], None]
) -> Pulled | None:
    """Hand over the job and pass its reports on; None when it ends without a last one."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.write(JOB.dump_json(job) + b"\n")
        await process.stdin.drain()
    while line := await process.stdout.readline():
        try:
            report = REPORT.validate_json(line)
        except ValidationError:
            return None
        match report:
            case PullProgress():
                on_progress(report)
            case Pulled():
                return report
            case PullFailed():
                raise ModelFileError(report.message, report.hint)
            case _:
                assert_never(report)
    return None


async def _end(process: Process) -> None:
    """See to it that no process is left, whatever happened; also when cancelled once more."""
    assert process.stdin is not None
    process.stdin.close()
    with contextlib.suppress(ProcessLookupError):
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), _END_PATIENCE_S)
    except TimeoutError:
        process.kill()
        await process.wait()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise


async def _last_bytes(stream: asyncio.StreamReader) -> bytes:
    kept = b""
    while block := await stream.read(_COMPLAINT_BYTES):
        kept = (kept + block)[-_COMPLAINT_BYTES:]
    return kept


def _broke_down(exit_code: int, complaints: bytes) -> ModelFileError:
    text = complaints.decode("utf-8", "replace").strip()
    last = without_secrets(text.splitlines()[-1]) if text else "no output"
    return ModelFileError(
        f"The download process exited with code {exit_code}: {last}.",
        "Pull again to continue the download.",
    )
