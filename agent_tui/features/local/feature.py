"""Models on this machine: ``local/NAME``, ``--local``, ``agent-tui models pull``."""

from agent_tui.feature import Feature, FeatureCheck, Option

FEATURE = Feature(
    "local",
    options=(
        Option(
            "local",
            "use a model on this machine; offers to download a small one on first use",
            offer="agent_tui.features.local.offer:make_offer",
            ask="agent_tui.features.local.offer:have_a_model",
        ),
    ),
    verbs={"models": ("agent_tui.features.local.verbs:add_verbs",)},
    listed_models=("agent_tui.features.local.verbs:list_local",),
    local_models="agent_tui.features.local.catalog:make_local_models",
    settings="agent_tui.features.local.settings:LocalSection",
    checks=(
        FeatureCheck("model", "with --local", "agent_tui.features.local.checks:check_local_model"),
        FeatureCheck("model", "llama.cpp", "agent_tui.features.local.checks:check_server_package"),
    ),
)
