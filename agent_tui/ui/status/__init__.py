"""What is around the chat: status bar, window title, hints, notifications."""
