"""Sessions of Claude Code (``~/.claude/projects/*/*.jsonl``)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.features.importers.claude_tree import (
    ClaudeRecord,
    ClaudeTree,
    claude_details,
    claude_words,
    is_of_program,
    reply_id,
)
from agent_tui.features.importers.values import as_timestamp
from agent_tui.messages import (
    AssistantContent,
    ImageContent,
    JsonObject,
    Pin,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
    UserContent,
    text_in,
)
from agent_tui.sessions.entries import CompactionEntry
from agent_tui.sessions.importers.builder import (
    ForeignSession,
    ImportFormat,
    SessionBuilder,
    SessionEnd,
    SessionFinder,
    SessionHead,
    sessions_folder,
)
from agent_tui.sessions.importers.fields import (
    as_count,
    as_list,
    as_object,
    joined_text,
    json_lines,
    text_at,
)

_PROVIDER = "anthropic"
_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "toolUse",
    "max_tokens": "length",
}
_SYNTHETIC = "<synthetic>"
"""The model name in replies that Claude Code itself generated."""

_SIGNATURE = re.compile(r"[A-Za-z0-9+/]+={0,2}")
"""Base64; the provider would refuse a signature that was blanked out."""

_TYPES = frozenset({"user", "assistant", "progress", "file-history-snapshot", "system"})
_SUBAGENTS = "agent-"
"""How the names of Claude Code's subagent files begin."""

_AROUND_SUMMARY = re.compile(
    r"\AThis session is being continued from a previous .*\n+"
    r"(?:Analysis:\n(?s:.*?)\n(?=Summary:\n))?"
    r"|\n+If you need specific details from before compaction(?s:.*)\Z"
    r"|\n+(?:Please continue|Continue) the conversation from where (?s:.*)\Z"
)
"""What Claude Code puts around a summary: its opening, the draft, and orders to continue."""


