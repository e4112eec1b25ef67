"""What a failed request means, by status and words and not by litellm's class."""

import pytest

from agent_tui.features.litellm.protocol import Fault
from agent_tui.providers.base import FaultKind, ModelRef
from agent_tui.providers.faults.classify import classify, plain_detail, provider_error
from agent_tui.providers.faults.overflow import is_context_overflow
from tests.support.rows import each_row

OVERFLOWS = [
    # OpenAI, Azure
    "This model's maximum context length is 128000 tokens. However, your messages resulted in "
    "130000 tokens. Please reduce the length of the messages.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "context_length_exceeded",
    # Anthropic
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    # Gemini
    "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
    # Bedrock
    "Input is too long for requested model.",
    "The model returned the following errors: Too many input tokens. Max input tokens: 8192",
    # OpenRouter
    "This endpoint's maximum context length is 131072 tokens. However, you requested about "
    "140000 tokens (130000 of text input, 10000 in the output).",
    # vLLM
    "'max_tokens' is too large: 8192. This model's maximum context length is 8192 tokens",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    # llama.cpp
    "the request exceeds the available context size, try increasing it",
    "request (9000 tokens) exceeds the available context size (8192 tokens)",
    "exceed_context_size_error",
    # llama-cpp-python, others
    "Requested tokens (9000) exceed context window of 8192",
    "Prompt exceeds n_ctx: 2892 > 2048",
    # Ollama
    "input length exceeds the context length",
    "prompt too long; exceeded max context length by 812 tokens",
    # LM Studio
    "Trying to keep the first 9000 tokens when context the overflows. However, the model is "
    "loaded with context length of only 4096 tokens, which is not enough.",
    "The number of tokens to keep from the initial prompt is greater than the context length",
    # Mistral
    "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum "
    "context length",
    # Groq
    "Please reduce the length of the messages or completion.",
    # DeepSeek, xAI, Cerebras, TGI, DashScope
    "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "Current length is 9000 while limit is 8192",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
    "Range of input length should be [1, 98304]",
    "Input validation error: inputs tokens + max_new_tokens must be <= 40960. Given: 38984 inputs",
    "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
    # OpenAI, one message of more than 10 MB, through both of its interfaces
    "Invalid 'messages[1].content': string too long. Expected a string with maximum length 9",
    "Invalid 'input[2].content[0].text': string too long. Expected a string with maximum length 9",
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 273000.",
    # litellm's own error
    "litellm.ContextWindowExceededError: BadRequestError: it is too much",
    # Anthropic, in bytes
    "request_too_large: Request exceeds the maximum size",
    # Bedrock: Nova, and limits in characters
    "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
    "Malformed input request: expected maxLength: 50000, actual: 52611, please reformat your input",
    # Vertex AI
    "Unable to submit request because the input token count is 40000 but model only supports up "
    "to 32768.",
    # Moonshot
    "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
    "model max length exceeded, max length:8192",
    "total message size 2100954 exceeds limit 2097152",
    # SGLang
    "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
    "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
    "Requested token count exceeds the model's maximum context length of 202752 tokens.",
    # vLLM, where the prompt leaves less than nothing for the reply
    "max_tokens must be at least 1, got -186.",
    # LM Studio, in the middle of a reply
    "Reached context length of 4096 tokens with this model, but this model does not currently "
    "support mid-generation context overflow.",
    # Cohere
    "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048",
    # z.ai, MiniMax, GitHub Copilot, watsonx, Volcengine, Snowflake, TabbyAPI
    "model_context_window_exceeded",
    "Prompt exceeds max length",
    "Prompt 超长",
    "invalid params, context window exceeds limit (2013)",
    "prompt token count of 97000 exceeds the limit of 90000",
    "model_max_prompt_tokens_exceeded",
    "the number of input tokens 4100 cannot exceed the total tokens limit 4096 for this model",
    "Total tokens of image and text exceed max message tokens.",
    "max tokens of 4096 exceeded",
    "Prompt length 5000 is greater than max_seq_len 4096",
    "Prompt has 5000 tokens, but the configured context size is 4096 tokens",
    "input_tokens (200000) + max_tokens (10000) > context window (204800)",
    "n_keep 9000 >= n_ctx 4096",
    # Gemini and Bedrock, in bytes
    "Request payload size exceeds the limit: 20971520 bytes. Please reduce the payload size.",
    "messages.0.content: too many total text bytes: 11534336 > 9437184",
    # llama.cpp, LM Studio, vLLM, gateways
    "Cannot truncate prompt with n_keep (5123) >= n_ctx (4096)",
    "You passed 120000 input characters and requested 4096 output tokens. However, the model's "
    "context length is only 32768 tokens.",
    "You passed 28673 input tokens and requested 4096 output tokens. However, the model's context "
    "length is only 32768 tokens.",
    "Input is too long.",
    # OpenAI: the other texts of more than 10 MB
    "Invalid 'input': string too long. Expected a string with maximum length 10485760",
    "Invalid 'input[3].output': string too long. Expected a string with maximum length 10485760",
    "Invalid 'messages[2].tool_calls[0].function.arguments': string too long.",
]

