"""What the marks in the prompt stand for: large pastes and images, numbered as they come."""

import asyncio
from collections.abc import Callable, Sequence

from agent_tui.drafts.draft import Draft, DraftImage, image_mark, is_large, paste_mark
from agent_tui.errors import AgentTuiError
from agent_tui.ui.prompt.leaked_reports import clean_paste
from agent_tui.ui.prompt.pasted_images import may_be_images, read_draft_image, read_pasted
from agent_tui.ui.prompt.sources import PromptSources

_LONG_PASTE_CHARS = 20_000
"""A longer paste is cleaned in a thread."""


class DraftAttachments:
    """Pastes and images of the present draft.

    Args:
        refuse: Told why an image cannot go along.
    """

    def __init__(self, refuse: Callable[[str], None]) -> None:
        self._refuse = refuse
        self._pastes: dict[int, str] = {}
        self._images: dict[int, DraftImage] = {}

    def draft(self, text: str) -> Draft:
        """The draft whose text is `text`."""
        return Draft(text, dict(self._pastes), dict(self._images))

    def load(self, draft: Draft) -> None:
        """Carry what `draft` carries, and nothing else."""
        self._pastes, self._images = dict(draft.pastes), dict(draft.images)

    def paste(self, number: int) -> str | None:
        """What was pasted under this number."""
        return self._pastes.get(number)

    async def take_paste(self, pasted: str, sources: PromptSources | None) -> str:
        """What is written into the prompt for `pasted`: itself, made harmless, or marks."""
        if sources is not None and may_be_images(pasted):
            marks = await self._take_images(pasted, sources)
            if marks:
                return marks
        is_long = len(pasted) > _LONG_PASTE_CHARS
        clean = await asyncio.to_thread(clean_paste, pasted) if is_long else clean_paste(pasted)
        if not is_large(clean):
            return clean
        number = max(self._pastes, default=0) + 1
        self._pastes[number] = clean
        return paste_mark(number, clean)

    async def take_image(self, path: str, sources: PromptSources) -> str:
        """The mark of the image at `path`; empty if there is none or it cannot go along."""
        try:
            image = await asyncio.to_thread(read_draft_image, path, sources.files.root)
        except AgentTuiError as error:
            self._refuse(str(error))
            return ""
        return "".join(self._keep((image,), sources)) if image is not None else ""

    async def _take_images(self, pasted: str, sources: PromptSources) -> str:
        """Marks for the images that `pasted` is the paths of, each with a blank behind it."""
        try:
            images = await asyncio.to_thread(read_pasted, pasted, sources.files.root)
        except AgentTuiError as error:
            self._refuse(str(error))
            return ""
        return "".join(f"{mark} " for mark in self._keep(images, sources))

    def _keep(self, images: Sequence[DraftImage], sources: PromptSources) -> list[str]:
        """The marks of `images` from now on; none where the model sees no images."""
        refusal = sources.image_refusal() if images else ""
        if refusal:
            self._refuse(refusal)
            return []
        first = max(self._images, default=0) + 1
        self._images.update(enumerate(images, first))
        return [image_mark(number, image.image) for number, image in enumerate(images, first)]
