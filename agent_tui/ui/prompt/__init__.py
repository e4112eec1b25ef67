"""The prompt: where the person writes, with its menus and marks for large pastes."""