NOT_OVERFLOWS = [
    "Request too large for gpt-4 on tokens per min (TPM): Limit 10000, Requested 12000.",
    "Too many tokens per minute, please wait before trying again.",
    "Rate limit reached: too many tokens per day",
    "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens",
    "Invalid 'user': string too long. Expected a string with maximum length 64",
    "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64",
    "Invalid 'messages[3].tool_calls[0].id': string too long.",
    "Invalid 'messages[1].tool_calls[0].function.name': string too long.",
    "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64",
    "Invalid 'messages[1].name': string too long. Expected a string with maximum length 64",
    "input is too long for field 'title'",
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
    "max_tokens must be less than or equal to 16384, the maximum value for this model",
    "The maximum tokens you requested exceeds the model limit of 8192.",
    "max_tokens must be at least 1, got 0",
    "Tool description exceeds the maximum length of 1024 characters",
    "The image is too large.",
    "tools: too many items",
]


RATE_LIMITS = [
    # OpenAI, Azure
    "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, "
    "Used 28000, Requested 4000. Please try again in 4s.",
    "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, "
    "Requested 45000. The input or output tokens must be reduced in order to run successfully.",
    "Rate limit reached for gpt-4 on requests per min (RPM): Limit 3, Used 3, Requested 1.",
    "Rate limit reached for gpt-4o-mini on requests per day (RPD): Limit 200, Used 200.",
    "Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your "
    "current OpenAI S0 pricing tier. Please retry after 6 seconds.",
    "Your requests have exceeded call rate limit of your current AIServices S0 pricing tier.",
    # Anthropic
    "This request would exceed your organization's rate limit of 40,000 input tokens per minute. "
    "Please reduce the prompt length or the maximum tokens requested, or try again later.",
    "Number of request tokens has exceeded your per-minute rate limit.",
    "Number of requests has exceeded your rate limit. Please try again later.",
    # Gemini, Vertex AI
    "Resource has been exhausted (e.g. check quota). RESOURCE_EXHAUSTED",
    "You exceeded your current quota, please check your plan and billing details. Quota exceeded "
    "for metric: generate_content_free_tier_input_token_count, limit: 250000. Please retry in "
    "12.3s. RESOURCE_EXHAUSTED",
    "Quota exceeded for aiplatform.googleapis.com/online_prediction_input_tokens_per_minute_per_"
    "base_model with base model: gemini-pro.",
    # Bedrock
    "ThrottlingException: Too many tokens, please wait before trying again.",
    "Too many tokens, please wait before trying again.",
    "Too many tokens per day, please wait before trying again.",
    "Too many requests, please wait before trying again. You have sent too many requests.",
    # Mistral, Groq
    "Requests rate limit exceeded",
    "Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, "
    "Requested 7200, please reduce your message size and try again.",
    "Rate limit reached for model `llama-3.3-70b` on tokens per day (TPD): Limit 100000, Used "
    "99500, Requested 900. Please try again in 7m12.5s.",
    # Cohere, OpenRouter, DeepSeek, xAI, Together, Cerebras, Moonshot, GitHub
    "trial token rate limit exceeded, limit is 100000 tokens per minute",
    "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 requests.",
    "Provider returned error: qwen3-coder:free is temporarily rate-limited upstream.",
    "Rate Limit Reached: you are sending requests too quickly.",
    "Too many requests for team x and model grok-4. Tokens per Minute (actual/limit): 9/8.",
    "You have reached the rate limit specific to this model. The maximum rate limit for this "
    "model is 6.0 queries and 90000 tokens per minute.",
    "Tokens per minute limit exceeded - too many tokens processed.",
    "Your account request reached max organization TPM: limit 128000, current: 130000.",
    "Rate limit of 150000 per 60s exceeded for UserByModelByMinuteTokens. Please wait 12 seconds "
    "before retrying.",
]