def read_claude_code(path: Path) -> ForeignSession:
    """The conversation in `path` with abandoned branches, without subagents.

    Raises:
        SessionError: The file cannot be read, or has no message.
    """
    reader = _Reader(path)
    return reader.read()


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._builder = SessionBuilder()
        self._entry_of: dict[str, str] = {}
        self._boundary: ClaudeRecord | None = None
        self._taken: list[list[tuple[str, str]]] = []
        self._reply_keys: dict[str, int] = {}

    def read(self) -> ForeignSession:
        builder = self._builder
        lines = json_lines(self._path, builder.warnings)
        tree = ClaudeTree(lines, builder.warnings, builder.keep_content)
        session_id = ""
        branch: Sequence[ClaudeRecord] = ()
        for branch in tree.branches():
            session_id = self._take_branch(branch) or session_id
        if not builder.last_id:
            raise SessionError(f"{self._path} contains no Claude Code messages.")
        if not builder.is_turn_over:
            self._pin_command(branch)
        if tree.title:
            builder.name(tree.title)
        return builder.finish(session_id or self._path.stem)

    def _take_branch(self, branch: Sequence[ClaudeRecord]) -> str:
        """Add `branch` from where it leaves earlier ones; returns the newest session id.

        A resumed session may begin with lines of the earlier one, with its id. A result on two
        branches is added to both.
        """
        session_id = ""
        shared: list[tuple[str, str]] = []
        for other in self._taken:
            shared = max(shared, _common(branch, other), key=len)
        self._builder.back_to(shared[-1][1] if shared else "")
        taken = list(shared)
        on_path = {reply_id(line) for line in branch[: len(shared)]}
        self._reply_keys = {key: at for key, at in self._reply_keys.items() if key in on_path}
        for number, line in enumerate(branch):
            session_id = text_at(line.data, "sessionId") or session_id
            if number < len(shared):
                continue
            is_whole = reply_id(line) in self._reply_keys and line.uuid in self._entry_of
            if not (line.is_reply and is_whole):
                self._take(line)
            self._entry_of[line.uuid] = self._builder.last_id
            taken.append((line.uuid, self._builder.last_id))
        self._give_up_boundary()
        self._taken.append(taken)
        return session_id

    def _pin_command(self, branch: Sequence[ClaudeRecord]) -> None:
        """Pin the text of the slash command that the newest turn of `branch` runs, if any."""
        command = expansion = ""
        for line in branch:
            content = line.queued if line.queued is not None else line.message.get("content")
            text = joined_text(content)
            if line.is_reply and not expansion:
                command = ""
            elif line.is_reply or line.is_boundary or line.is_summary or not text.strip():
                continue
            elif is_of_program(line.data):
                expansion = expansion or (self._entry_of[line.uuid] if command else "")
            elif (words := claude_words(text)).said:
                command, expansion = words.command.partition(" ")[0].strip("/").lower(), ""
        if expansion:
            pin = Pin(kind="skill", name=command, path=f"claude/commands/{command}")
            self._builder.pin_note(expansion, pin)

    def _take(self, line: ClaudeRecord) -> None:
        self._builder.at(as_timestamp(line.data.get("timestamp")))
        self._builder.in_folder(text_at(line.data, "cwd"))
        if line.is_boundary:
            self._give_up_boundary()
            self._boundary = line
        elif line.is_reply:
            self._take_reply(line)
        elif line.queued is not None:
            self._take_said(line, _blocks(line.queued))
        elif line.is_summary:
            self._take_summary(line)
        else:
            self._take_said(line, self._take_results(line))

    def _take_reply(self, line: ClaudeRecord) -> None:
        message = line.message
        model = text_at(message, "model")
        if model != _SYNTHETIC:
            self._builder.by_model(_PROVIDER, model)
        parts = [part for block in line.blocks if (part := self._reply_part(line, block))]
        failed = line.data.get("isApiErrorMessage") is True
        reply = reply_id(line)
        self._builder.reply(
            parts,
            key=(reply, self._reply_keys.setdefault(reply, len(self._taken))),
            usage=_usage(as_object(message.get("usage"))),
            stop_reason="error" if failed else _STOP_REASONS.get(text_at(message, "stop_reason")),
            error=text_in(parts) if failed else None,
        )

    def _reply_part(self, line: ClaudeRecord, block: JsonObject) -> AssistantContent | None:
        match block.get("type"):
            case "text":
                return TextContent(text=text_at(block, "text"))
            case "thinking":
                signature = text_at(block, "signature")
                usable = signature if _SIGNATURE.fullmatch(signature) else None
                return ThinkingContent(thinking=text_at(block, "thinking"), signature=usable)
            case "redacted_thinking":
                data = text_at(block, "data")
                return ThinkingContent(thinking="", signature=data, redacted=True)
            case "tool_use":
                return ToolCall(
                    id=text_at(block, "id") or f"call_line_{line.number}",
                    name=text_at(block, "name") or "unknown",
                    arguments=as_object(block.get("input")),
                )
            case kind:
                self._warn_unknown(line, kind)
                return None

    def _take_results(self, line: ClaudeRecord) -> list[JsonObject]:
        """Add the results of calls on the line; returns its other parts."""
        noted = as_object(line.data.get("toolUseResult"))
        others: list[JsonObject] = []
        for block in line.blocks:
            if block.get("type") != "tool_result":
                others.append(block)
                continue
            content = self._said_parts(line, _blocks(block.get("content")))
            call = self._builder.open_call(text_at(block, "tool_use_id"), line.number)
            if call is None:
                continue
            is_error = block.get("is_error") is True
            details = claude_details(
                call.name, call.arguments, noted, text_in(content), is_error=is_error
            )
            self._builder.result(call.id, content, is_error=is_error, details=details)
        return others

    def _take_said(self, line: ClaudeRecord, blocks: list[JsonObject]) -> None:
        content = self._said_parts(line, blocks)
        if is_of_program(line.data):
            if content:
                self._builder.note("meta", content)
            return
        self._builder.user_words(content, _told_and_said, display=True)

    def _said_parts(self, line: ClaudeRecord, blocks: list[JsonObject]) -> list[UserContent]:
        content: list[UserContent] = []
        for block in blocks:
            source = as_object(block.get("source"))
            match block.get("type"), source.get("type"):
                case "text", _:
                    content.append(TextContent(text=text_at(block, "text")))
                case "image", "base64":
                    media_type = text_at(source, "media_type") or "image/png"
                    content.append(ImageContent(data=text_at(source, "data"), mime_type=media_type))
                case kind, _:
                    self._warn_unknown(line, kind)
        return content

    def _warn_unknown(self, line: ClaudeRecord, kind: JsonValue) -> None:
        self._builder.warn(line.number, f"a part of unknown kind {str(kind)[:40]!r}; left out")

    def _take_summary(self, line: ClaudeRecord) -> None:
        boundary, self._boundary = self._boundary, None
        facts = as_object(boundary.data.get("compactMetadata")) if boundary else {}
        kept = text_at(as_object(facts.get("preservedSegment")), "headUuid")
        text = "\n".join(text_at(block, "text") for block in line.blocks)
        self._builder.compaction(
            CompactionEntry(
                summary=_AROUND_SUMMARY.sub("", text),
                first_kept_entry_id=self._entry_of.get(kept, ""),
                tokens_before=as_count(facts.get("preTokens")),
                reason="manual" if facts.get("trigger") == "manual" else "threshold",
            )
        )

    def _give_up_boundary(self) -> None:
        if self._boundary is not None:
            self._builder.warn(self._boundary.number, "a compaction without its summary; left out")
            self._boundary = None


