"""Notifications for a user who looks elsewhere, by the terminal or its bell."""

from agent_tui.feature import Feature

FEATURE = Feature(
    "notify",
    settings="agent_tui.features.notify.settings:NotifySettings",
    screen_watcher="agent_tui.features.notify.watcher:NotifyWatcher",
)