@each_row("text", OVERFLOWS)
def test_an_overflow_is_known_in_every_providers_words(text: str) -> None:
    assert is_context_overflow(text, 400)
    assert classify(Fault("BadRequestError", text, 400)) == "context_overflow"
    assert classify(Fault("MidStreamFallbackError", text, 500)) == "context_overflow"


@each_row("text", NOT_OVERFLOWS)
def test_other_limits_are_no_overflow(text: str) -> None:
    assert not is_context_overflow(text, 400)


def test_a_rate_limit_is_never_an_overflow_whatever_it_says() -> None:
    for text in OVERFLOWS:
        assert classify(Fault("RateLimitError", text, 429)) == "rate_limit"


@each_row("status", [429, 400, 500, None])
@each_row("text", RATE_LIMITS)
def test_a_rate_limit_is_known_with_any_status_and_never_compacted_for(
    text: str, status: int | None
) -> None:
    assert not is_context_overflow(text, status)
    assert classify(Fault("AnyError", text, status)) == "rate_limit"


def test_a_request_entity_too_large_is_an_overflow_unless_it_speaks_of_time() -> None:
    assert classify(Fault("APIError", "Request Entity Too Large", 413)) == "context_overflow"
    per_minute = "Request too large for model on tokens per minute (TPM): Limit 6000"
    assert classify(Fault("APIError", per_minute, 413)) == "rate_limit"


@each_row(
    ("status", "text", "kind"),
    [
        (529, "litellm.APIError: APIError: OpenAIException - Overloaded", "overloaded"),
        (403, "forbidden", "auth"),
        (504, "gateway", "server"),
        (408, "slow", "server"),
        (404, "no such model", "not_found"),
        (400, "model 'x' not found, try pulling it first", "not_found"),
        (400, "API key not valid. Please pass a valid API key.", "auth"),
        (401, "Missing Anthropic API Key", "auth"),
        (429, "slow down", "rate_limit"),
        (429, "insufficient_quota", "quota"),
        (402, "Insufficient credits. Add more credits", "quota"),
        (400, "Your credit balance is too low to access the API", "quota"),
        (400, "flagged by the content_filter", "content_filter"),
        (400, "tools.0: unknown field", "bad_request"),
        (500, "boom", "server"),
        (None, "what litellm could not name", "server"),
    ],
)
def test_the_kind_follows_from_status_and_content(
    status: int | None, text: str, kind: FaultKind
) -> None:
    assert classify(Fault("AnyError", text, status)) == kind


def test_a_made_up_500_is_told_from_a_real_one_by_what_is_behind_it() -> None:
    refused = Fault("InternalServerError", "Connection error.", 500, causes=["ConnectError"])
    own_bug = Fault("APIConnectionError", "'NoneType' has no attribute 'x'", 500)
    assert classify(refused) == "network"
    assert classify(own_bug) == "server"
    assert provider_error(refused, ModelRef("openai/gpt-5")).status is None


def test_the_code_of_an_error_event_counts_as_its_status() -> None:
    event = Fault("MidStreamFallbackError", "upstream said no", 500, codes=["429"])
    named = Fault("MidStreamFallbackError", "try later", 500, codes=["overloaded_error"])
    assert classify(event, is_mid_stream=True) == "rate_limit"
    assert classify(named, is_mid_stream=True) == "overloaded"


def test_a_break_after_the_first_token_is_an_interruption_but_a_meaning_stays() -> None:
    reset = Fault("MidStreamFallbackError", "reset", 500, causes=["ReadError"])
    assert classify(reset) == "network"
    assert classify(reset, is_mid_stream=True) == "interrupted"
    overloaded = Fault("MidStreamFallbackError", "Overloaded", 500)
    assert classify(overloaded, is_mid_stream=True) == "overloaded"