def _common(
    branch: Sequence[ClaudeRecord], taken: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """The common beginning of `branch` and `taken`, another branch's lines with their entries."""
    pairs = zip(branch, taken, strict=False)
    return [one for _, one in takewhile(lambda pair: pair[0].uuid == pair[1][0], pairs)]


def _told_and_said(text: str) -> tuple[str, str]:
    words = claude_words(text)
    return words.told, words.said


def _blocks(content: JsonValue) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in as_list(content) if isinstance(block, dict)]


def _usage(counted: JsonObject) -> Usage | None:
    if not counted:
        return None
    fresh, written = as_count(counted.get("input_tokens")), as_count(counted.get("output_tokens"))
    read = as_count(counted.get("cache_read_input_tokens"))
    stored = as_count(counted.get("cache_creation_input_tokens"))
    return Usage(
        input=fresh,
        output=written,
        cache_read=read,
        cache_write=stored,
        total_tokens=fresh + written + read + stored,
    )


def _is_claude_code(_number: int, record: JsonObject) -> bool:
    return text_at(record, "type") in _TYPES and ("uuid" in record or "snapshot" in record)


def _files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    folder = sessions_folder(environ.get("CLAUDE_CONFIG_DIR", ""), ".claude", home)
    files = folder.glob("projects/*/*.jsonl")
    return (file for file in files if not file.name.startswith(_SUBAGENTS))


def _read_head(head: SessionHead, number: int, line: JsonObject) -> None:
    head.name = text_at(line, "customTitle", "aiTitle") or head.name
    if line.get("isSidechain") is True or line.get("type") not in ("user", "assistant"):
        return
    head.is_session = True
    head.cwd = head.cwd or text_at(line, "cwd")
    if line.get("type") == "user" and not is_of_program(line):
        text = joined_text(as_object(line.get("message")).get("content"))
        head.prompt = head.prompt or claude_words(text).said


_ENDINGS = ("stop_hook_summary", "turn_duration")
"""What Claude Code notes once a turn is over."""


def _read_end(end: SessionEnd, line: JsonObject) -> None:
    if line.get("isSidechain") is True:
        return
    message = as_object(line.get("message"))
    end.branch = end.branch or text_at(line, "gitBranch")
    match line.get("type"):
        case "system" if line.get("subtype") in _ENDINGS:
            end.note_turn(is_done=True)
        case "assistant":
            reason = text_at(message, "stop_reason")
            end.note_turn(is_done=reason in ("end_turn", "stop_sequence") if reason else None)
            usage = _usage(as_object(message.get("usage")))
            end.note_reply(joined_text(message.get("content")), usage)
        case "user" if not is_of_program(line):
            end.note_turn(is_done=False)
        case _:
            pass


CLAUDE_CODE: Final = ImportFormat(
    "claude",
    read_claude_code,
    _is_claude_code,
    finder=SessionFinder("Claude Code", _files, _read_head, read_end=_read_end),
)
