"""The chat as one line-API view over blocks of data.

For the app, `Transcript` (in `view`) is all there is; all methods are synchronous:

- ``append(block) -> BlockId``, ``tell(notice)``, ``replace(id, block)``, ``remove_block(id)``,
  ``load(blocks)`` (another conversation, its last screen at once), ``blocks``;
- ``start_reply() -> BlockId``, ``stream_text(delta)``, ``stream_thinking(delta)``,
  ``finish_reply(mark, note)``, ``discard_reply()``; deltas may come as fast as they like;
- ``append_tool_output(call_id, text, skipped_lines)`` for a running `ToolBlock` or `BashBlock`; a
  later ``replace`` with the finished block stands for everything that was shown live;
- ``toggle(id)``, ``toggle_details()``, ``show_thinking``;
- ``Transcript.StartChosen(draft)``: a click on something to begin with;
- ``follow_end()``, ``is_following``, and the message ``Transcript.FollowChanged(following,
  new_count)``; scrolling is at once (``action_page_up`` and its like);
- ``prepend(blocks)``, ``dim_above(spoken)``, ``keep_from(id)``, ``offer_earlier(has_earlier)``
  and the message ``Transcript.EarlierWanted``: what was said before a compaction, dimmed;
- ``hold(marker)``, ``held_at``, ``reveal(id, row)``, ``let_go(stays=)``: the chat stands still from
  the first to the last of them, and ``marker`` marks its rows;
- ``to_text()``, ``last_reply_text``.
"""