def test_geminis_retry_delay_in_the_body_is_obeyed() -> None:
    body = '{"error": {"code": 429, "details": [{"@type": "type.googleapis.com/google.rpc.'
    body += 'RetryInfo", "retryDelay": "17.5s"}], "status": "RESOURCE_EXHAUSTED"}}'
    for text, delay_s in ((body, 17.5), ("Quota exceeded. Please retry in 3.2s.", 3.2)):
        fault = Fault("RateLimitError", text, status=429)
        assert provider_error(fault, ModelRef("gemini/gemini-2.5-pro")).retry_after_s == delay_s


def test_the_detail_loses_class_names_and_html() -> None:
    wrapped = "litellm.RateLimitError: RateLimitError: OpenAIException - Too fast"
    assert plain_detail(wrapped) == "Too fast."
    twice = f"litellm.MidStreamFallbackError: {wrapped} Original exception: RateLimitError: x"
    assert plain_detail(twice) == "Too fast."
    assert plain_detail("<html><title>502 Bad Gateway</title>…</html>") == "502 Bad Gateway."
    assert len(plain_detail("x" * 10_000)) == 400


@each_row(
    ("cause", "kind", "words"),
    [
        ("ClientConnectorDNSError", "network", "host name not found"),
        ("SSLCertVerificationError", "address", "certificate"),
        ("ClientConnectorSSLError", "address", "TLS"),
        ("ConnectionRefusedError", "network", "connection refused"),
        ("ConnectTimeout", "network", "connection timed out"),
        ("ConnectionResetError", "network", "connection lost"),
    ],
)
def test_a_connection_that_fails_is_told_in_our_words(
    cause: str, kind: FaultKind, words: str
) -> None:
    raw = "Cannot connect to host a.b:443 ssl:<ssl.SSLContext object at 0x7f> [Errno 1]"
    causes = ["ConnectError", "ClientConnectorError", cause]
    fault = Fault("InternalServerError", f"litellm.InternalServerError: {raw}", 500, causes=causes)
    error = provider_error(fault, ModelRef("anthropic/claude-haiku-4-5"))
    assert error.kind == kind
    assert words in error.message
    assert "ssl" not in error.message.replace("TLS", "")
    assert "[Errno" not in str(error)


@pytest.mark.parametrize("text", ["", "null", "Error code: 500", "litellm.APIError: b''", "b''."])
def test_an_answer_without_words_is_said_to_give_no_reason(text: str) -> None:
    assert plain_detail(text) == "no reason given."


def test_litellms_advice_to_programmers_is_left_out() -> None:
    text = "litellm.InternalServerError: XException - Boom. Handle with `litellm.XError`."
    assert plain_detail(text) == "Boom."


def test_a_refused_key_names_the_variable_it_came_from() -> None:
    fault = Fault("AuthenticationError", "bad key", 401)
    usual = provider_error(fault, ModelRef("anthropic/claude-haiku-4-5"))
    named = provider_error(fault, ModelRef("m", "http://127.0.0.1:1/v1", "MY_KEY"))
    unnamed = provider_error(fault, ModelRef("m", "http://127.0.0.1:1/v1"))
    assert "ANTHROPIC_API_KEY" in usual.hint
    assert "MY_KEY" in named.hint
    assert "--api-key-env" in unnamed.hint
    assert not usual.is_retryable


def test_every_message_names_the_model_and_says_what_to_do() -> None:
    for status in (None, 400, 401, 402, 404, 413, 429, 500, 503):
        error = provider_error(Fault("X", "words", status), ModelRef("openai/gpt-5"))
        assert "openai/gpt-5" in error.message
        assert error.hint


def test_the_window_that_a_refusal_names_is_part_of_the_error() -> None:
    text = "prompt is too long: 210000 tokens > 200000 maximum"
    error = provider_error(Fault("RefusedError", text, 400), ModelRef("anthropic/claude"))
    assert (error.kind, error.stated_window) == ("context_overflow", 200_000)
