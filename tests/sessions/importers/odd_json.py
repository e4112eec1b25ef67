"""Generated JSON that uses the words of the formats in all the wrong places."""

from hypothesis import strategies as st

_KEYS = """
type uuid parentUuid logicalParentUuid subtype message content role id name input text thinking
tool_use_id is_error source data media_type usage input_tokens isMeta isSidechain timestamp cwd
isCompactSummary compactMetadata preservedSegment headUuid toolUseResult file filePath newTodos
structuredPatch lines attachment prompt action observation args cause extras tool_call_metadata
model_response choices tool_calls function arguments tool_call_id tool_call_ids image_urls code
command path thought exit_code history messages info config model trajectory replay_config extra
response created is_demo model_name state working_dir payload call_id output summary
$set $rewindTo sessionId projectHash toolCalls result resultDisplay fileDiff originalContent
thoughts displayContent functionResponse functionCall response inlineData mimeType directories
info parts state status callID metadata filediff before patch revert messageID tail_start_id
event stepUuid toolCallId args part think payload user_input return_value display old_text
new_text old_start token_usage entry key keptUserMessageCount count origin kind
replacement_history num_turns record_type workdir cmd success metadata instructions
"""
_WORDS = """
user assistant system tool tool_use tool_result text thinking image base64 message finish run
session_meta response_item event_msg turn_context compacted function_call function_call_output
custom_tool_call reasoning web_search_call thread_rolled_back token_count
gemini info completed error success step-start step-finish compaction file reasoning tool.call
tool.result content.part step.end step.begin metadata context.undo context.clear diff loop
compact_boundary queued_command attachment exit a b u1 u2 2026-02-12T16:02:25Z
"""

_keys = st.sampled_from(_KEYS.split())
_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(_WORDS.split()),
    st.text(max_size=20),
    st.just("```bash\nls\n```"),
)
odd_objects = st.recursive(
    st.dictionaries(_keys, _leaves, max_size=6),
    lambda inner: st.dictionaries(
        _keys, st.one_of(_leaves, inner, st.lists(inner, max_size=4)), max_size=8
    ),
    max_leaves=40,
)
