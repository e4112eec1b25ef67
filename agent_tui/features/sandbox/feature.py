"""The sandbox of the model's commands: its settings, its option and what ``doctor`` checks."""

from agent_tui.feature import Feature, FeatureCheck

FEATURE = Feature(
    "sandbox",
    options_module="agent_tui.features.sandbox.options",
    settings="agent_tui.features.sandbox.settings:SandboxSettings",
    part="agent_tui.features.sandbox.part:SandboxPart",
    sandbox="agent_tui.features.sandbox.make:make_sandbox",
    checks=(
        FeatureCheck("tools", "sandbox", "agent_tui.features.sandbox.checks:check_sandbox"),
        FeatureCheck("tools", "caches", "agent_tui.features.sandbox.checks:check_caches"),
    ),
    stores={
        "conversations": "which conversations run commands now; not needed after they end",
        "repositories": "what the sandbox knows about git repositories; it learns this again",
    },
)
