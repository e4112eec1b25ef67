"""Commands of the user's that run when something happens."""

from agent_tui.feature import Feature, FeatureCheck

FEATURE = Feature(
    "hooks",
    checks=(FeatureCheck("hooks", "hooks", "agent_tui.features.hooks.check:check_hooks"),),
    part="agent_tui.features.hooks.part:HooksPart",
    brings={"agent_tui.commands": ("agent_tui.features.hooks.command:hooks",)},
    stores={"hooks.json": "which hooks you allowed; you are asked again"},
)
