"""The reply that streams in: which blocks of the stack are its own, and how they grow."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, TypeAlias

from agent_tui.ui.transcript.blocks import AssistantBlock, BlockId, ReplyMark, ThinkingBlock
from agent_tui.ui.transcript.stack import BlockStack, Item

PieceKind: TypeAlias = Literal["text", "thinking"]


class LiveReply:
    """One reply at a time: text and thinking become blocks at the end of the stack."""

    def __init__(self, stack: BlockStack) -> None:
        self._stack = stack
        self._ids: list[BlockId] = []

    def begin(self) -> BlockId:
        """Begin a reply after the blocks of the last one; it has no height yet."""
        self.close("", "")
        item = self._add(AssistantBlock("", is_finished=False))
        self._ids = [item.id]
        return item.id

    def forget(self) -> list[BlockId]:
        """Let go of the present reply; returns its blocks."""
        ids, self._ids = self._ids, []
        return ids

    def extend(self, kind: PieceKind, text: str) -> int | None:
        """Add a piece; returns the index of the block that grew, None if it is gone."""
        index = self._stack.index(self._live_id(kind))
        if index is None:
            return None
        item = self._stack[index]
        match item.block:
            case AssistantBlock() as block:
                self._stack.grow(index, replace(block, markdown=block.markdown + text))
                if item.stream is not None:
                    item.stream.feed(text)
            case ThinkingBlock() as block:
                self._stack.grow(index, replace(block, text=block.text + text))
            case _:
                return None
        return index

    def close(self, mark: ReplyMark, note: str) -> list[BlockId]:
        """Finish the reply; `mark` and `note` say how it ended if it did not end well.

        Returns:
            Its blocks.
        """
        ids = self.forget()
        if mark and ids and not self._is_text(ids[-1]):
            ids.append(self._add(AssistantBlock("", is_finished=False)).id)
        for block_id in ids:
            is_last = block_id == ids[-1]
            self._finish(block_id, mark if is_last else "", note if is_last else "")
        return ids

    def _live_id(self, kind: PieceKind) -> BlockId:
        """The block that a piece of this kind belongs to; creates it if needed."""
        if not self._ids:
            self.begin()
        live_id = self._ids[-1]
        index = self._stack.index(live_id)
        block = None if index is None else self._stack[index].block
        if index is not None and kind == "thinking" and block == AssistantBlock("", False):
            self._stack.replace(index, ThinkingBlock("", is_finished=False))
        elif self._is_text(live_id) != (kind == "text"):
            self._finish(live_id, "", "")
            is_text = kind == "text"
            fresh = AssistantBlock("", False) if is_text else ThinkingBlock("", False)
            live_id = self._add(fresh).id
            self._ids.append(live_id)
        return live_id

    def _is_text(self, block_id: BlockId) -> bool:
        index = self._stack.index(block_id)
        return index is not None and isinstance(self._stack[index].block, AssistantBlock)

    def _add(self, block: AssistantBlock | ThinkingBlock) -> Item:
        item = self._stack.append(block)
        if isinstance(block, AssistantBlock):
            item.stream = self._stack.painter.stream()
        self._stack.set_rows(len(self._stack) - 1, [])
        return item

    def _finish(self, block_id: BlockId, mark: ReplyMark, note: str) -> None:
        """Finish a block; an empty one is removed."""
        index = self._stack.index(block_id)
        if index is None:
            return
        item = self._stack[index]
        match item.block:
            case AssistantBlock(markdown=text) if not (text.strip() or mark):
                self._stack.remove(index)
            case AssistantBlock() as block:
                ended = replace(block, is_finished=True, mark=mark, note=note)
                self._stack.grow(index, ended)
                if item.stream is not None:
                    rows = item.stream.rows(is_end=True)
                    item.stream = None
                    self._stack.set_rows(index, rows + self._stack.painter.mark_rows(ended))
            case ThinkingBlock() as block:
                self._stack.replace(index, replace(block, is_finished=True))
            case _:
                pass


def merge_pieces(arrived: Iterable[tuple[PieceKind, str]]) -> list[tuple[PieceKind, str]]:
    """`arrived` with neighbouring pieces of one kind joined."""
    pieces: list[tuple[PieceKind, list[str]]] = []
    for kind, text in arrived:
        if pieces and pieces[-1][0] == kind:
            pieces[-1][1].append(text)
        else:
            pieces.append((kind, [text]))
    return [(kind, "".join(texts)) for kind, texts in pieces]
