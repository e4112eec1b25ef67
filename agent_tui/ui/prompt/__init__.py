"""The prompt: where the user writes, with its menus and marks for large pastes."""
