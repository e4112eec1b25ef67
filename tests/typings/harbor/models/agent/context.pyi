from typing import Any

class AgentContext:
    n_input_tokens: int | None
    n_cache_tokens: int | None
    n_output_tokens: int | None
    cost_usd: float | None
    metadata: dict[str, Any] | None
